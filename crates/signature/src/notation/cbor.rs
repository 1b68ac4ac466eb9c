//! Just enough CBOR to read a COSE envelope, and to write what COSE signs. Bounded in depth; lengths are those of slices
//! that are there.

/// Envelopes are four deep.
const MAX_DEPTH: usize = 8;
/// Headers have less than ten.
const MAX_ENTRIES: usize = 100;

/// A value. Only forms of definite length are read, which is all that COSE's deterministic encoding has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value<'a> {
    Integer(i128),
    Bytes(&'a [u8]),
    Text(&'a str),
    Array(Vec<Value<'a>>),
    Map(Vec<(Value<'a>, Value<'a>)>),
    Tag(u64, Box<Value<'a>>),
    /// Booleans, null, floats: nothing that is looked at.
    Simple,
}

impl<'a> Value<'a> {
    /// Reads one value that fills the whole input.
    pub(super) fn read(input: &'a [u8]) -> Option<Self> {
        let mut rest = input;
        let value = value(&mut rest, 0)?;
        rest.is_empty().then_some(value)
    }

    pub(super) fn bytes(&self) -> Option<&'a [u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    pub(super) fn text(&self) -> Option<&'a str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn array(&self) -> Option<&[Value<'a>]> {
        match self {
            Self::Array(values) => Some(values),
            _ => None,
        }
    }

    /// The entries of a map in which no key stands twice.
    pub(super) fn map(&self) -> Option<&[(Value<'a>, Value<'a>)]> {
        let Self::Map(entries) = self else {
            return None;
        };
        if entries.len() > MAX_ENTRIES {
            return None;
        }
        let repeats = |(index, (key, _)): (usize, &(Value<'a>, Value<'a>))| {
            entries[..index].iter().any(|(other, _)| other == key)
        };
        (!entries.iter().enumerate().any(repeats)).then_some(entries)
    }
}

fn value<'a>(rest: &mut &'a [u8], depth: usize) -> Option<Value<'a>> {
    if depth > MAX_DEPTH {
        return None;
    }
    let (first, after) = rest.split_first()?;
    *rest = after;
    let (major, minor) = (first >> 5, first & 0x1f);
    if major == 7 {
        let length = match minor {
            0..=23 => 0,
            24 => 1,
            25 => 2,
            26 => 4,
            27 => 8,
            _ => return None,
        };
        take(rest, length)?;
        return Some(Value::Simple);
    }
    let argument = argument(rest, minor)?;
    Some(match major {
        0 => Value::Integer(i128::from(argument)),
        1 => Value::Integer(-1 - i128::from(argument)),
        2 => Value::Bytes(take(rest, usize::try_from(argument).ok()?)?),
        3 => Value::Text(std::str::from_utf8(take(rest, usize::try_from(argument).ok()?)?).ok()?),
        4 => Value::Array(
            (0..argument)
                .map(|_| value(rest, depth + 1))
                .collect::<Option<_>>()?,
        ),
        5 => Value::Map(
            (0..argument)
                .map(|_| Some((value(rest, depth + 1)?, value(rest, depth + 1)?)))
                .collect::<Option<_>>()?,
        ),
        _ => Value::Tag(argument, Box::new(value(rest, depth + 1)?)),
    })
}

fn argument(rest: &mut &[u8], minor: u8) -> Option<u64> {
    let length = match minor {
        0..=23 => return Some(u64::from(minor)),
        24 => 1,
        25 => 2,
        26 => 4,
        27 => 8,
        _ => return None,
    };
    let bytes = take(rest, length)?;
    Some(bytes.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(taken)
}

/// Builds the structure that COSE signs for a message with one signer: protected header and payload, as they
/// were received.
pub(super) fn signature_structure(protected: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut structure = vec![0x84];
    write(&mut structure, 3, b"Signature1");
    write(&mut structure, 2, protected);
    write(&mut structure, 2, b"");
    write(&mut structure, 2, payload);
    structure
}

fn write(output: &mut Vec<u8>, major: u8, bytes: &[u8]) {
    let length = bytes.len() as u64;
    let big_endian = length.to_be_bytes();
    match length {
        0..=23 => output.push(major << 5 | big_endian[7]),
        24..=0xff => output.extend([major << 5 | 24, big_endian[7]]),
        0x100..=0xffff => {
            output.push(major << 5 | 25);
            output.extend(&big_endian[6..]);
        }
        0x1_0000..=0xffff_ffff => {
            output.push(major << 5 | 26);
            output.extend(&big_endian[4..]);
        }
        _ => {
            output.push(major << 5 | 27);
            output.extend(&big_endian);
        }
    }
    output.extend(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_whole_or_not_at_all() {
        use Value::{Array, Bytes, Integer, Map, Simple, Tag, Text};
        assert_eq!(Value::read(b"\x18\xff"), Some(Integer(255)));
        assert_eq!(Value::read(b"\x38\x24"), Some(Integer(-37)));
        assert_eq!(
            Value::read(b"\xd2\x83\x41a\x62bc\xf6"),
            Some(Tag(18, Box::new(Array(vec![Bytes(b"a"), Text("bc"), Simple]))))
        );
        assert_eq!(
            Value::read(b"\xa1\x01\x02"),
            Some(Map(vec![(Integer(1), Integer(2))]))
        );
        assert_eq!(
            Value::read(b"\xa2\x01\x02\x01\x03").unwrap().map(),
            None,
            "a key twice"
        );
        for wrong in [
            &b""[..],
            b"\x18",
            b"\x43ab",
            b"\x61\xff",
            b"\x5f\x41a\xff",
            b"\x9b\xff\xff\xff\xff\xff\xff\xff\xff",
            b"\xbb\xff\xff\xff\xff\xff\xff\xff\xff\x01",
            b"\x01\x01",
            &[0x81; 100],
        ] {
            assert_eq!(Value::read(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn lengths_are_written_as_they_are_read() {
        for length in [0, 23, 24, 255, 256, 70_000] {
            let payload = vec![7; length];
            let structure = signature_structure(b"p", &payload);
            let value = Value::read(&structure).unwrap();
            assert_eq!(
                value.array().unwrap(),
                [
                    Value::Text("Signature1"),
                    Value::Bytes(b"p"),
                    Value::Bytes(b""),
                    Value::Bytes(&payload)
                ]
            );
        }
    }
}
