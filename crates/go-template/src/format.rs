//! Go's `fmt`: prints values as `Sprint`, `Sprintln` and `Sprintf` do.
//!
//! In go values and perhaps a format; out go bytes. [`printer`] knows what each verb makes of each kind, [`directive`] reads
//! formats, [`scalar`] prints and pads numbers and strings. A value may be deeper or larger than any text that it should
//! give: that is the only error.

mod directive;
mod printer;
mod scalar;
#[cfg(test)]
mod tests;

use crate::{Error, Kind, Value};

use printer::Printer;

/// How much one call may print, where no render sets a smaller bound.
pub(crate) const MAX_BYTES: usize = 64 << 20;

/// Appends what an action prints for a value: `Fprint` of what pointers point to.
pub(crate) fn append(out: &mut Vec<u8>, value: &Value, limit: usize) -> Result<(), Error> {
    let mut printer = Printer::new(std::mem::take(out), limit);
    printer.print_printable(value);
    let (buffer, error) = printer.finish();
    *out = buffer;
    error.map_or(Ok(()), Err)
}

/// `fmt.Sprint`: spaces only between operands of which neither is a string.
pub fn sprint(operands: &[Value]) -> Result<Vec<u8>, Error> {
    sprint_within(MAX_BYTES, operands)
}

pub(crate) fn sprint_within(limit: usize, operands: &[Value]) -> Result<Vec<u8>, Error> {
    let mut printer = Printer::new(Vec::new(), limit);
    printer.print_all(operands, is_string, Printer::print_plain);
    printer.into_text()
}

/// `fmt.Sprint` of what an action would print for each operand, which for nothing is the string `<no value>`.
pub(crate) fn sprint_printable(limit: usize, operands: &[Value]) -> Result<Vec<u8>, Error> {
    let mut printer = Printer::new(Vec::new(), limit);
    let is_string = |value: &Value| value.is_untyped_nil() || is_string(value);
    printer.print_all(operands, is_string, Printer::print_printable);
    printer.into_text()
}

/// `fmt.Sprintln`: spaces between all operands, and a newline.
pub fn sprintln(operands: &[Value]) -> Result<Vec<u8>, Error> {
    sprintln_within(MAX_BYTES, operands)
}

pub(crate) fn sprintln_within(limit: usize, operands: &[Value]) -> Result<Vec<u8>, Error> {
    let mut printer = Printer::new(Vec::new(), limit);
    for (index, operand) in operands.iter().enumerate() {
        if index > 0 {
            printer.write(b" ");
        }
        printer.print_plain(operand);
    }
    printer.write(b"\n");
    printer.into_text()
}

/// `fmt.Sprintf`.
pub fn sprintf(format: &[u8], operands: &[Value]) -> Result<Vec<u8>, Error> {
    sprintf_within(MAX_BYTES, format, operands)
}

pub(crate) fn sprintf_within(limit: usize, format: &[u8], operands: &[Value]) -> Result<Vec<u8>, Error> {
    let mut printer = Printer::new(Vec::new(), limit);
    directive::print(&mut printer, format, operands);
    printer.into_text()
}

/// Prints a value as `%v` does where Go hands a `reflect.Value` to `fmt`.
pub(crate) fn reflect_text(value: &Value) -> Result<String, Error> {
    reflect_text_as(value, 'v')
}

/// Prints what a value points to, or the value, as `%v` does.
pub(crate) fn pointee_text(value: &Value) -> Result<String, Error> {
    let mut printer = Printer::new(Vec::new(), MAX_BYTES);
    printer.print_printable(value);
    let text = printer.into_text()?;
    Ok(go_text::valid_text(&text).into_owned())
}

/// Prints a value as another verb does where Go hands a `reflect.Value` to `fmt`.
pub(crate) fn reflect_text_as(value: &Value, verb: char) -> Result<String, Error> {
    if matches!(value, Value::Invalid | Value::Nil) {
        return Ok("<invalid reflect.Value>".to_owned());
    }
    let mut printer = Printer::new(Vec::new(), MAX_BYTES);
    printer.print_operand(value, verb);
    let text = printer.into_text()?;
    Ok(go_text::valid_text(&text).into_owned())
}

/// Returns whether `Sprint` treats a value as a string.
fn is_string(value: &Value) -> bool {
    value.kind() == Some(Kind::String)
}
