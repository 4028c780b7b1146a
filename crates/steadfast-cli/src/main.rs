//! The command `steadfast`.
fn main() {}
