//! Development tasks: generate, demo, bench.

fn main() {}
