//! Errors and limits of a substitution.

/// How deep functions may be nested: far above what a person writes, far below what a thread's stack holds.
pub const MAXIMUM_DEPTH: usize = 100;

/// How many bytes all expansions in one text may make together. An object in etcd is at most 1.5 MiB; without a bound
/// `${a//x/${b//y/${c}}}` multiplies the lengths of three values.
pub const MAXIMUM_BYTES: usize = 64 << 20;

/// Handling of a variable that has no value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// It is the empty text.
    #[default]
    Lenient,
    /// It is an error, unless the function on it gives a default.
    Strict,
}

/// Why a text could not be expanded. The words are those of Flux's library, as far as it has any.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A function was not followed by what it needs.
    #[error("bad substitution")]
    BadSubstitution,
    /// Something that is no function follows the name.
    #[error("missing closing brace")]
    MissingClosingBrace,
    /// `${` is not followed by a name.
    #[error("unable to parse variable name")]
    VariableName,
    /// An argument of a function is missing, or does not end.
    #[error("unable to parse substitution within function")]
    Argument,
    /// The variable has no value, in [`Mode::Strict`].
    #[error("variable not set (strict mode): \"{0}\"")]
    NotSet(String),
    /// A variable was given whose name no text can use.
    #[error("'{0}' var name is invalid, must match '^[_[:alpha:]][_[:alpha:][:digit:]]*$'")]
    InvalidName(String),
    /// A substring ends beyond what a number can say: Flux's library panics.
    #[error("a substring cannot start at {start} and have a length of {length}")]
    Substring {
        /// First byte.
        start: i64,
        /// Number of bytes.
        length: i64,
    },
    /// The result is no text: a substring cut a character in two, or a value was binary. Flux fails where it reads
    /// the result as YAML.
    #[error("yaml: invalid UTF-8 in the substituted text")]
    NotText,
    /// More than [`MAXIMUM_DEPTH`] functions stand in each other.
    #[error("substitutions are nested more than {MAXIMUM_DEPTH} deep")]
    TooDeep,
    /// The result, or what is on the way to it, exceeds [`MAXIMUM_BYTES`].
    #[error("substitutions make more than {MAXIMUM_BYTES} bytes")]
    TooLarge,
    /// Matching patterns took too many steps.
    #[error("substitutions match patterns for too long")]
    TooLong,
}
