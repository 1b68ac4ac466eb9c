//! When changes go in: windows of the week, and freezes of what is delivered. Pure: no clock, no I/O.

pub mod freeze;
pub mod window;
