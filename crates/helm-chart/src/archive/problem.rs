//! Problems of an archive.

use std::{fmt, io};

use crate::error::go_errno;

/// Why an archive was refused.
#[derive(Debug)]
pub(super) enum Problem {
    /// The stream does not start as gzip does.
    NoGzip,
    /// The stream ends too early, or is damaged.
    Damaged(String),
    /// A path that no chart may hold.
    Path(String),
    TooLarge(String),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoGzip => f.write_str("gzip: invalid header"),
            Self::Damaged(text) | Self::Path(text) | Self::TooLarge(text) => f.write_str(text),
        }
    }
}

impl Problem {
    pub(super) fn path(text: impl Into<String>) -> Self {
        Self::Path(text.into())
    }

    /// Words an error of the decompressor as compress/gzip does.
    pub(super) fn of_stream(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Self::Damaged("unexpected EOF".to_owned()),
            io::ErrorKind::InvalidInput if error.to_string().contains("header") => Self::NoGzip,
            io::ErrorKind::InvalidInput => Self::Damaged("gzip: invalid checksum".to_owned()),
            _ => Self::Damaged(go_errno(error)),
        }
    }
}
