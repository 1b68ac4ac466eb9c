//! Go's text/template.
