//! Reads formats: flags, width, precision, argument indexes, verbs.

use crate::Value;
use go_text::rune;

use super::printer::Printer;
use super::scalar::Flags;

/// Prints operands by a format: Go's `doPrintf`.
pub(super) fn print(printer: &mut Printer, format: &[u8], operands: &[Value]) {
    let mut reader = Reader {
        format,
        at: 0,
        operands,
        next: 0,
        is_reordered: false,
        is_good_index: true,
        is_after_index: false,
    };
    while reader.copy_text(printer) {
        if printer.is_full() || !reader.directive(printer) {
            break;
        }
    }
    if !reader.is_reordered {
        report_extra(printer, operands.get(reader.next..).unwrap_or_default());
    }
}

fn report_extra(printer: &mut Printer, extra: &[Value]) {
    if extra.is_empty() {
        return;
    }
    printer.flags = Flags::default();
    printer.write(b"%!(EXTRA ");
    for (index, operand) in extra.iter().enumerate() {
        if index > 0 {
            printer.write(b", ");
        }
        if operand.is_untyped_nil() {
            printer.write(b"<nil>");
        } else {
            printer.write(operand.type_name().as_bytes());
            printer.write(b"=");
            printer.print_operand(operand, 'v');
        }
    }
    printer.write(b")");
}

struct Reader<'f> {
    format: &'f [u8],
    at: usize,
    operands: &'f [Value],
    /// The operand that comes next.
    next: usize,
    is_reordered: bool,
    is_good_index: bool,
    /// True if what was read last is an index such as `[3]`.
    is_after_index: bool,
}

impl Reader<'_> {
    /// Copies text up to a directive, and tells whether there is one.
    fn copy_text(&mut self, printer: &mut Printer) -> bool {
        self.is_good_index = true;
        let rest = &self.format[self.at..];
        let length = rest.iter().position(|byte| *byte == b'%').unwrap_or(rest.len());
        printer.write(&rest[..length]);
        self.at += length + 1;
        length < rest.len()
    }

    /// Prints one directive; false at the end of the format.
    fn directive(&mut self, printer: &mut Printer) -> bool {
        printer.flags = Flags::default();
        if self.flags(printer) {
            return true;
        }
        self.index();
        self.width(printer);
        self.precision(printer);
        if !self.is_after_index {
            self.index();
        }
        if self.at >= self.format.len() {
            printer.write(b"%!(NOVERB)");
            return false;
        }
        let (verb, width) = rune::decode(&self.format[self.at..]);
        self.at += width;
        self.verb(printer, verb);
        true
    }

    /// Reads flags; a simple verb right behind them is printed at once, and true is returned.
    fn flags(&mut self, printer: &mut Printer) -> bool {
        while let Some(byte) = self.peek() {
            let flags = &mut printer.flags;
            match byte {
                b'#' => flags.sharp = true,
                b'0' => flags.zero = true,
                b'+' => flags.plus = true,
                b'-' => flags.minus = true,
                b' ' => flags.space = true,
                b'a'..=b'z' if self.next < self.operands.len() => {
                    self.at += 1;
                    self.print_next(printer, char::from(byte));
                    return true;
                }
                _ => break,
            }
            self.at += 1;
        }
        false
    }

    fn width(&mut self, printer: &mut Printer) {
        if self.take(b'*') {
            let width = self.number_operand();
            if width.is_none() {
                printer.write(b"%!(BADWIDTH)");
            }
            let flags = &mut printer.flags;
            if width.is_some_and(|width| width < 0) {
                flags.minus = true;
                flags.zero = false;
            }
            flags.width = width.map(|width| width.unsigned_abs() as usize);
            self.is_after_index = false;
            return;
        }
        printer.flags.width = self.number();
        if self.is_after_index && printer.flags.width.is_some() {
            self.is_good_index = false;
        }
    }

    fn precision(&mut self, printer: &mut Printer) {
        // A point at the very end is taken for a verb.
        if self.at + 1 >= self.format.len() || !self.take(b'.') {
            return;
        }
        if self.is_after_index {
            self.is_good_index = false;
        }
        self.index();
        if self.take(b'*') {
            let precision = self
                .number_operand()
                .and_then(|number| usize::try_from(number).ok());
            if precision.is_none() {
                printer.write(b"%!(BADPREC)");
            }
            printer.flags.precision = precision;
            self.is_after_index = false;
            return;
        }
        printer.flags.precision = Some(self.number().unwrap_or(0));
    }

    fn verb(&mut self, printer: &mut Printer, verb: char) {
        let problem: &[u8] = match verb {
            '%' => return printer.write(b"%"),
            _ if !self.is_good_index => b"(BADINDEX)",
            _ if self.next >= self.operands.len() => b"(MISSING)",
            verb => return self.print_next(printer, verb),
        };
        printer.write(b"%!");
        rune::encode(verb, &mut printer.out);
        printer.write(problem);
    }

    fn print_next(&mut self, printer: &mut Printer, verb: char) {
        if matches!(verb, 'v' | 'w') {
            let flags = &mut printer.flags;
            flags.sharp_v = std::mem::take(&mut flags.sharp);
            flags.plus_v = std::mem::take(&mut flags.plus);
        }
        let operands = self.operands;
        printer.print_operand(&operands[self.next], verb);
        self.next += 1;
    }

    fn peek(&self) -> Option<u8> {
        self.format.get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    /// Reads an index such as `[3]`, which chooses the next operand.
    fn index(&mut self) {
        self.is_after_index = false;
        if self.peek() != Some(b'[') {
            return;
        }
        self.is_reordered = true;
        let rest = &self.format[self.at..];
        let Some(close) = rest
            .iter()
            .position(|byte| *byte == b']')
            .filter(|_| rest.len() >= 3)
        else {
            self.is_good_index = false;
            self.at += 1;
            return;
        };
        self.at += close + 1;
        let number = std::str::from_utf8(&rest[1..close]).ok();
        let index = number.and_then(decimal);
        // Go takes an index out of range for one, but nothing else.
        self.is_after_index = index.is_some();
        match index.and_then(|index| index.checked_sub(1)) {
            Some(index) if index < self.operands.len() => self.next = index,
            _ => self.is_good_index = false,
        }
    }

    /// Reads a number of the format. One that is too large swallows the rest.
    fn number(&mut self) -> Option<usize> {
        let rest = &self.format[self.at..];
        let length = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if length == 0 {
            return None;
        }
        let number = std::str::from_utf8(&rest[..length]).ok().and_then(decimal);
        self.at = match number {
            Some(_) => self.at + length,
            None => self.format.len(),
        };
        number
    }

    /// Takes an operand as width or precision: Go's `intFromArg`.
    fn number_operand(&mut self) -> Option<i64> {
        let operand = self.operands.get(self.next)?;
        self.next += 1;
        let unnamed = match operand {
            Value::Object(object) => object.underlying(),
            _ => None,
        };
        let number = match unnamed.as_ref().unwrap_or(operand) {
            Value::Int(number, _) => *number,
            Value::Uint(number, _) => i64::try_from(*number).ok()?,
            _ => return None,
        };
        (-TOO_LARGE..=TOO_LARGE).contains(&number).then_some(number)
    }
}

const TOO_LARGE: i64 = 1_000_000;

/// Reads digits as Go's `parsenum`, which gives up when a further digit follows on a number that is too large.
fn decimal(digits: &str) -> Option<usize> {
    if digits.is_empty() {
        return None;
    }
    let mut number: i64 = 0;
    for byte in digits.bytes() {
        if !byte.is_ascii_digit() || number > TOO_LARGE {
            return None;
        }
        number = number * 10 + i64::from(byte - b'0');
    }
    usize::try_from(number).ok()
}
