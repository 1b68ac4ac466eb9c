//! Resolves sources to artifacts and serves them.
#![allow(dead_code)]
mod fetch;
fn main() {}
