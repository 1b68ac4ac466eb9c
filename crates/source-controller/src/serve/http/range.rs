//! The Range header (RFC 9110, section 14), for one range of bytes. A server may ignore what it does not like, so
//! several ranges, other units and malformed texts mean the whole.

/// Range to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Range {
    Whole,
    /// Never empty.
    Part {
        offset: u64,
        length: u64,
    },
    Unsatisfiable,
}

impl Range {
    /// Reads the header's value for content of a size.
    pub(super) fn parse(value: &str, size: u64) -> Self {
        let spec = value.strip_prefix("bytes=").filter(|spec| !spec.contains(','));
        let Some((first, last)) = spec.and_then(|spec| spec.split_once('-')) else {
            return Self::Whole;
        };
        match (number(first), number(last)) {
            // The last bytes; more than there are is all.
            (Number::None, Number::Some(0)) => Self::Unsatisfiable,
            (Number::None, Number::Some(length)) => Self::part(size.saturating_sub(length), size),
            (Number::Some(first), Number::None) => Self::part(first, size),
            (Number::Some(first), Number::Some(last)) if first <= last => {
                Self::part(first, last.saturating_add(1).min(size))
            }
            _ => Self::Whole,
        }
    }

    fn part(offset: u64, end: u64) -> Self {
        if offset >= end {
            Self::Unsatisfiable
        } else {
            Self::Part {
                offset,
                length: end - offset,
            }
        }
    }
}

enum Number {
    None,
    Some(u64),
    Invalid,
}

fn number(text: &str) -> Number {
    match text.trim() {
        "" => Number::None,
        text if text.bytes().all(|byte| byte.is_ascii_digit()) => {
            Number::Some(text.parse().unwrap_or(u64::MAX))
        }
        _ => Number::Invalid,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_for_content_of_ten_bytes() {
        let part = |offset, length| Range::Part { offset, length };
        let table = [
            ("bytes=0-", part(0, 10)),
            ("bytes=4-", part(4, 6)),
            ("bytes=4-4", part(4, 1)),
            ("bytes=4-100", part(4, 6)),
            ("bytes=9-", part(9, 1)),
            ("bytes=-3", part(7, 3)),
            ("bytes=-100", part(0, 10)),
            ("bytes=4-99999999999999999999999", part(4, 6)),
            ("bytes=10-", Range::Unsatisfiable),
            ("bytes=99999999999999999999999-", Range::Unsatisfiable),
            ("bytes=-0", Range::Unsatisfiable),
            ("bytes=5-4", Range::Whole),
            ("bytes=-", Range::Whole),
            ("bytes=0-1,3-4", Range::Whole),
            ("bytes=+1-2", Range::Whole),
            ("bytes=a-b", Range::Whole),
            ("lines=0-1", Range::Whole),
            ("", Range::Whole),
        ];
        for (value, expected) in table {
            assert_eq!(Range::parse(value, 10), expected, "{value}");
        }
        assert_eq!(Range::parse("bytes=0-", 0), Range::Unsatisfiable);
    }
}
