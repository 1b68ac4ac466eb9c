//! Regular expressions in the syntax of Go's regexp package (RE2), run by the `regex` crate.
