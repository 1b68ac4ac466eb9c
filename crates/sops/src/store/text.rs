//! Text of formats without nesting.

use crate::tree::{Key, Value};

/// Why a text is no tree, or a tree no text. Quotes no values.
pub(crate) type Problem = String;

/// Replaces `\n`, two characters, by the one that it stands for.
pub(super) fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((byte, behind)) = rest.split_first() {
        if *byte == b'\\' && behind.first() == Some(&b'n') {
            out.push(b'\n');
            rest = &behind[1..];
        } else {
            out.push(*byte);
            rest = behind;
        }
    }
    out
}

/// Replaces newlines by `\n`, two characters.
pub(super) fn escaped(text: &[u8]) -> Vec<u8> {
    let escaped = text.iter().flat_map(|byte| match byte {
        b'\n' => b"\\n".as_slice(),
        other => std::slice::from_ref(other),
    });
    escaped.copied().collect()
}

/// A value in formats that have texts only; None for one that has values itself.
pub(super) fn simple_text(value: &Value) -> Option<Vec<u8>> {
    Some(match value {
        // Go's word for nothing.
        Value::Null => b"<nil>".to_vec(),
        Value::Bool(flag) => flag.to_string().into_bytes(),
        Value::Int(integer) => integer.to_string().into_bytes(),
        Value::Float(float) => crate::number::shortest(*float).into_bytes(),
        Value::Text(text) => text.clone(),
        Value::Time(time) => time.as_seconds().into_bytes(),
        Value::Bytes(_) | Value::Comment(_) | Value::List(_) | Value::Map(_) | Value::Other(_) => {
            return None;
        }
    })
}

/// A key, for messages: keys are no secret.
pub(super) fn key_text(key: &Key) -> String {
    match key {
        Key::Text(text) => String::from_utf8_lossy(text).into_owned(),
        Key::Comment(_) => "#".to_owned(),
        Key::Other(kind) => format!("<{kind}>"),
    }
}
