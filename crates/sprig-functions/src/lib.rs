//! The functions of sprig 3 that Helm exposes to templates.
