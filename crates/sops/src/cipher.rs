//! One encrypted value: `ENC[AES256_GCM,data:…,iv:…,tag:…,type:…]`.

use aes_gcm::AesGcm;
use aes_gcm::aead::consts::U32;
use aes_gcm::aead::{Aead as _, KeyInit as _, Nonce, Payload};
use aes_gcm::aes::Aes256;
use aws_lc_rs::rand;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::number;
use crate::time::Time;
use crate::tree::{Comment, Value};

/// AES with 256 bits in Galois/Counter Mode, with the nonces of SOPS: 32 bytes.
type Gcm = AesGcm<Aes256, U32>;

const NONCE: usize = 32;
const TAG: usize = 16;

/// Why a value cannot be decrypted or encrypted; quotes nothing of it.
pub(crate) type Problem = String;

/// The data key of a file, ready for use.
pub(crate) struct Cipher(Gcm);

struct Encrypted {
    /// Ciphertext and tag.
    data: Vec<u8>,
    nonce: Vec<u8>,
    datatype: Vec<u8>,
}

impl Cipher {
    pub(crate) fn new(data_key: &[u8]) -> Result<Self, Problem> {
        let gcm = Gcm::new_from_slice(data_key);
        let gcm = gcm.map_err(|_| format!("the data key has {} bytes, not 32", data_key.len()))?;
        Ok(Self(gcm))
    }

    /// Decrypts a value that was encrypted for this place. What is empty was never encrypted.
    pub(crate) fn decrypt(&self, text: &[u8], place: &[u8]) -> Result<Value, Problem> {
        if text.is_empty() {
            return Ok(Value::Text(Vec::new()));
        }
        let encrypted = parse(text)?;
        let nonce = Nonce::<Gcm>::try_from(encrypted.nonce.as_slice());
        let nonce = nonce.map_err(|_| format!("the iv has {} bytes, not 32", encrypted.nonce.len()))?;
        let payload = Payload {
            msg: &encrypted.data,
            aad: place,
        };
        let plain = self.0.decrypt(&nonce, payload);
        let plain = plain.map_err(|_| {
            "Could not decrypt with AES_GCM: cipher: message authentication failed".to_owned()
        })?;
        typed(plain, &encrypted.datatype)
    }
}

impl Cipher {
    /// Encrypts a value for this place. An empty text is not encrypted.
    pub(crate) fn encrypt(&self, value: &Value, place: &[u8]) -> Result<Vec<u8>, Problem> {
        let (plain, datatype) = untyped(value)?;
        if plain.is_empty() {
            return Ok(Vec::new());
        }
        let mut nonce = [0; NONCE];
        rand::fill(&mut nonce).map_err(|_| "there are no random numbers".to_owned())?;
        let payload = Payload {
            msg: &plain,
            aad: place,
        };
        let sealed = self.0.encrypt(&Nonce::<Gcm>::from(nonce), payload);
        let sealed = sealed.map_err(|_| "Could not encrypt with AES_GCM".to_owned())?;
        let (data, tag) = sealed.split_at(sealed.len() - TAG);
        let [data, nonce, tag] = [data, &nonce, tag].map(|bytes| STANDARD.encode(bytes));
        Ok(format!("ENC[AES256_GCM,data:{data},iv:{nonce},tag:{tag},type:{datatype}]").into_bytes())
    }
}

/// The text of a value, and the name of its type.
fn untyped(value: &Value) -> Result<(Vec<u8>, &'static str), Problem> {
    Ok(match value {
        Value::Text(text) => (text.clone(), "str"),
        Value::Bytes(bytes) => (bytes.clone(), "bytes"),
        Value::Comment(comment) => (comment.text.clone(), "comment"),
        Value::Int(integer) => (integer.to_string().into_bytes(), "int"),
        Value::Float(float) => (number::plain_digits(*float).into_bytes(), "float"),
        Value::Bool(flag) => (
            if *flag {
                b"True".to_vec()
            } else {
                b"False".to_vec()
            },
            "bool",
        ),
        Value::Time(time) => (time.as_nanoseconds().as_bytes().to_vec(), "time"),
        Value::Null | Value::List(_) | Value::Map(_) | Value::Other(_) => {
            return Err(format!("Value to encrypt has unsupported type {}", value.kind()));
        }
    })
}

fn parse(text: &[u8]) -> Result<Encrypted, Problem> {
    let other = || "Input string <redacted> does not match sops' data format".to_owned();
    let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let rest = line.strip_prefix(b"ENC[AES256_GCM,data:").ok_or_else(other)?;
    let end = rest.iter().rposition(|byte| *byte == b']').ok_or_else(other)?;
    let (rest, datatype) = split_last(&rest[..end], b",type:").ok_or_else(other)?;
    let (rest, tag) = split_last(rest, b",tag:").ok_or_else(other)?;
    let (data, nonce) = split_last(rest, b",iv:").ok_or_else(other)?;
    let mut data = base64(data, "data")?;
    data.extend(base64(tag, "tag")?);
    Ok(Encrypted {
        data,
        nonce: base64(nonce, "iv")?,
        datatype: datatype.to_owned(),
    })
}

/// Splits around the last separator; neither part is empty.
fn split_last<'a>(text: &'a [u8], separator: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let at = text
        .windows(separator.len())
        .rposition(|window| window == separator)?;
    let (before, behind) = (&text[..at], &text[at + separator.len()..]);
    (!before.is_empty() && !behind.is_empty()).then_some((before, behind))
}

fn base64(text: &[u8], what: &str) -> Result<Vec<u8>, Problem> {
    // Without the position, which the error of the crate has together with the byte there.
    STANDARD
        .decode(text)
        .map_err(|_| format!("Error base64-decoding {what}: illegal base64 data"))
}

/// Converts the plaintext to its original type.
fn typed(plain: Vec<u8>, datatype: &[u8]) -> Result<Value, Problem> {
    let text = || std::str::from_utf8(&plain).ok();
    let value = match datatype {
        b"str" => return Ok(Value::Text(plain)),
        b"bytes" => return Ok(Value::Bytes(plain)),
        b"comment" => {
            return Ok(Value::Comment(Comment {
                text: plain,
                inline: false,
            }));
        }
        b"int" => text().and_then(|text| text.parse().ok()).map(Value::Int),
        b"float" => text().and_then(|text| text.parse().ok()).map(Value::Float),
        b"bool" => text().and_then(go_text::numeral::parse_bool).map(Value::Bool),
        b"time" => text().and_then(Time::parse).map(Value::Time),
        _ => return Err(format!("Unknown datatype: {}", String::from_utf8_lossy(datatype))),
    };
    value.ok_or_else(|| {
        let name = String::from_utf8_lossy(datatype);
        format!("the decrypted value is not of its type, {name}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_encrypted_value_is_refused_without_quoting_it() {
        let cipher = Cipher::new(&[0; 32]).unwrap();
        for (text, problem) in [
            (
                "hunter2",
                "Input string <redacted> does not match sops' data format",
            ),
            (
                "ENC[AES256_GCM,data:a,iv:,tag:b,type:str]",
                "Input string <redacted> does not match",
            ),
            (
                "ENC[AES256_GCM,data:?,iv:AA==,tag:AA==,type:str]",
                "Error base64-decoding data",
            ),
            (
                "ENC[AES256_GCM,data:AA==,iv:AA==,tag:AA==,type:str]",
                "the iv has 1 bytes, not 32",
            ),
        ] {
            let error = cipher.decrypt(text.as_bytes(), b"a:").err().unwrap();
            assert!(error.starts_with(problem), "{text}: {error}");
            assert!(!error.contains("hunter2"));
        }
        assert!(Cipher::new(&[0; 31]).is_err());
        assert!(matches!(cipher.decrypt(b"", b"a:"), Ok(Value::Text(text)) if text.is_empty()));
    }

    #[test]
    fn what_is_encrypted_comes_back_at_its_place_only() {
        let cipher = Cipher::new(&[7; 32]).unwrap();
        for value in [
            Value::Text(b"\xff text".to_vec()),
            Value::Int(-7),
            Value::Float(2.5e-7),
            Value::Bool(false),
            Value::Time(Time::parse("2024-01-01T01:02:03.120Z").unwrap()),
        ] {
            let encrypted = cipher.encrypt(&value, b"a:").unwrap();
            assert_ne!(encrypted, cipher.encrypt(&value, b"a:").unwrap());
            let back = cipher.decrypt(&encrypted, b"a:").unwrap();
            assert_eq!(untyped(&back).unwrap(), untyped(&value).unwrap());
            assert!(cipher.decrypt(&encrypted, b"b:").is_err());
        }
        assert!(
            cipher
                .encrypt(&Value::Text(Vec::new()), b"a:")
                .unwrap()
                .is_empty()
        );
        assert!(cipher.encrypt(&Value::Null, b"a:").is_err());
    }

    #[test]
    fn the_type_says_what_the_text_is() {
        assert!(matches!(typed(b"-7".to_vec(), b"int"), Ok(Value::Int(-7))));
        assert!(matches!(typed(b"True".to_vec(), b"bool"), Ok(Value::Bool(true))));
        assert!(matches!(typed(b"1.5".to_vec(), b"float"), Ok(Value::Float(1.5))));
        for (text, datatype) in [("x", "int"), ("yes", "bool"), ("x", "time"), ("x", "secret")] {
            let error = typed(text.into(), datatype.as_bytes()).err().unwrap();
            assert!(!error.contains('x') || error.contains("secret"), "{error}");
        }
    }
}
