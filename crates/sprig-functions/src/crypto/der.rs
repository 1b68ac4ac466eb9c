//! DER, as far as keys and certificates need it.

pub(super) const INTEGER: u8 = 0x02;
pub(super) const BIT_STRING: u8 = 0x03;
pub(super) const OCTET_STRING: u8 = 0x04;
pub(super) const OBJECT_IDENTIFIER: u8 = 0x06;
pub(super) const UTF8_STRING: u8 = 0x0c;
pub(super) const PRINTABLE_STRING: u8 = 0x13;
pub(super) const UTC_TIME: u8 = 0x17;
pub(super) const GENERALIZED_TIME: u8 = 0x18;
pub(super) const SEQUENCE: u8 = 0x30;
pub(super) const SET: u8 = 0x31;

/// The tag of an element that has its own meaning where it stands; made of other elements.
pub(super) const fn explicit(number: u8) -> u8 {
    0xa0 | number
}

/// Writes an element with the contents, one behind the other.
pub(super) fn element(tag: u8, contents: &[&[u8]]) -> Vec<u8> {
    let length: usize = contents.iter().map(|part| part.len()).sum();
    let mut der = Vec::with_capacity(length + 6);
    der.push(tag);
    if length < 0x80 {
        der.push(length as u8);
    } else {
        let bytes = length.to_be_bytes();
        let leading = bytes.iter().take_while(|&&b| b == 0).count();
        der.push(0x80 | (bytes.len() - leading) as u8);
        der.extend_from_slice(&bytes[leading..]);
    }
    for part in contents {
        der.extend_from_slice(part);
    }
    der
}

/// Writes a positive integer.
pub(super) fn integer(bytes: &[u8]) -> Vec<u8> {
    let leading = bytes.iter().take_while(|&&b| b == 0).count();
    let bytes = &bytes[leading..];
    let needs_zero = bytes.first().is_none_or(|&b| b >= 0x80);
    element(INTEGER, &[if needs_zero { &[0] } else { &[] }, bytes])
}

/// An element that was read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Element<'a> {
    pub(super) tag: u8,
    pub(super) contents: &'a [u8],
    /// All of it, with tag and length.
    pub(super) whole: &'a [u8],
}

/// Reads elements from the front.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    /// The next element, whatever it is.
    pub(super) fn any(&mut self) -> Option<Element<'a>> {
        let [tag, length, rest @ ..] = self.0 else {
            return None;
        };
        // Tags of several bytes are not used by what is read here.
        if tag & 0x1f == 0x1f {
            return None;
        }
        let (length, rest) = match *length {
            short @ 0..=0x7f => (usize::from(short), rest),
            0x81..=0x84 => {
                let (bytes, rest) = rest.split_at_checked(usize::from(length & 0x7f))?;
                (
                    bytes.iter().fold(0, |length, &b| length << 8 | usize::from(b)),
                    rest,
                )
            }
            _ => return None,
        };
        let (contents, after) = rest.split_at_checked(length)?;
        let whole = &self.0[..self.0.len() - after.len()];
        self.0 = after;
        Some(Element {
            tag: *tag,
            contents,
            whole,
        })
    }

    /// The next element if it has this tag; else nothing is taken.
    pub(super) fn tagged(&mut self, tag: u8) -> Option<Element<'a>> {
        let mut ahead = *self;
        let element = ahead.any().filter(|element| element.tag == tag)?;
        *self = ahead;
        Some(element)
    }

    /// The inside of the next element if it has this tag.
    pub(super) fn inside(&mut self, tag: u8) -> Option<Reader<'a>> {
        self.tagged(tag).map(|element| Reader(element.contents))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
