//! Versions and ranges as Masterminds/semver 3 reads, compares and prints them.
