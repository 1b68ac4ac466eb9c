//! Errors of a push.

use super::At;

/// Why nothing was pushed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The server cannot be talked to, or refuses us.
    #[error(transparent)]
    Talk(#[from] crate::Error),
    /// The objects cannot be sent.
    #[error("failed to write the pack")]
    Pack(#[from] git_pack::Error),
    /// No reference can have this name.
    #[error("invalid reference '{0}': it must begin with 'refs/' and be a valid name")]
    InvalidReference(String),
    /// A push option that cannot be sent.
    #[error("invalid push option: it is longer than 65516 bytes, or has more than one line")]
    InvalidOption,
    /// The reference is not where it was when the commit was made.
    #[error("'{reference}' is at {found} and not at {expected}: it was changed in the meantime")]
    Moved {
        /// Its name.
        reference: String,
        /// Where it was to be.
        expected: At,
        /// Where it is.
        found: At,
    },
    /// The server lacks what is needed.
    #[error("failed to push: {0}")]
    Unsupported(&'static str),
    /// The server does not take the objects.
    #[error("the server refuses the pack: {reason}{}", quoted(.said))]
    Unpack {
        /// Its reason.
        reason: String,
        /// What it printed.
        said: String,
    },
    /// The server does not move the reference.
    #[error("the server refuses to update '{reference}': {reason}{}", quoted(.said))]
    Rejected {
        /// Its name.
        reference: String,
        /// The server's reason.
        reason: String,
        /// What it, or a hook of it, printed.
        said: String,
    },
    /// All was sent, and no answer came. Nothing is known about what became of it.
    #[error("the server did not say whether it took the push")]
    Unanswered(#[source] Box<crate::Error>),
}

impl Error {
    /// Returns whether another push came first: to fetch and to make the commit again helps.
    pub fn is_moved(&self) -> bool {
        match self {
            Self::Moved { .. } => true,
            Self::Rejected { reason, .. } => {
                let reason = reason.to_ascii_lowercase();
                MOVED.iter().any(|words| reason.contains(words))
            }
            _ => false,
        }
    }
}

/// How Git and the well-known servers say that a reference moved, or is just being moved.
const MOVED: [&str; 8] = [
    "fetch first",
    "non-fast-forward",
    "failed to update ref",
    "failed to lock",
    "cannot lock ref",
    "unable to lock",
    "incorrect old value provided",
    "stale info",
];

fn quoted(said: &str) -> String {
    let words: Vec<_> = said.split_whitespace().collect();
    if words.is_empty() {
        String::new()
    } else {
        format!(" ({})", words.join(" "))
    }
}
