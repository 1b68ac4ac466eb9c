//! Points in time as Go writes them.

use std::fmt;
use std::str::FromStr as _;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A point in time that a record names, in the words in which it does: RFC 3339 with up to nine digits of a second and any
/// offset. Who reads a record and writes it again leaves it as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Time {
    text: String,
    at: Timestamp,
}

/// Where Go's clock begins; what `omitzero` leaves out.
pub(crate) const ZERO: &str = "0001-01-01T00:00:00Z";

impl Time {
    /// The moment as Go writes it in UTC: without a fraction where there is none.
    #[must_use]
    pub fn from_timestamp(at: Timestamp) -> Self {
        Self {
            text: at.to_string(),
            at,
        }
    }

    /// Reads what a record says. None for Go's zero, which Helm 3 writes as an empty text.
    ///
    /// # Errors
    /// When the text is no RFC 3339 time.
    pub fn read(text: &str) -> Result<Option<Self>, jiff::Error> {
        if text.is_empty() || text == ZERO {
            return Ok(None);
        }
        let at = Timestamp::from_str(text)?;
        Ok(Some(Self {
            text: text.to_owned(),
            at,
        }))
    }

    /// The moment.
    #[must_use]
    pub fn at(&self) -> Timestamp {
        self.at
    }
}

impl fmt::Display for Time {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

/// Reads a field that may be missing, null, empty or zero.
pub(crate) fn maybe<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Time>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    Time::read(text.as_deref().unwrap_or_default()).map_err(de::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_keep_their_words_and_zeros_are_none() {
        let text = "2026-11-22T11:02:03.1200451+02:00";
        let read = Time::read(text).unwrap().unwrap();
        assert_eq!(read.to_string(), text);
        assert_eq!(read.at().to_string(), "2026-11-22T09:02:03.1200451Z");
        for zero in ["", ZERO] {
            assert_eq!(Time::read(zero).unwrap(), None);
        }
        assert!(Time::read("yesterday").is_err());
    }

    #[test]
    fn ours_are_written_as_go_writes_them() {
        let written = |nanosecond| {
            let at = Timestamp::new(1_700_000_000, nanosecond).unwrap();
            Time::from_timestamp(at).to_string()
        };
        assert_eq!(written(0), "2023-11-14T22:13:20Z");
        assert_eq!(written(120_000_000), "2023-11-14T22:13:20.12Z");
        assert_eq!(written(1), "2023-11-14T22:13:20.000000001Z");
    }
}
