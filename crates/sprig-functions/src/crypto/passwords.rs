//! `bcrypt`, `htpasswd` and `derivePassword`.

use aws_lc_rs::hmac;
use go_template::{Context, Error, Functions, Type, Value};

use crate::arguments::{add, made, string, text};
use crate::random::fill;

pub(crate) fn register(functions: &mut Functions) {
    add(
        functions,
        &[
            ("bcrypt", &[Type::STRING], |_, arguments| {
                Ok(bcrypt(text(arguments, 0))?.into())
            }),
            ("htpasswd", &[Type::STRING, Type::STRING], htpasswd),
            (
                "derivePassword",
                &[
                    Type::UINT32,
                    Type::STRING,
                    Type::STRING,
                    Type::STRING,
                    Type::STRING,
                ],
                derive_password,
            ),
        ],
    );
}

/// The default of golang.org/x/crypto/bcrypt.
const COST: u32 = 10;
/// Beyond it Blowfish would not look at the password.
const MAX_BCRYPT: usize = 72;

/// A hash, or sprig's words for Go's error in its place.
fn bcrypt(password: &[u8]) -> Result<String, Error> {
    const FAILED: &str = "failed to encrypt string with bcrypt";
    if password.len() > MAX_BCRYPT {
        return Ok(format!(
            "{FAILED}: bcrypt: password length exceeds {MAX_BCRYPT} bytes"
        ));
    }
    let mut salt = [0; 16];
    fill(&mut salt)?;
    Ok(match bcrypt::hash_with_salt(password, COST, salt) {
        Ok(hash) => hash.format_for_version(bcrypt::Version::TwoA),
        Err(error) => format!("{FAILED}: {error}"),
    })
}

fn htpasswd(_: &mut Context<'_>, arguments: &[Value]) -> Result<Value, Error> {
    let user = text(arguments, 0);
    if user.contains(&b':') {
        return made([b"invalid username: ", user].concat());
    }
    made([user, b":", bcrypt(text(arguments, 1))?.as_bytes()].concat())
}

/// The algorithm of Master Password, version 1.
fn derive_password(context: &mut Context<'_>, arguments: &[Value]) -> Result<Value, Error> {
    const SEED: &[u8] = b"com.lyndir.masterpassword";
    let Some(templates) = templates(text(arguments, 1)) else {
        return made([b"cannot find password template ", text(arguments, 1)].concat());
    };
    let counter = match arguments.first() {
        Some(Value::Uint(counter, _)) => *counter as u32,
        _ => 0,
    };
    let [password, user, site] = [2, 3, 4].map(|index| string(arguments, index));
    context.step()?;
    let length = |text: &[u8]| (text.len() as u32).to_be_bytes();
    let salt = [SEED, &length(&user), &user].concat();
    let mut key = [0; 64];
    let parameters = scrypt::Params::new(15, 8, 2).expect("these are valid parameters");
    scrypt::scrypt(&password, &salt, &parameters, &mut key).expect("64 bytes are a valid length");
    let message = [SEED, &length(&site), &site, &counter.to_be_bytes()].concat();
    let seed = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &key), &message);
    let seed = seed.as_ref();
    let template = templates[usize::from(seed[0]) % templates.len()];
    let characters = template.bytes().zip(&seed[1..]);
    made(
        characters
            .map(|(class, byte)| {
                let characters = characters_of(class).as_bytes();
                characters[usize::from(*byte) % characters.len()]
            })
            .collect(),
    )
}

fn templates(name: &[u8]) -> Option<&'static [&'static str]> {
    Some(match name {
        b"maximum" => &["anoxxxxxxxxxxxxxxxxx", "axxxxxxxxxxxxxxxxxno"],
        b"long" => &[
            "CvcvnoCvcvCvcv",
            "CvcvCvcvnoCvcv",
            "CvcvCvcvCvcvno",
            "CvccnoCvcvCvcv",
            "CvccCvcvnoCvcv",
            "CvccCvcvCvcvno",
            "CvcvnoCvccCvcv",
            "CvcvCvccnoCvcv",
            "CvcvCvccCvcvno",
            "CvcvnoCvcvCvcc",
            "CvcvCvcvnoCvcc",
            "CvcvCvcvCvccno",
            "CvccnoCvccCvcv",
            "CvccCvccnoCvcv",
            "CvccCvccCvcvno",
            "CvcvnoCvccCvcc",
            "CvcvCvccnoCvcc",
            "CvcvCvccCvccno",
            "CvccnoCvcvCvcc",
            "CvccCvcvnoCvcc",
            "CvccCvcvCvccno",
        ],
        b"medium" => &["CvcnoCvc", "CvcCvcno"],
        b"short" => &["Cvcn"],
        b"basic" => &["aaanaaan", "aannaaan", "aaannaaa"],
        b"pin" => &["nnnn"],
        _ => return None,
    })
}

fn characters_of(class: u8) -> &'static str {
    match class {
        b'V' => "AEIOU",
        b'C' => "BCDFGHJKLMNPQRSTVWXYZ",
        b'v' => "aeiou",
        b'c' => "bcdfghjklmnpqrstvwxyz",
        b'a' => "AEIOUaeiouBCDFGHJKLMNPQRSTVWXYZbcdfghjklmnpqrstvwxyz",
        b'n' => "0123456789",
        b'o' => "@&%?,=[]_:-+*$#!'^~;()/.",
        _ => "AEIOUaeiouBCDFGHJKLMNPQRSTVWXYZbcdfghjklmnpqrstvwxyz0123456789!@#$%^&*()",
    }
}

#[cfg(test)]
mod tests {
    use go_template::Value;

    fn check(template: &str, expected: &str) {
        crate::testing::check(template, &Value::Nil, expected);
    }

    #[test]
    fn passwords_are_derived_as_sprig_does() {
        check(
            r#"{{ derivePassword 1 "long" "password" "user" "example.com" }}"#,
            "ZedaFaxcZaso9*",
        );
        check(
            r#"{{ derivePassword 2 "maximum" "" "" "" }}"#,
            "pKr^mycTy131HCdYE!0^",
        );
        check(r#"{{ derivePassword 1 "pin" "pé" "u" "s" }}"#, "0522");
        check(
            r#"{{ derivePassword 1 "x" "p" "u" "s" }}"#,
            "cannot find password template x",
        );
    }

    #[test]
    fn passwords_are_hashed() {
        check(
            r#"{{ regexMatch "^u:\\$2a\\$10\\$[./A-Za-z0-9]{53}$" (htpasswd "u" "p") }}"#,
            "true",
        );
        check(r#"{{ htpasswd "a:b" "c" }}"#, "invalid username: a:b");
        check(
            r#"{{ bcrypt (repeat 73 "x") }}"#,
            "failed to encrypt string with bcrypt: bcrypt: password length exceeds 72 bytes",
        );
        let hash = super::bcrypt(b"secret").unwrap();
        assert!(bcrypt::verify("secret", &hash).unwrap());
    }
}
