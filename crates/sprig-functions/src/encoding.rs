//! Base64 and base32. What cannot be decoded gives the text of Go's error in the place of the result.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use go_template::{Context, Error, Functions, Type, Value};

use crate::arguments::{add, made, text};

const TEXT: &[Type] = &[Type::STRING];

pub(crate) fn register(functions: &mut Functions) {
    add(
        functions,
        &[
            ("b64enc", TEXT, |context, arguments| {
                context.charge(text(arguments, 0).len())?;
                Ok(STANDARD.encode(text(arguments, 0)).into())
            }),
            ("b32enc", TEXT, |context, arguments| {
                context.charge(text(arguments, 0).len())?;
                Ok(encode32(text(arguments, 0)).into())
            }),
            ("b64dec", TEXT, |context, arguments| {
                decoded(context, arguments, decode64, 64)
            }),
            ("b32dec", TEXT, |context, arguments| {
                decoded(context, arguments, decode32, 32)
            }),
        ],
    );
}

const BASE32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// Where the input is wrong: `CorruptInputError`.
pub(crate) struct Corrupt(pub(crate) usize);

fn decoded(
    context: &mut Context<'_>,
    arguments: &[Value],
    decode: fn(&[u8]) -> Result<Vec<u8>, Corrupt>,
    base: u32,
) -> Result<Value, Error> {
    let text = text(arguments, 0);
    context.charge(text.len())?;
    match decode(text) {
        Ok(bytes) => made(bytes),
        Err(Corrupt(at)) => Ok(format!("illegal base{base} data at input byte {at}").into()),
    }
}

fn encode32(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(5) * 8);
    for quantum in bytes.chunks(5) {
        let bits = (0..5).fold(0u64, |bits, at| {
            bits << 8 | u64::from(quantum.get(at).copied().unwrap_or(0))
        });
        let used = (quantum.len() * 8).div_ceil(5);
        for at in 0..8 {
            let index = usize::try_from(bits >> (35 - 5 * at) & 31).unwrap_or_default();
            out.push(if at < used { char::from(BASE32[index]) } else { '=' });
        }
    }
    out
}

/// Decodes as Go does: newlines are skipped anywhere, padding is demanded, and bits left over are dropped.
pub(crate) fn decode64(text: &[u8]) -> Result<Vec<u8>, Corrupt> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let mut at = 0;
    let (mut pending, mut count) = (0u32, 0);
    while let Some(&byte) = text.get(at) {
        at += 1;
        if let Some(value) = value64(byte) {
            pending = pending << 6 | u32::from(value);
            count += 1;
            if count == 4 {
                out.extend_from_slice(&pending.to_be_bytes()[1..]);
                (pending, count) = (0, 0);
            }
        } else if byte == b'=' {
            end64(text, at, count)?;
            let bytes = (pending << (6 * (4 - count))).to_be_bytes();
            out.extend_from_slice(&bytes[1..count]);
            return Ok(out);
        } else if !is_newline(byte) {
            return Err(Corrupt(at - 1));
        }
    }
    match count {
        0 => Ok(out),
        // Go counts back from the end without regard to newlines.
        count => Err(Corrupt(at - count)),
    }
}

/// Checks what follows the first `=`, behind `count` characters of the last four.
fn end64(text: &[u8], mut at: usize, count: usize) -> Result<(), Corrupt> {
    let skip_newlines = |mut at: usize| {
        while text.get(at).copied().is_some_and(is_newline) {
            at += 1;
        }
        at
    };
    match count {
        0 | 1 => return Err(Corrupt(at - 1)),
        2 => {
            at = skip_newlines(at);
            match text.get(at) {
                None => return Err(Corrupt(text.len())),
                Some(b'=') => at += 1,
                Some(_) => return Err(Corrupt(at - 1)),
            }
        }
        _ => {}
    }
    match skip_newlines(at) {
        at if at < text.len() => Err(Corrupt(at)),
        _ => Ok(()),
    }
}

fn value64(byte: u8) -> Option<u8> {
    Some(match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    })
}

fn is_newline(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}

/// Decodes as Go does, newlines taken out before: positions are counted without them.
fn decode32(text: &[u8]) -> Result<Vec<u8>, Corrupt> {
    let text: Vec<u8> = text.iter().copied().filter(|byte| !is_newline(*byte)).collect();
    let mut out = Vec::with_capacity(text.len() / 8 * 5);
    let mut start = 0;
    while start < text.len() {
        let (mut bits, mut count) = (0u64, 0);
        while count < 8 {
            let at = start + count;
            let Some(&byte) = text.get(at) else {
                // The padding is missing.
                return Err(Corrupt(start));
            };
            if byte == b'=' && count >= 2 && text.len() - at <= 8 {
                check_padding32(&text, at, count)?;
                push32(bits << (5 * (8 - count)), count, &mut out);
                return Ok(out);
            }
            bits = bits << 5 | u64::from(value32(byte).ok_or(Corrupt(at))?);
            count += 1;
        }
        push32(bits, count, &mut out);
        start += 8;
    }
    Ok(out)
}

fn push32(bits: u64, count: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(&bits.to_be_bytes()[3..3 + count * 5 / 8]);
}

/// Checks what follows a first `=` behind `count` characters of the last eight.
fn check_padding32(text: &[u8], at: usize, count: usize) -> Result<(), Corrupt> {
    let rest = &text[at + 1..];
    if rest.len() + count < 7 {
        return Err(Corrupt(text.len()));
    }
    if let Some(wrong) = rest.iter().take(7 - count).position(|byte| *byte != b'=') {
        return Err(Corrupt(at + wrong));
    }
    if matches!(count, 3 | 6) {
        return Err(Corrupt(at));
    }
    Ok(())
}

fn value32(byte: u8) -> Option<u8> {
    match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'2'..=b'7' => Some(byte - b'2' + 26),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_read_as_go_reads_it() {
        let check = |text: &str, expected: Result<&str, usize>| {
            let found = decode64(text.as_bytes()).map_err(|Corrupt(at)| at);
            assert_eq!(found, expected.map(|text| text.as_bytes().to_vec()), "{text:?}");
        };
        check("", Ok(""));
        check("YWJj", Ok("abc"));
        check("Y\nW\r\nI=\n", Ok("ab"));
        check("YW==", Ok("a"));
        check("YWJ", Err(0));
        check("YWJjYW", Err(4));
        check("YQ=", Err(3));
        check("YQ=x", Err(2));
        check("YQ==x", Err(4));
        check("Y===", Err(1));
        check("Y-Jj", Err(1));
    }

    #[test]
    fn base32_is_read_as_go_reads_it() {
        let check = |text: &str, expected: Result<&str, usize>| {
            let found = decode32(text.as_bytes()).map_err(|Corrupt(at)| at);
            assert_eq!(found, expected.map(|text| text.as_bytes().to_vec()), "{text:?}");
        };
        check("", Ok(""));
        check("NBSWY3DP", Ok("hello"));
        check("NBSWY\n3DPEE======", Ok("hello!"));
        check("NBSW", Err(0));
        check("NBSWY3D=", Ok("hell"));
        check("NBSWY3==", Err(6));
        check("NB==", Err(4));
        check("NB=X====", Err(2));
        check("nbsw", Err(0));
        assert_eq!(encode32(b"hello!"), "NBSWY3DPEE======");
    }
}
