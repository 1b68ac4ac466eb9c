//! Random text and numbers, from the system's source of randomness.

use go_template::{Context, Error, Functions, Type, Value};

use crate::arguments::{add, charge, int, made, text};

const COUNT: &[Type] = &[Type::INT];

pub(crate) fn register(functions: &mut Functions) {
    add(
        functions,
        &[
            ("randAlphaNum", COUNT, |context, arguments| {
                random_text(context, arguments, u8::is_ascii_alphanumeric)
            }),
            ("randAlpha", COUNT, |context, arguments| {
                random_text(context, arguments, u8::is_ascii_alphabetic)
            }),
            ("randNumeric", COUNT, |context, arguments| {
                random_text(context, arguments, u8::is_ascii_digit)
            }),
            ("randAscii", COUNT, |context, arguments| {
                random_text(context, arguments, |byte| (32..127).contains(byte))
            }),
            ("randBytes", COUNT, |context, arguments| {
                let count = int(arguments, 0);
                let Ok(count) = usize::try_from(count) else {
                    return Err(Error::new("runtime error: makeslice: len out of range"));
                };
                charge(context, count, 2)?;
                let mut bytes = vec![0; count];
                fill(&mut bytes)?;
                Ok(base64::Engine::encode(&base64::engine::general_purpose::STANDARD, bytes).into())
            }),
            ("randInt", &[Type::INT, Type::INT], |_, arguments| {
                let (least, bound) = (int(arguments, 0), int(arguments, 1));
                match u64::try_from(bound.wrapping_sub(least)) {
                    Ok(range) if range > 0 => {
                        let offset = below(range)?.cast_signed();
                        Ok(Value::int(offset.wrapping_add(least)))
                    }
                    _ => Err(Error::new("invalid argument to Intn")),
                }
            }),
            ("uuidv4", &[], |_, _| uuid()),
            ("shuffle", &[Type::STRING], |context, arguments| {
                context.charge(text(arguments, 0).len())?;
                let source = String::from_utf8_lossy(text(arguments, 0));
                let mut characters: Vec<char> = source.chars().collect();
                for at in (1..characters.len()).rev() {
                    let other = usize::try_from(below(at as u64 + 1)?).unwrap_or(at);
                    characters.swap(at, other);
                }
                made(characters.into_iter().collect::<String>().into_bytes())
            }),
        ],
    );
}

/// Draws characters until there are enough that are wanted, each as likely as the others.
fn random_text(
    context: &mut Context<'_>,
    arguments: &[Value],
    is_wanted: fn(&u8) -> bool,
) -> Result<Value, Error> {
    // sprig swallows the error of a negative count.
    let count = usize::try_from(int(arguments, 0)).unwrap_or(0);
    charge(context, count, 1)?;
    let mut drawn = Vec::with_capacity(count);
    let mut bytes = [0; 256];
    while drawn.len() < count {
        fill(&mut bytes)?;
        let wanted = bytes.iter().map(|byte| byte & 127).filter(is_wanted);
        drawn.extend(wanted.take(count - drawn.len()));
    }
    made(drawn)
}

/// Draws a number below a bound, each as likely as the others.
pub(crate) fn below(bound: u64) -> Result<u64, Error> {
    let largest = u64::MAX - u64::MAX % bound;
    loop {
        let mut bytes = [0; 8];
        fill(&mut bytes)?;
        let number = u64::from_le_bytes(bytes);
        if number < largest {
            return Ok(number % bound);
        }
    }
}

/// RFC 9562, version 4.
fn uuid() -> Result<Value, Error> {
    let mut bytes = [0; 16];
    fill(&mut bytes)?;
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex = format!("{:032x}", u128::from_be_bytes(bytes));
    let parts = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
    Ok(parts.join("-").into())
}

pub(crate) fn fill(bytes: &mut [u8]) -> Result<(), Error> {
    getrandom::fill(bytes).map_err(|error| Error::new(format!("failed to draw random bytes: {error}")))
}

#[cfg(test)]
mod tests {
    use go_template::Value;

    use crate::testing::check;

    #[test]
    fn random_text_has_its_length_and_its_characters() {
        let checked = |template: &str, expected: &str| check(template, &Value::Nil, expected);
        checked(
            r#"{{ regexMatch "^[0-9A-Za-z]{1000}$" (randAlphaNum 1000) }}"#,
            "true",
        );
        checked(r#"{{ regexMatch "^[A-Za-z]{500}$" (randAlpha 500) }}"#, "true");
        checked(r#"{{ regexMatch "^[0-9]{7}$" (randNumeric 7) }}"#, "true");
        checked(r#"{{ regexMatch "^[ -~]{300}$" (randAscii 300) }}"#, "true");
        checked(r#"{{ randBytes 16 | b64dec | len }}"#, "16");
        checked(r#"{{ $i := randInt 3 5 }}{{ or (eq $i 3) (eq $i 4) }}"#, "true");
        checked(
            r#"{{ regexMatch "^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$" uuidv4 }}"#,
            "true",
        );
        checked(r#"{{ shuffle "héllo" | len }}{{ randAlpha -1 }}"#, "6");
        checked(
            r#"{{ randInt 5 5 }}"#,
            "error calling randInt: invalid argument to Intn",
        );
    }
}
