//! JSON Web Tokens: signing claims with an RSA key, and reading when a foreign one ends. None is verified here: those
//! that we read are for others.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeyPair;
use aws_lc_rs::signature::{RSA_PKCS1_SHA256, RSA_PSS_SHA256, RsaEncoding};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};

use crate::exchange::Error;

/// How a token is signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Algorithm {
    /// PKCS #1 v1.5.
    Rs256,
    /// PSS.
    Ps256,
}

impl Algorithm {
    fn name(self) -> &'static str {
        match self {
            Self::Rs256 => "RS256",
            Self::Ps256 => "PS256",
        }
    }

    fn encoding(self) -> &'static dyn RsaEncoding {
        match self {
            Self::Rs256 => &RSA_PKCS1_SHA256,
            Self::Ps256 => &RSA_PSS_SHA256,
        }
    }
}

/// Reads an RSA key in PEM, PKCS #1 or PKCS #8. The error does not quote it.
pub(crate) fn rsa_key(pem: &[u8]) -> Result<KeyPair, Error> {
    let unusable = || Error::configuration("could not parse private key: it must be an RSA key in PEM");
    match PrivateKeyDer::from_pem_slice(pem).map_err(|_| unusable())? {
        PrivateKeyDer::Pkcs1(key) => KeyPair::from_der(key.secret_pkcs1_der()),
        PrivateKeyDer::Pkcs8(key) => KeyPair::from_pkcs8(PrivatePkcs8KeyDer::secret_pkcs8_der(&key)),
        _ => return Err(unusable()),
    }
    .map_err(|_| unusable())
}

/// A signed token. `header` has what goes into the header besides type and algorithm.
pub(crate) fn sign(
    key: &KeyPair,
    algorithm: Algorithm,
    header: Value,
    claims: &Value,
) -> Result<String, Error> {
    let mut whole = json!({"alg": algorithm.name(), "typ": "JWT"});
    if let (Value::Object(whole), Value::Object(header)) = (&mut whole, header) {
        whole.extend(header);
    }
    let text = format!("{}.{}", encoded(&whole), encoded(claims));
    let mut signature = vec![0; key.public_modulus_len()];
    key.sign(
        algorithm.encoding(),
        &SystemRandom::new(),
        text.as_bytes(),
        &mut signature,
    )
    .map_err(|_| Error::configuration("failed to sign with the private key"))?;
    Ok(format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature)))
}

fn encoded(value: &Value) -> String {
    URL_SAFE_NO_PAD.encode(value.to_string())
}

/// When a token ends, if it says so.
pub(crate) fn expiry(token: &str) -> Option<Timestamp> {
    let claims = URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?;
    let claims: Value = serde_json::from_slice(&claims).ok()?;
    Timestamp::from_second(claims.get("exp")?.as_f64()? as i64).ok()
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::signature::{KeyPair as _, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};

    use super::*;
    use crate::fake::{RSA_PKCS1, RSA_PKCS8};

    #[test]
    fn both_forms_of_the_key_sign_the_same() {
        let [first, second] = [RSA_PKCS1, RSA_PKCS8].map(|pem| {
            let key = rsa_key(pem.as_bytes()).unwrap();
            let token = sign(&key, Algorithm::Rs256, json!({"kid": "k"}), &json!({"exp": 7})).unwrap();
            let (text, signature) = token.rsplit_once('.').unwrap();
            let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
            UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, key.public_key().as_ref())
                .verify(text.as_bytes(), &signature)
                .unwrap();
            assert_eq!(expiry(&token).unwrap().as_second(), 7);
            token
        });
        assert_eq!(first, second);
    }

    #[test]
    fn what_is_no_rsa_key_is_refused_without_quoting_it() {
        let ec = "-----BEGIN EC PRIVATE KEY-----\nc2VjcmV0\n-----END EC PRIVATE KEY-----\n";
        for pem in ["", "hunter2", ec] {
            let error = rsa_key(pem.as_bytes()).unwrap_err().to_string();
            assert_eq!(error, "could not parse private key: it must be an RSA key in PEM");
        }
    }

    #[test]
    fn a_token_without_an_end_has_none() {
        for token in ["", "a.b.c", "e30.e30.x"] {
            assert_eq!(expiry(token), None);
        }
    }
}
