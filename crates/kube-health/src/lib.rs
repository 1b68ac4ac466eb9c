//! A health verdict per object, and why; waiting by watching.
