//! Resolves sources to artifacts and serves them.

fn main() {}
