//! Problems of a pattern.

pub(super) fn problem(what: &str, expression: &str) -> String {
    format!("error parsing regexp: {what}: `{expression}`")
}
