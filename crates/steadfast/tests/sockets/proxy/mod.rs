//! Proxies: what they see, what the upstream sees, and what each of their refusals is called.

mod clients;
mod forward;
mod scene;
mod socks;
mod tunnel;
