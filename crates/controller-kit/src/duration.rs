//! Durations on the command line, as Go writes them ("750ms", "1h30m").
//!
//! The reading is [`api::meta::Duration`]'s; here is only what flags add to it: negative durations, which Go has, are refused,
//! because no flag of a controller has a use for one.

use std::time::Duration;

/// Why a text is not a duration.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    /// Go would not read it either.
    #[error("failed to parse duration {text:?}")]
    Parse {
        /// The given text.
        text: String,
        /// The error.
        #[source]
        source: api::meta::ParseDurationError,
    },
    /// It is negative.
    #[error("failed to parse duration {0:?}: must not be negative")]
    Negative(String),
}

/// Parses what Go's `time.ParseDuration` accepts, except negative durations.
pub fn parse(text: &str) -> Result<Duration, Error> {
    let parsed: api::meta::Duration = text.parse().map_err(|source| Error::Parse {
        text: text.to_owned(),
        source,
    })?;
    if parsed.as_nanos() < 0 {
        return Err(Error::Negative(text.to_owned()));
    }
    Ok(parsed.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_take_what_go_takes_except_negative_durations() {
        assert_eq!(parse("1h30m"), Ok(Duration::from_secs(5400)));
        assert_eq!(parse("0"), Ok(Duration::ZERO));
        assert_eq!(parse("-1s"), Err(Error::Negative("-1s".to_owned())));
        for text in ["", "3", "1d", "1s "] {
            assert!(matches!(parse(text), Err(Error::Parse { .. })), "{text:?}");
        }
    }
}
