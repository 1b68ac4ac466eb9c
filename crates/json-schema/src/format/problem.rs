//! Problems of a text.

/// Problem of a text.
pub(super) type Problem = String;

/// Refuses with a message.
pub(super) fn refuse<T>(problem: impl Into<Problem>) -> Result<T, Problem> {
    Err(problem.into())
}

/// Go's strconv.Atoi.
pub(super) fn whole(text: &str) -> Result<i64, Problem> {
    use std::num::IntErrorKind::{NegOverflow, PosOverflow};
    text.parse().map_err(|error: std::num::ParseIntError| {
        let problem = match error.kind() {
            PosOverflow | NegOverflow => "value out of range",
            _ => "invalid syntax",
        };
        format!(
            "strconv.Atoi: parsing {}: {problem}",
            go_text::quote::quoted(text)
        )
    })
}
