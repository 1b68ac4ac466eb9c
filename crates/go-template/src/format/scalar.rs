//! Prints and pads numbers, characters and strings: `fmt/format.go`.

use go_text::quote::{self, Quoting};
use go_text::{number, rune};

use super::printer::Printer;

/// The flags, width and precision of a directive.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flags {
    pub(super) width: Option<usize>,
    pub(super) precision: Option<usize>,
    pub(super) minus: bool,
    pub(super) plus: bool,
    pub(super) sharp: bool,
    pub(super) space: bool,
    pub(super) zero: bool,
    /// `%+v`
    pub(super) plus_v: bool,
    /// `%#v`
    pub(super) sharp_v: bool,
}

/// The case of hexadecimal digits and of their `x`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Case {
    Lower,
    Upper,
}

/// Whether an integer is signed, and its sign.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    None,
    Positive,
    Negative,
}

impl Printer {
    /// Writes text padded to the width, which is counted in characters.
    pub(super) fn pad(&mut self, text: &[u8]) {
        let missing = match self.flags.width {
            Some(width) => width.saturating_sub(rune::decode_all(text).count()),
            None => 0,
        };
        if self.flags.minus {
            self.write(text);
            self.write_padding(missing);
        } else {
            self.write_padding(missing);
            self.write(text);
        }
    }

    fn write_padding(&mut self, count: usize) {
        let zeros = self.flags.zero && !self.flags.minus;
        let byte = if zeros { b'0' } else { b' ' };
        self.out.resize(self.out.len() + count, byte);
    }

    fn pad_with_spaces(&mut self, text: &[u8]) {
        let zero = std::mem::replace(&mut self.flags.zero, false);
        self.pad(text);
        self.flags.zero = zero;
    }

    /// Writes a string cut to the precision and padded.
    pub(super) fn print_text(&mut self, text: &[u8]) {
        self.pad(self.cut(text).len_of(text));
    }

    fn cut(&self, text: &[u8]) -> Cut {
        let Some(precision) = self.flags.precision else {
            return Cut(text.len());
        };
        let mut length = 0;
        for _ in 0..precision {
            let (_, width) = rune::decode(&text[length..]);
            length += width;
        }
        Cut(length)
    }

    pub(super) fn pad_quoted(&mut self, text: &[u8]) {
        let text = self.cut(text).len_of(text);
        let mut out = Vec::with_capacity(text.len() + 2);
        if self.flags.sharp && quote::can_backquote(text) {
            out.push(b'`');
            out.extend_from_slice(text);
            out.push(b'`');
        } else {
            let quoting = Quoting {
                mark: '"',
                ascii_only: self.flags.plus,
            };
            quote::quote_as(text, quoting, &mut out);
        }
        self.pad(&out);
    }

    /// Writes bytes in hexadecimal (`%x` of strings).
    pub(super) fn pad_hex(&mut self, text: &[u8], case: Case) {
        let text = match self.flags.precision {
            Some(precision) if precision < text.len() => &text[..precision],
            _ => text,
        };
        let (digits, prefix) = digits_of(case);
        let mut out = Vec::with_capacity(text.len() * 2 + 2);
        for (index, byte) in text.iter().enumerate() {
            if self.flags.space && index > 0 {
                out.push(b' ');
            }
            if self.flags.sharp && (index == 0 || self.flags.space) {
                out.extend_from_slice(&[b'0', prefix]);
            }
            out.push(digits[usize::from(byte >> 4)]);
            out.push(digits[usize::from(byte & 15)]);
        }
        self.pad(&out);
    }

    pub(super) fn pad_character(&mut self, code: u64) {
        let mut out = Vec::new();
        rune::encode(character(code), &mut out);
        self.pad(&out);
    }

    pub(super) fn pad_quoted_character(&mut self, code: u64) {
        let quoting = Quoting {
            mark: '\'',
            ascii_only: self.flags.plus,
        };
        let mut out = vec![b'\''];
        quote::escape(character(code), quoting, &mut out);
        out.push(b'\'');
        self.pad(&out);
    }

    /// Writes `U+0041`, with `#` also the character.
    pub(super) fn pad_unicode(&mut self, code: u64) {
        let digits = self.flags.precision.map_or(4, |precision| precision.max(4));
        let hexadecimal = format!("{code:X}");
        let mut text = String::from("U+");
        text.extend(std::iter::repeat_n('0', digits.saturating_sub(hexadecimal.len())));
        text.push_str(&hexadecimal);
        let printable = u32::try_from(code).ok().and_then(char::from_u32);
        if let Some(character) = printable.filter(|character| rune::is_printable(*character))
            && self.flags.sharp
        {
            text.push_str(" '");
            text.push(character);
            text.push('\'');
        }
        self.pad_with_spaces(text.as_bytes());
    }

    /// Writes an integer without padding and other flags.
    pub(super) fn write_hex(&mut self, number: u64, with_prefix: bool) {
        let sharp = std::mem::replace(&mut self.flags.sharp, with_prefix);
        self.pad_integer(number, false, 16, 'v', Case::Lower);
        self.flags.sharp = sharp;
    }

    /// Writes an integer of any base: Go's `fmtInteger`.
    pub(super) fn pad_integer(&mut self, number: u64, is_negative: bool, base: u64, verb: char, case: Case) {
        let flags = self.flags;
        let has_sign = is_negative || flags.plus || flags.space;
        let minimum = match flags {
            Flags {
                precision: Some(0), ..
            } if number == 0 => return self.pad_with_spaces(b""),
            Flags {
                precision: Some(precision),
                ..
            } => precision,
            Flags {
                zero: true,
                minus: false,
                width: Some(width),
                ..
            } => width.saturating_sub(usize::from(has_sign)),
            _ => 0,
        };
        // The text is made from its end.
        let (digits, prefix) = digits_of(case);
        let mut text = Vec::with_capacity(minimum.max(20) + 4);
        let mut rest = number;
        loop {
            text.push(digits[(rest % base) as usize]);
            rest /= base;
            if rest == 0 {
                break;
            }
        }
        if text.len() < minimum {
            text.resize(minimum, b'0');
        }
        match base {
            2 if flags.sharp => text.extend_from_slice(b"b0"),
            8 if flags.sharp && text.last() != Some(&b'0') => text.push(b'0'),
            16 if flags.sharp => text.extend_from_slice(&[prefix, b'0']),
            _ => {}
        }
        if verb == 'O' {
            text.extend_from_slice(b"o0");
        }
        if is_negative {
            text.push(b'-');
        } else if flags.plus {
            text.push(b'+');
        } else if flags.space {
            text.push(b' ');
        }
        text.reverse();
        self.pad_with_spaces(&text);
    }

    /// Writes a float: Go's `fmtFloat`.
    pub(super) fn pad_float(&mut self, value: f64, verb: char, precision: Option<usize>) {
        let precision = self.flags.precision.or(precision);
        let mut text = number::format_float(value, verb, precision).into_bytes();
        if !matches!(text.first(), Some(b'-' | b'+')) {
            text.insert(0, b'+');
        }
        if self.flags.space && text[0] == b'+' && !self.flags.plus {
            text[0] = b' ';
        }
        if matches!(text[1], b'I' | b'N') {
            let hides_sign = text[1] == b'N' && !self.flags.space && !self.flags.plus;
            let shown = if hides_sign { &text[1..] } else { &text };
            return self.pad_with_spaces(shown);
        }
        if self.flags.sharp && verb != 'b' {
            add_zeros(&mut text, verb, precision);
        }
        if !self.flags.plus && text[0] == b'+' {
            return self.pad(&text[1..]);
        }
        match self.flags {
            Flags {
                zero: true,
                minus: false,
                width: Some(width),
                ..
            } if width > text.len() => {
                self.write(&text[..1]);
                self.write_padding(width - text.len());
                self.write(&text[1..]);
            }
            _ => self.pad(&text),
        }
    }
}

struct Cut(usize);

impl Cut {
    fn len_of(self, text: &[u8]) -> &[u8] {
        &text[..self.0]
    }
}

/// Adds the point and the zeros that `#` asks for. The text starts with a sign.
fn add_zeros(text: &mut Vec<u8>, verb: char, precision: Option<usize>) {
    let mut wanted = match verb {
        'v' | 'g' | 'G' | 'x' => {
            precision.map_or(6, |precision| i64::try_from(precision).unwrap_or(i64::MAX))
        }
        _ => 0,
    };
    let is_exponent = |byte: &u8| match byte {
        b'p' | b'P' => true,
        b'e' | b'E' => !matches!(verb, 'x' | 'X'),
        _ => false,
    };
    let end = text.iter().position(is_exponent).unwrap_or(text.len());
    let tail = text.split_off(end);
    let mut has_point = false;
    let mut is_significant = false;
    for byte in &text[1..] {
        if *byte == b'.' {
            has_point = true;
            continue;
        }
        is_significant |= *byte != b'0';
        wanted -= i64::from(is_significant);
    }
    if !has_point {
        if text.len() == 2 && text[1] == b'0' {
            wanted -= 1;
        }
        text.push(b'.');
    }
    let zeros = usize::try_from(wanted).unwrap_or(0);
    text.resize(text.len() + zeros, b'0');
    text.extend_from_slice(&tail);
}

fn digits_of(case: Case) -> (&'static [u8; 16], u8) {
    match case {
        Case::Lower => (b"0123456789abcdef", b'x'),
        Case::Upper => (b"0123456789ABCDEF", b'X'),
    }
}

/// Returns the character of a number, where it is one.
fn character(code: u64) -> char {
    u32::try_from(code)
        .ok()
        .and_then(char::from_u32)
        .unwrap_or(rune::ERROR)
}
