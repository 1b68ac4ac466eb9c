//! Verbs: how each prints each kind of value (`fmt/print.go`).

use crate::value::Str;
use crate::{Error, ErrorKind, Kind, List, Map, Object, Type, Value};
use go_text::rune;

use super::scalar::{Case, Flags, Sign};

/// How deep values may nest. Go prints any depth; no manifest comes near this.
const MAX_DEPTH: u32 = 400;

/// Collects output. The flags are those of the directive that is being printed.
pub(super) struct Printer {
    pub(super) out: Vec<u8>,
    pub(super) flags: Flags,
    limit: usize,
    end: usize,
    /// True if a bad verb is being reported, in which methods have no say.
    is_reporting: bool,
    error: Option<Error>,
}

impl Printer {
    /// Starts behind what is there; `limit` is how much may be added.
    pub(super) fn new(out: Vec<u8>, limit: usize) -> Self {
        Self {
            end: out.len().saturating_add(limit),
            limit,
            out,
            flags: Flags::default(),
            is_reporting: false,
            error: None,
        }
    }

    pub(super) fn finish(self) -> (Vec<u8>, Option<Error>) {
        (self.out, self.error)
    }

    pub(super) fn into_text(self) -> Result<Vec<u8>, Error> {
        match self.error {
            Some(error) => Err(error),
            None => Ok(self.out),
        }
    }

    pub(super) fn write(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// Returns whether there is no more room. What was still to be printed is left out, and the call fails.
    pub(super) fn is_full(&mut self) -> bool {
        if self.out.len() > self.end && self.error.is_none() {
            self.fail(format!("exceeded {} bytes of formatted text", self.limit));
        }
        self.error.is_some()
    }

    fn fail(&mut self, message: String) {
        self.error = Some(Error::from_parts(ErrorKind::Limit, message));
    }

    /// Prints operands with spaces between those of which neither is a string.
    pub(super) fn print_all(
        &mut self,
        operands: &[Value],
        is_string: impl Fn(&Value) -> bool,
        print: impl Fn(&mut Self, &Value),
    ) {
        let mut after_string = false;
        for (index, operand) in operands.iter().enumerate() {
            let is_string = is_string(operand);
            if index > 0 && !is_string && !after_string {
                self.write(b" ");
            }
            print(self, operand);
            after_string = is_string;
        }
    }

    pub(super) fn print_plain(&mut self, operand: &Value) {
        self.print_operand(operand, 'v');
    }

    /// Prints as actions do: what a pointer points to, and `<no value>` for nothing.
    pub(super) fn print_printable(&mut self, value: &Value) {
        match value {
            Value::Invalid | Value::Nil => self.print_text(b"<no value>"),
            Value::Object(object) if object.type_().kind() == Kind::Pointer && !object.is_nil() => {
                match object.text() {
                    Some(text) => self.print_string(&text, 'v', value),
                    None => self.print_struct(&**object, 'v', 0),
                }
            }
            value => self.print_operand(value, 'v'),
        }
    }

    /// Prints an operand of a call: Go's `printArg`.
    pub(super) fn print_operand(&mut self, operand: &Value, verb: char) {
        if self.is_full() {
            return;
        }
        match (operand, verb) {
            (Value::Invalid | Value::Nil, 'T' | 'v') => self.pad(b"<nil>"),
            (Value::Invalid | Value::Nil, _) => self.bad_verb(verb, operand),
            (_, 'T') => self.print_text(operand.type_name().as_bytes()),
            (_, 'p') => self.print_pointer(operand, 'p'),
            (Value::Bytes(bytes), _) => self.print_bytes(bytes, verb, "[]byte", 0),
            _ => {
                if !self.print_by_method(operand, verb) {
                    self.print_value(operand, verb, 0);
                }
            }
        }
    }

    /// Lets a value print itself, where it has a method for that.
    fn print_by_method(&mut self, value: &Value, verb: char) -> bool {
        if self.is_reporting {
            return false;
        }
        if verb == 'w' {
            self.bad_verb(verb, value);
            return true;
        }
        let Value::Object(object) = value else {
            return false;
        };
        if self.flags.sharp_v || !matches!(verb, 'v' | 's' | 'x' | 'X' | 'q') {
            return false;
        }
        let Some(text) = object.text() else {
            return false;
        };
        self.print_string(&text, verb, value);
        true
    }

    /// Prints a value at a depth: Go's `printValue`.
    fn print_value(&mut self, value: &Value, verb: char, depth: u32) {
        if self.is_full() {
            return;
        }
        if depth > MAX_DEPTH {
            return self.fail(format!("exceeded {MAX_DEPTH} levels of a formatted value"));
        }
        if depth > 0 && self.print_by_method(value, verb) {
            return;
        }
        match value {
            Value::Invalid => self.write(b"<nil>"),
            Value::Nil if self.flags.sharp_v => self.write(b"interface {}(nil)"),
            Value::Nil => self.write(b"<nil>"),
            Value::List(list) => self.print_list(list, verb, depth),
            Value::Bytes(bytes) => self.print_bytes(bytes, verb, "[]uint8", depth + 1),
            Value::Map(map) => self.print_map(map, verb, depth),
            Value::Object(object) => self.print_object(object.as_ref(), value, verb, depth),
            Value::Func(_) => self.print_pointer(value, verb),
            scalar => self.print_scalar(scalar, verb, value),
        }
    }

    /// Prints a basic value; `owner` is the value of a named type that it belongs to, or itself.
    fn print_scalar(&mut self, value: &Value, verb: char, owner: &Value) {
        match value {
            Value::Bool(value) => match verb {
                't' | 'v' => self.pad(if *value { b"true" } else { b"false" }),
                _ => self.bad_verb(verb, owner),
            },
            Value::Int(number, _) => {
                let sign = if *number < 0 {
                    Sign::Negative
                } else {
                    Sign::Positive
                };
                self.print_integer(number.unsigned_abs(), sign, verb, owner);
            }
            Value::Uint(number, _) => self.print_integer(*number, Sign::None, verb, owner),
            Value::Float(number) => self.print_float(*number, verb, owner),
            Value::Complex(real, imaginary) => self.print_complex(*real, *imaginary, verb, owner),
            Value::String(text) => self.print_string(text, verb, owner),
            _ => self.print_value(value, verb, 0),
        }
    }

    fn print_integer(&mut self, number: u64, sign: Sign, verb: char, owner: &Value) {
        let is_negative = sign == Sign::Negative;
        // As characters, negative numbers are very large ones.
        let code = if is_negative {
            number.wrapping_neg()
        } else {
            number
        };
        match verb {
            'v' if self.flags.sharp_v && sign == Sign::None => self.write_hex(number, true),
            'v' | 'd' => self.pad_integer(number, is_negative, 10, verb, Case::Lower),
            'b' => self.pad_integer(number, is_negative, 2, verb, Case::Lower),
            'o' | 'O' => self.pad_integer(number, is_negative, 8, verb, Case::Lower),
            'x' => self.pad_integer(number, is_negative, 16, verb, Case::Lower),
            'X' => self.pad_integer(number, is_negative, 16, verb, Case::Upper),
            'c' => self.pad_character(code),
            'q' => self.pad_quoted_character(code),
            'U' => self.pad_unicode(code),
            _ => self.bad_verb(verb, owner),
        }
    }

    fn print_float(&mut self, number: f64, verb: char, owner: &Value) {
        match verb {
            'v' => self.pad_float(number, 'g', None),
            'b' | 'g' | 'G' | 'x' | 'X' => self.pad_float(number, verb, None),
            'f' | 'e' | 'E' => self.pad_float(number, verb, Some(6)),
            'F' => self.pad_float(number, 'f', Some(6)),
            _ => self.bad_verb(verb, owner),
        }
    }

    fn print_complex(&mut self, real: f64, imaginary: f64, verb: char, owner: &Value) {
        if !matches!(verb, 'v' | 'b' | 'g' | 'G' | 'x' | 'X' | 'f' | 'F' | 'e' | 'E') {
            return self.bad_verb(verb, owner);
        }
        let plus = self.flags.plus;
        self.write(b"(");
        self.print_float(real, verb, owner);
        self.flags.plus = true;
        self.print_float(imaginary, verb, owner);
        self.write(b"i)");
        self.flags.plus = plus;
    }

    fn print_string(&mut self, text: &[u8], verb: char, owner: &Value) {
        match verb {
            'v' if self.flags.sharp_v => self.pad_quoted(text),
            'v' | 's' => self.print_text(text),
            'x' => self.pad_hex(text, Case::Lower),
            'X' => self.pad_hex(text, Case::Upper),
            'q' => self.pad_quoted(text),
            _ => self.bad_verb(verb, owner),
        }
    }

    /// Prints bytes; `name` is how Go calls their type here, and tells operands (depth 0) from bytes within values.
    fn print_bytes(&mut self, bytes: &Str, verb: char, name: &str, depth: u32) {
        match verb {
            's' => return self.print_text(bytes),
            'x' => return self.pad_hex(bytes, Case::Lower),
            'X' => return self.pad_hex(bytes, Case::Upper),
            'q' => return self.pad_quoted(bytes),
            _ => {}
        }
        // `%d` of an operand keeps `#`, while within a value each byte is printed as an integer is.
        let is_operand = depth == 0 && matches!(verb, 'v' | 'd');
        let name = if is_operand { name } else { Type::BYTES.name() };
        self.open(name, "[", self.flags.sharp_v);
        for (index, byte) in bytes.iter().enumerate() {
            self.separate(index);
            let number = u64::from(*byte);
            if is_operand && self.flags.sharp_v {
                self.write_hex(number, true);
            } else if is_operand {
                self.pad_integer(number, false, 10, verb, Case::Lower);
            } else {
                let value = Value::Uint(number, Kind::Uint8);
                self.print_integer(number, Sign::None, verb, &value);
            }
            if self.is_full() {
                return;
            }
        }
        self.close("]");
    }

    fn print_list(&mut self, list: &List, verb: char, depth: u32) {
        if self.flags.sharp_v && list.is_nil() {
            self.write(list.type_().name().as_bytes());
            return self.write(b"(nil)");
        }
        self.open(list.type_().name(), "[", self.flags.sharp_v);
        for (index, item) in list.iter().enumerate() {
            self.separate(index);
            self.print_value(item, verb, depth + 1);
            if self.error.is_some() {
                return;
            }
        }
        self.close("]");
    }

    fn print_map(&mut self, map: &Map, verb: char, depth: u32) {
        if self.flags.sharp_v && map.is_nil() {
            self.write(map.type_().name().as_bytes());
            return self.write(b"(nil)");
        }
        self.open(map.type_().name(), "map[", self.flags.sharp_v);
        if let Some(entries) = map.borrow() {
            for (index, (key, value)) in entries.iter().enumerate() {
                self.separate(index);
                self.print_string(key, verb, &Value::String(key.clone()));
                self.write(b":");
                self.print_value(value, verb, depth + 1);
                if self.error.is_some() {
                    return;
                }
            }
        }
        self.close("]");
    }

    fn print_object(&mut self, object: &dyn Object, value: &Value, verb: char, depth: u32) {
        if let Some(underlying) = object.underlying() {
            return match underlying {
                Value::List(_) | Value::Map(_) | Value::Bytes(_) | Value::Object(_) => {
                    self.print_value(&underlying, verb, depth + 1);
                }
                scalar => self.print_scalar(&scalar, verb, value),
            };
        }
        match object.type_().kind() {
            Kind::Pointer if depth > 0 || object.is_nil() => self.print_pointer(value, verb),
            Kind::Pointer => {
                self.write(b"&");
                self.print_struct(object, verb, depth + 1);
            }
            _ => self.print_struct(object, verb, depth),
        }
    }

    fn print_struct(&mut self, object: &dyn Object, verb: char, depth: u32) {
        if self.flags.sharp_v {
            let name = object.type_().name();
            self.write(name.strip_prefix('*').unwrap_or(name).as_bytes());
        }
        self.write(b"{");
        for (index, (name, value)) in object.fields().iter().enumerate() {
            self.separate(index);
            if self.flags.plus_v || self.flags.sharp_v {
                self.write(name.as_bytes());
                self.write(b":");
            }
            self.print_value(value, verb, depth + 1);
        }
        self.write(b"}");
    }

    fn print_pointer(&mut self, value: &Value, verb: char) {
        let Some(address) = address(value) else {
            return self.bad_verb(verb, value);
        };
        let sharp = self.flags.sharp;
        match verb {
            'v' if self.flags.sharp_v => {
                self.write(b"(");
                self.write(value.type_().map_or("", Type::name).as_bytes());
                self.write(b")(");
                if address == 0 {
                    self.write(b"nil");
                } else {
                    self.write_hex(address, true);
                }
                self.write(b")");
            }
            'v' if address == 0 => self.pad(b"<nil>"),
            'v' | 'p' => self.write_hex(address, !sharp),
            'b' | 'o' | 'd' | 'x' | 'X' => self.print_integer(address, Sign::None, verb, value),
            _ => self.bad_verb(verb, value),
        }
    }

    /// Reports a verb that the value does not know: `%!d(string=x)`.
    fn bad_verb(&mut self, verb: char, value: &Value) {
        self.write(b"%!");
        rune::encode(verb, &mut self.out);
        self.write(b"(");
        if value.is_untyped_nil() {
            self.write(b"<nil>");
        } else {
            let was_reporting = std::mem::replace(&mut self.is_reporting, true);
            self.write(value.type_name().as_bytes());
            self.write(b"=");
            self.print_operand(value, 'v');
            self.is_reporting = was_reporting;
        }
        self.write(b")");
    }

    fn open(&mut self, type_name: &str, bracket: &str, with_type: bool) {
        if with_type {
            self.write(type_name.as_bytes());
            self.write(b"{");
        } else {
            self.write(bracket.as_bytes());
        }
    }

    fn separate(&mut self, index: usize) {
        if index > 0 {
            self.write(if self.flags.sharp_v { b", " } else { b" " });
        }
    }

    fn close(&mut self, bracket: &str) {
        self.write(if self.flags.sharp_v {
            b"}"
        } else {
            bracket.as_bytes()
        });
    }
}

/// Returns an address as Go's heap has them, for kinds that point to something.
fn address(value: &Value) -> Option<u64> {
    let address = match value {
        Value::Map(map) => map.address(),
        Value::List(list) if list.is_nil() => 0,
        Value::List(list) => list.as_ptr().addr(),
        Value::Bytes(bytes) => bytes.as_ptr().addr(),
        Value::Func(function) => std::ptr::from_ref(function).addr(),
        Value::Object(object) if object.type_().kind() == Kind::Pointer => {
            if object.is_nil() {
                0
            } else {
                std::rc::Rc::as_ptr(object).addr()
            }
        }
        _ => return None,
    };
    if address == 0 {
        return Some(0);
    }
    Some(0xc0_0000_0000 | (address as u64 & 0xffff_fff8))
}
