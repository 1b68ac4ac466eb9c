//! Errors of an expression.

/// Error in an expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// It is not CEL, or beyond the limits.
    #[error("failed to parse the CEL expression '{expression}': {problem}")]
    Parse {
        /// The text, shortened.
        expression: String,
        /// The problem.
        problem: String,
    },
    /// It has no value for these objects.
    #[error("failed to evaluate the CEL expression '{expression}': {problem}")]
    Evaluate {
        /// The text, shortened.
        expression: String,
        /// Why; without values of the objects.
        problem: String,
    },
    /// Its value is no text.
    #[error("failed to evaluate CEL expression as string: '{expression}'")]
    NotString {
        /// The text, shortened.
        expression: String,
    },
    /// Its value is neither true nor false.
    #[error("failed to evaluate CEL expression as boolean: '{expression}'")]
    NotBoolean {
        /// The text, shortened.
        expression: String,
    },
}
