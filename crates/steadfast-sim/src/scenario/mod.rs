//! Scenarios: scripted upstreams, calls, and what is expected of each.
