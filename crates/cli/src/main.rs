//! SSH for a whole shoal of hosts.
fn main() {}
