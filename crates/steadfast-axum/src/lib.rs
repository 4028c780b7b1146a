//! A service that calls others, seen from its own callers' side.
