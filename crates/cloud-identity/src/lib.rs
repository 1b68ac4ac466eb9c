//! Tokens of cloud providers and GitHub Apps, for those that fetch from them.
