//! Numbers and times of TOML.

use go_template::Value;
use go_time::{Location, Time};
use sprig_functions::TimeObject;

use super::reader::{Problem, Reader};
use super::string::{shown, shown_text};

/// Reads what starts with a digit: an integer, a float or a time.
pub(super) fn number_or_date(reader: &mut Reader<'_>) -> Result<Value, Problem> {
    let zero = reader.next()? == '0';
    let mut character = reader.next()?;
    if zero {
        let (kind, is_digit): (&str, fn(char) -> bool) = match character {
            'b' => ("a binary", |c| matches!(c, '0' | '1')),
            'o' => ("an octal", |c| matches!(c, '0'..='7')),
            'x' => ("a hexadecimal", |c| c.is_ascii_hexdigit()),
            _ => ("", |_| false),
        };
        if !kind.is_empty() {
            let first = reader.peek()?;
            if !is_digit(first) {
                let token = reader.token_text();
                return reader.problem(format!("not {kind} number: '{token}{first}'"));
            }
            return until(reader, |c| is_digit(c) || c == '_').and_then(|()| integer(reader));
        }
    }
    // A single zero starts no time; all others have two digits at least.
    let mut may_be_date = !zero || character.is_ascii_digit();
    loop {
        match character {
            '0'..='9' => {}
            '-' | ':' if may_be_date => return date(reader),
            '_' => may_be_date = false,
            '.' | 'e' | 'E' => return rest_of_float(reader),
            _ => {
                reader.back();
                return integer(reader);
            }
        }
        character = reader.next()?;
    }
}

/// Reads a number behind its sign.
pub(super) fn signed(reader: &mut Reader<'_>) -> Result<Value, Problem> {
    let character = reader.next()?;
    match character {
        'i' | 'n' => {
            let rest = if character == 'i' { ['n', 'f'] } else { ['a', 'n'] };
            for wanted in rest {
                if !reader.accept(wanted)? {
                    let token = reader.token_text();
                    return reader.problem(format!("invalid float: '{token}'"));
                }
            }
            return float(reader);
        }
        '0' => {
            let kind = reader.peek()?;
            if matches!(kind, 'b' | 'o' | 'x') {
                let token = reader.token_text();
                return reader.problem(format!(
                    "cannot use sign with non-decimal numbers: '{token}{kind}'"
                ));
            }
        }
        '.' => return reader.problem("floats must start with a digit, not '.'"),
        _ => {}
    }
    if !character.is_ascii_digit() {
        return reader.problem(format!("expected a digit but got {}", shown(character)));
    }
    loop {
        match reader.next()? {
            '0'..='9' | '_' => {}
            '.' | 'e' | 'E' => return rest_of_float(reader),
            _ => {
                reader.back();
                return integer(reader);
            }
        }
    }
}

fn until(reader: &mut Reader<'_>, belongs: impl Fn(char) -> bool) -> Result<(), Problem> {
    while belongs(reader.next()?) {}
    reader.back();
    Ok(())
}

fn rest_of_float(reader: &mut Reader<'_>) -> Result<Value, Problem> {
    until(reader, |c| {
        matches!(c, '0'..='9' | '_' | '.' | '-' | '+' | 'e' | 'E')
    })?;
    float(reader)
}

fn refuse<T>(reader: &Reader<'_>, message: String) -> Result<T, Problem> {
    Err(Problem {
        line: reader.line,
        message,
    })
}

fn integer(reader: &Reader<'_>) -> Result<Value, Problem> {
    let text = reader.token_text();
    let shown = shown_text(&text);
    if !underscores_are_right(&text) {
        return refuse(
            reader,
            format!("Invalid integer {shown}: underscores must be surrounded by digits"),
        );
    }
    if has_leading_zero(&text) {
        return refuse(
            reader,
            format!("Invalid integer {shown}: cannot have leading zeroes"),
        );
    }
    let digits = text.replace('_', "");
    let parsed = match digits.get(..2) {
        Some("0b") => i64::from_str_radix(&digits[2..], 2),
        Some("0o") => i64::from_str_radix(&digits[2..], 8),
        Some("0x") => i64::from_str_radix(&digits[2..], 16),
        _ => digits.parse(),
    };
    match parsed {
        Ok(number) => Ok(Value::int64(number)),
        Err(_) => refuse(reader, format!("{text} is out of range for int64")),
    }
}

/// Makes a float of the token that is read.
pub(super) fn float(reader: &Reader<'_>) -> Result<Value, Problem> {
    let text = reader.token_text();
    let shown = shown_text(&text);
    let mut parts = text.split(['.', 'e', 'E']).filter(|part| !part.is_empty());
    if !parts.clone().all(underscores_are_right) {
        return refuse(
            reader,
            format!("Invalid float {shown}: underscores must be surrounded by digits"),
        );
    }
    if parts.next().is_some_and(has_leading_zero) {
        return refuse(
            reader,
            format!("Invalid float {shown}: cannot have leading zeroes"),
        );
    }
    if text
        .split('.')
        .skip(1)
        .any(|part| !part.starts_with(|c: char| c.is_ascii_digit()))
    {
        return refuse(
            reader,
            format!("Invalid float {shown}: '.' must be followed by one or more digits"),
        );
    }
    let digits = text.replace('_', "");
    match digits.as_str() {
        "nan" | "+nan" => return Ok(Value::Float(f64::NAN)),
        "-nan" => return Ok(Value::Float(-f64::NAN)),
        _ => {}
    }
    match digits.parse::<f64>() {
        Ok(number) if number.is_infinite() && !digits.ends_with("inf") => {
            refuse(reader, format!("{text} is out of range for float64"))
        }
        Ok(number) => Ok(Value::Float(number)),
        Err(_) => refuse(reader, format!("Invalid float value: {shown}")),
    }
}

/// Returns whether every underscore stands between digits, and a digit at the end.
fn underscores_are_right(text: &str) -> bool {
    if matches!(text, "nan" | "+nan" | "-nan" | "inf" | "-inf" | "+inf") {
        return true;
    }
    let mut behind_digit = false;
    for c in text.chars() {
        if c == '_' && !behind_digit {
            return false;
        }
        behind_digit = c.is_ascii_hexdigit();
    }
    behind_digit
}

fn has_leading_zero(text: &str) -> bool {
    match text.as_bytes() {
        [b'0', second, ..] => !matches!(second, b'b' | b'o' | b'x'),
        [b'-' | b'+', b'0', _, ..] => true,
        _ => false,
    }
}

/// The layouts of times, and the name of the zone of those that have none.
const LAYOUTS: [(&str, &str); 7] = [
    ("2006-01-02T15:04:05.999999999Z07:00", ""),
    ("2006-01-02T15:04:05.999999999", "datetime-local"),
    ("2006-01-02", "date-local"),
    ("15:04:05.999999999", "time-local"),
    ("2006-01-02T15:04Z07:00", ""),
    ("2006-01-02T15:04", "datetime-local"),
    ("15:04", "time-local"),
];

fn date(reader: &mut Reader<'_>) -> Result<Value, Problem> {
    until(reader, |c| {
        matches!(c, '0'..='9' | '-' | ':' | 'T' | 't' | ' ' | '.' | 'Z' | 'z' | '+')
    })?;
    let text = reader.token_text();
    let text = text.trim().replace('z', "Z").replace(['t', ' '], "T");
    for (layout, zone) in LAYOUTS {
        let location = if zone.is_empty() {
            Location::local()
        } else {
            Location::fixed(zone, 0)
        };
        if let Ok(time) = Time::parse_in(layout.as_bytes(), text.as_bytes(), &location) {
            if lacks_zero(&text, layout) {
                break;
            }
            return Ok(TimeObject::value(time));
        }
    }
    refuse(reader, format!("invalid datetime: {}", shown_text(&text)))
}

/// Go takes numbers without a leading zero; then a sign is not where the layout has it.
fn lacks_zero(text: &str, layout: &str) -> bool {
    let before_fraction = layout.bytes().take_while(|c| !matches!(c, b'.' | b'Z'));
    let mut signs = before_fraction.enumerate().filter(|(_, c)| !c.is_ascii_digit());
    signs.any(|(place, c)| text.as_bytes().get(place) != Some(&c))
}
