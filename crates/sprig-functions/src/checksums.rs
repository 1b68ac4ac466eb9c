//! Checksums in hexadecimal, and Adler-32 in decimal.

use std::fmt::Write as _;

use go_template::{Context, Error, Functions, Type, Value};
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha512};

use crate::arguments::{add, text};

const TEXT: &[Type] = &[Type::STRING];

pub(crate) fn register(functions: &mut Functions) {
    add(
        functions,
        &[
            ("sha1sum", TEXT, hashed::<Sha1>),
            ("sha256sum", TEXT, hashed::<Sha256>),
            ("sha512sum", TEXT, hashed::<Sha512>),
            ("adler32sum", TEXT, |_, arguments| {
                Ok(adler32(text(arguments, 0)).to_string().into())
            }),
        ],
    );
}

fn hashed<D: Digest>(_: &mut Context<'_>, arguments: &[Value]) -> Result<Value, Error> {
    let digest = D::digest(text(arguments, 0));
    let mut hex = String::with_capacity(digest.len() * 2);
    for byte in &digest {
        let _ = write!(hex, "{byte:02x}");
    }
    Ok(hex.into())
}

/// RFC 1950.
fn adler32(bytes: &[u8]) -> u32 {
    const MODULUS: u32 = 65_521;
    let (mut low, mut high) = (1, 0);
    // So many bytes cannot overflow 32 bits before the remainder is taken.
    for chunk in bytes.chunks(5552) {
        for byte in chunk {
            low += u32::from(*byte);
            high += low;
        }
        low %= MODULUS;
        high %= MODULUS;
    }
    high << 16 | low
}

#[cfg(test)]
mod tests {
    use go_template::Value;

    use crate::testing::check;

    #[test]
    fn sums_are_those_of_the_standards() {
        let checked = |template: &str, expected: &str| check(template, &Value::Nil, expected);
        checked(
            r#"{{ sha1sum "abc" }}"#,
            "a9993e364706816aba3e25717850c26c9cd0d89d",
        );
        checked(
            r#"{{ sha256sum "abc" }}"#,
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        );
        checked(r#"{{ sha512sum "abc" | trunc 16 }}"#, "ddaf35a193617aba");
        checked(r#"{{ adler32sum "Wikipedia" }}"#, "300286872");
    }
}
