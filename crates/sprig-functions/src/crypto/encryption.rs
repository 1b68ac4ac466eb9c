//! `encryptAES` and `decryptAES`: AES-256 in CBC mode, the padded password as key.

use aws_lc_rs::cipher::{
    AES_256, DecryptingKey, DecryptionContext, EncryptingKey, EncryptionContext, UnboundCipherKey,
};
use aws_lc_rs::error::Unspecified;
use aws_lc_rs::iv::FixedLength;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use go_template::{Context, Error, Functions, Type, Value};

use crate::arguments::{add, charge, made, text};
use crate::encoding::{Corrupt, decode64};
use crate::random::fill;

const BLOCK: usize = 16;
const PASSWORD_TEXT: &[Type] = &[Type::STRING, Type::STRING];

pub(crate) fn register(functions: &mut Functions) {
    add(
        functions,
        &[
            ("encryptAES", PASSWORD_TEXT, encrypt),
            ("decryptAES", PASSWORD_TEXT, decrypt),
        ],
    );
}

fn encrypt(context: &mut Context<'_>, arguments: &[Value]) -> Result<Value, Error> {
    let (password, plain) = (text(arguments, 0), text(arguments, 1));
    if plain.is_empty() {
        return Ok("".into());
    }
    charge(context, plain.len(), 3)?;
    let padding = BLOCK - plain.len() % BLOCK;
    let mut data = plain.to_vec();
    data.resize(plain.len() + padding, padding as u8);
    let mut vector = [0; BLOCK];
    fill(&mut vector)?;
    let encrypted = key(password).and_then(EncryptingKey::cbc).and_then(|key| {
        key.less_safe_encrypt(&mut data, EncryptionContext::Iv128(FixedLength::from(vector)))
    });
    encrypted.map_err(failed)?;
    Ok(STANDARD.encode([&vector[..], &data].concat()).into())
}

fn decrypt(context: &mut Context<'_>, arguments: &[Value]) -> Result<Value, Error> {
    let (password, encoded) = (text(arguments, 0), text(arguments, 1));
    if encoded.is_empty() {
        return Ok("".into());
    }
    charge(context, encoded.len(), 1)?;
    let data = decode64(encoded)
        .map_err(|Corrupt(at)| Error::new(format!("illegal base64 data at input byte {at}")))?;
    let Some((vector, data)) = data.split_first_chunk::<BLOCK>() else {
        return Err(too_short(data.len(), encoded.len() / 4 * 3));
    };
    if data.len() % BLOCK != 0 {
        return Err(Error::new("crypto/cipher: input not full blocks"));
    }
    let mut data = data.to_vec();
    let vector = DecryptionContext::Iv128(FixedLength::from(*vector));
    key(password)
        .and_then(DecryptingKey::cbc)
        .and_then(|key| key.decrypt(&mut data, vector).map(drop))
        .map_err(failed)?;
    let Some(&padding) = data.last() else {
        return Err(Error::new("runtime error: index out of range [-1]"));
    };
    // Nothing but this byte is looked at.
    match data.len().checked_sub(padding.into()) {
        Some(length) => made(data[..length].to_vec()),
        None => {
            let beyond = usize::from(padding) - data.len();
            Err(Error::new(format!(
                "runtime error: slice bounds out of range [:-{beyond}]"
            )))
        }
    }
}

/// Go's error for data shorter than a block, by the capacity that it was decoded into.
fn too_short(length: usize, room: usize) -> Error {
    Error::new(match room {
        room if room < BLOCK => {
            format!("runtime error: slice bounds out of range [:{BLOCK}] with capacity {room}")
        }
        _ => format!("runtime error: slice bounds out of range [{BLOCK}:{length}]"),
    })
}

fn key(password: &[u8]) -> Result<UnboundCipherKey, Unspecified> {
    let mut key = [0; 32];
    let length = password.len().min(key.len());
    key[..length].copy_from_slice(&password[..length]);
    UnboundCipherKey::new(&AES_256, &key)
}

fn failed(_: Unspecified) -> Error {
    Error::new("crypto/aes: failed")
}

#[cfg(test)]
mod tests {
    use go_template::Value;

    fn check(template: &str, expected: &str) {
        crate::testing::check(template, &Value::Nil, expected);
    }

    #[test]
    fn what_was_encrypted_is_decrypted() {
        check(r#"{{ encryptAES "key" "plain" | decryptAES "key" }}"#, "plain");
        check(r#"{{ encryptAES "key" (repeat 16 "x") | b64dec | len }}"#, "48");
        check(r#"{{ encryptAES "key" "" }}{{ decryptAES "key" "" }}"#, "");
    }

    #[test]
    fn what_cannot_be_decrypted_is_told_in_go_words() {
        for (encoded, expected) in [
            ("!", "illegal base64 data at input byte 0"),
            (
                "YQ==",
                "runtime error: slice bounds out of range [:16] with capacity 3",
            ),
            (
                "MDEyMzQ1Njc4OWFiY2Rl\\n\\n\\n\\n",
                "runtime error: slice bounds out of range [16:15]",
            ),
            (
                "MDEyMzQ1Njc4OWFiY2RlZg==",
                "runtime error: index out of range [-1]",
            ),
            ("MDEyMzQ1Njc4OWFiY2RlZmE=", "crypto/cipher: input not full blocks"),
            (
                "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=",
                "runtime error: slice bounds out of range [:-126]",
            ),
        ] {
            check(
                &format!(r#"{{{{ decryptAES "p" "{encoded}" }}}}"#),
                &format!("error calling decryptAES: {expected}"),
            );
        }
    }
}
