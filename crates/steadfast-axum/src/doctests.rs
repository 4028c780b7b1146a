//! The page of `docs/` about this crate, so that every example in it is compiled.

#[doc = include_str!("../../../docs/inside-a-service.md")]
struct InsideAService;
