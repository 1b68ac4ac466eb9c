//! ID tokens: JSON Web Tokens of one signature by a key pair. What is signed with a shared secret or not at all is refused.

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ECDSA_P521_SHA512_FIXED, ED25519,
    RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512,
    RSA_PSS_2048_8192_SHA256, RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, RsaParameters,
    RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm,
};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::call::{Call, Refused};
use crate::json;

/// Longer ones are refused; those of real issuers have one or two thousand bytes.
const MAX_LENGTH: usize = 32 << 10;
/// More claims and elements of them are refused: anybody can make a token, and values take fifty times the room of their text.
const MOST_VALUES: usize = 1_000;
/// How far clocks may differ for `nbf`, as in Flux.
const LEEWAY_SECONDS: i64 = 300;

/// How a token may be signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Algorithm {
    Rs256,
    Rs384,
    Rs512,
    Ps256,
    Ps384,
    Ps512,
    Es256,
    Es384,
    Es512,
    EdDsa,
}

impl Algorithm {
    /// By its registered name; None for all others, `none` and `HS256` among them.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "RS256" => Self::Rs256,
            "RS384" => Self::Rs384,
            "RS512" => Self::Rs512,
            "PS256" => Self::Ps256,
            "PS384" => Self::Ps384,
            "PS512" => Self::Ps512,
            "ES256" => Self::Es256,
            "ES384" => Self::Es384,
            "ES512" => Self::Es512,
            "EdDSA" => Self::EdDsa,
            _ => return None,
        })
    }

    fn rsa(self) -> Option<&'static RsaParameters> {
        Some(match self {
            Self::Rs256 => &RSA_PKCS1_2048_8192_SHA256,
            Self::Rs384 => &RSA_PKCS1_2048_8192_SHA384,
            Self::Rs512 => &RSA_PKCS1_2048_8192_SHA512,
            Self::Ps256 => &RSA_PSS_2048_8192_SHA256,
            Self::Ps384 => &RSA_PSS_2048_8192_SHA384,
            Self::Ps512 => &RSA_PSS_2048_8192_SHA512,
            _ => return None,
        })
    }

    /// The algorithm, the curve that the key must be of, and how long its coordinates are.
    fn curve(self) -> Option<(&'static dyn VerificationAlgorithm, &'static str, usize)> {
        Some(match self {
            Self::Es256 => (&ECDSA_P256_SHA256_FIXED, "P-256", 32),
            Self::Es384 => (&ECDSA_P384_SHA384_FIXED, "P-384", 48),
            Self::Es512 => (&ECDSA_P521_SHA512_FIXED, "P-521", 66),
            _ => return None,
        })
    }
}

/// A public key of an issuer.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Key {
    kty: String,
    kid: String,
    #[serde(rename = "use")]
    use_: String,
    crv: String,
    n: String,
    e: String,
    x: String,
    y: String,
}

impl Key {
    fn verifies(&self, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> bool {
        self.verify(algorithm, message, signature).is_some()
    }

    fn verify(&self, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> Option<()> {
        let part = |text: &str| URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).ok();
        match (self.kty.as_str(), algorithm.rsa(), algorithm.curve()) {
            _ if self.use_ == "enc" => None,
            ("RSA", Some(parameters), _) => {
                let (n, e) = (part(&self.n)?, part(&self.e)?);
                RsaPublicKeyComponents { n, e }
                    .verify(parameters, message, signature)
                    .ok()
            }
            ("EC", _, Some((algorithm, curve, length))) if self.crv == curve => {
                let mut point = vec![4];
                for coordinate in [part(&self.x)?, part(&self.y)?] {
                    point.resize(point.len() + length.checked_sub(coordinate.len())?, 0);
                    point.extend(coordinate);
                }
                UnparsedPublicKey::new(algorithm, point)
                    .verify(message, signature)
                    .ok()
            }
            ("OKP", _, _) if self.crv == "Ed25519" && algorithm == Algorithm::EdDsa => {
                UnparsedPublicKey::new(&ED25519, part(&self.x)?)
                    .verify(message, signature)
                    .ok()
            }
            _ => None,
        }
    }
}

/// A token that was read; nothing of it is to be believed before [`Token::is_signed_by`] says so.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Token {
    algorithm: Algorithm,
    kid: String,
    signed: Vec<u8>,
    signature: Vec<u8>,
    claims: Value,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    #[serde(default)]
    kid: Option<String>,
    #[serde(default)]
    crit: Option<IgnoredAny>,
}

impl Token {
    /// Reads the token of a call.
    pub(crate) fn of_call(call: &Call<'_>) -> Result<Self, Refused> {
        let header = std::str::from_utf8(call.header("Authorization")).unwrap_or_default();
        let bearer = header
            .strip_prefix("Bearer ")
            .ok_or_else(|| Refused::new("the Authorization header is missing or malformed"))?;
        match bearer.trim() {
            "" => Err(Refused::new("the Authorization header is missing a bearer token")),
            token => Self::parse(token)
                .map_err(|reason| Refused::new(format!("failed to parse bearer token: {reason}"))),
        }
    }

    fn parse(text: &str) -> Result<Self, &'static str> {
        if text.len() > MAX_LENGTH {
            return Err("token is too long");
        }
        let parts: Vec<&str> = text.split('.').collect();
        let [header, claims, signature] = parts.as_slice() else {
            return Err("token is not a JWT");
        };
        let decode = |part: &str| URL_SAFE_NO_PAD.decode(part);
        let signed = &text[..header.len() + 1 + claims.len()];
        let header = decode(header).map_err(|_| "failed to decode token header")?;
        let header: Header = serde_json::from_slice(&header).map_err(|_| "failed to parse token header")?;
        if header.crit.is_some() {
            return Err("token has critical headers that are not known");
        }
        let claims = decode(claims).map_err(|_| "failed to decode token payload")?;
        if json::values(&claims) > MOST_VALUES {
            return Err("token has too many claims");
        }
        let claims = serde_json::from_slice(&claims).map_err(|_| "failed to parse token payload")?;
        Ok(Self {
            algorithm: Algorithm::named(&header.alg).ok_or("token has an unexpected signature algorithm")?,
            kid: header.kid.unwrap_or_default(),
            signed: signed.as_bytes().to_vec(),
            signature: decode(signature).map_err(|_| "failed to decode token signature")?,
            claims,
        })
    }

    /// A claim that is text; empty if there is none.
    pub(crate) fn text(&self, claim: &str) -> &str {
        self.claims.get(claim).and_then(Value::as_str).unwrap_or_default()
    }

    /// All claims.
    pub(crate) fn claims(&self) -> &Value {
        &self.claims
    }

    /// Returns whether the token says that it is for someone. An audience is a text or a list of texts.
    pub(crate) fn is_for(&self, audience: &str) -> bool {
        match self.claims.get("aud") {
            Some(Value::String(only)) => only == audience,
            Some(Value::Array(all)) => all.iter().any(|one| one == audience),
            _ => false,
        }
    }

    /// Refuses what is over or has not begun.
    pub(crate) fn check_time(&self, now: Timestamp) -> Result<(), Refused> {
        let seconds = |claim: &str| self.claims.get(claim).and_then(Value::as_f64);
        let now = now.as_second();
        // What does not say when it ends has ended.
        if seconds("exp").is_none_or(|end| end < now as f64) {
            return Err(Refused::new("token is expired"));
        }
        if seconds("nbf").is_some_and(|start| start > (now + LEEWAY_SECONDS) as f64) {
            return Err(Refused::new("token is not valid yet (nbf)"));
        }
        Ok(())
    }

    pub(crate) fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Returns whether one of the keys made the signature.
    pub(crate) fn is_signed_by(&self, keys: &[Key]) -> bool {
        keys.iter()
            .filter(|key| self.kid.is_empty() || key.kid == self.kid)
            .any(|key| key.verifies(self.algorithm, &self.signed, &self.signature))
    }
}
