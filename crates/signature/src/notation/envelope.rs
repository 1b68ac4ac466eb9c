//! Envelopes: the JWS and the COSE form of a signature, opened. What comes out was signed with the key of its first
//! certificate, and the chain of certificates is in order; whether it is trusted is not looked at here.

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ECDSA_P521_SHA512_FIXED, RSA_PSS_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, UnparsedPublicKey, VerificationAlgorithm,
};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value as Json;

use super::cbor::{self, Value};
use super::certificate::{self, Algorithm, Certificate};
use super::error::Error;

/// Media type of the JWS form.
const JWS: &str = "application/jose+json";
/// Media type of the COSE form.
const COSE: &str = "application/cose";
const SCHEME: &str = "io.cncf.notary.signingScheme";
const SIGNING_TIME: &str = "io.cncf.notary.signingTime";
const AUTHENTIC_SIGNING_TIME: &str = "io.cncf.notary.authenticSigningTime";
const EXPIRY: &str = "io.cncf.notary.expiry";
const PLUGIN: &str = "io.cncf.notary.verificationPlugin";
const PLUGIN_VERSION: &str = "io.cncf.notary.verificationPluginMinVersion";

/// Scheme of the signing time: who vouches for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scheme {
    /// No one, unless there is a time stamp.
    X509,
    /// The signer, who is an authority.
    SigningAuthority,
}

/// A signature whose integrity is verified.
#[derive(Debug)]
pub(super) struct Envelope {
    pub(super) payload: Vec<u8>,
    pub(super) payload_type: String,
    pub(super) scheme: Scheme,
    pub(super) signing_time: Timestamp,
    pub(super) expiry: Option<Timestamp>,
    /// A program that the signer wants asked.
    pub(super) plugin: Option<String>,
    /// From the signer to the root.
    pub(super) chain: Vec<Certificate>,
}

/// Signed attributes besides the payload, in either form.
#[derive(Default)]
struct Protected {
    algorithm: Option<Algorithm>,
    payload_type: Option<String>,
    critical: Vec<String>,
    scheme: Option<String>,
    signing_time: Option<Timestamp>,
    authentic_signing_time: Option<Timestamp>,
    expiry: Option<Timestamp>,
    plugin: Option<String>,
}

impl Envelope {
    pub(super) fn open(media_type: &str, envelope: &[u8]) -> Result<Self, Error> {
        let opened = match media_type {
            JWS => open_jws(envelope),
            COSE => open_cose(envelope),
            other => return Err(Error::MediaType(other.to_owned())),
        };
        opened.map_err(Error::Integrity)
    }

    /// The signer's certificate. A chain is never empty.
    pub(super) fn leaf(&self) -> &Certificate {
        &self.chain[0]
    }
}

fn open_jws(envelope: &[u8]) -> Result<Envelope, String> {
    #[derive(Deserialize)]
    struct Jws {
        payload: String,
        protected: String,
        header: Header,
        signature: String,
    }
    #[derive(Deserialize)]
    struct Header {
        #[serde(default)]
        x5c: Vec<String>,
    }
    let unreadable = |what: &str| format!("failed to parse {what} of the signature envelope");
    let jws: Jws = serde_json::from_slice(envelope).map_err(|_| unreadable("the form"))?;
    let url_decoded = |text: &str, what| URL_SAFE_NO_PAD.decode(text).map_err(|_| unreadable(what));
    let protected = url_decoded(&jws.protected, "the protected header")?;
    let protected: serde_json::Map<String, Json> =
        serde_json::from_slice(&protected).map_err(|_| unreadable("the protected header"))?;
    let payload = url_decoded(&jws.payload, "the payload")?;
    let signature = url_decoded(&jws.signature, "the signature")?;
    let chain = jws.header.x5c.iter().map(|text| STANDARD.decode(text));
    let chain: Vec<_> = chain
        .collect::<Result<_, _>>()
        .map_err(|_| unreadable("the certificates"))?;
    let message = format!("{}.{}", jws.protected, jws.payload);
    let protected = jws_protected(&protected).ok_or_else(|| unreadable("the protected header"))?;
    finish(protected, &chain, message.as_bytes(), &signature, payload)
}

fn jws_protected(header: &serde_json::Map<String, Json>) -> Option<Protected> {
    let mut protected = Protected::default();
    for (name, value) in header {
        let text = || value.as_str().map(str::to_owned);
        let time = || value.as_str()?.parse::<Timestamp>().ok();
        match name.as_str() {
            "alg" => protected.algorithm = jws_algorithm(value.as_str()?),
            "cty" => protected.payload_type = Some(text()?),
            "crit" => {
                let names = value
                    .as_array()?
                    .iter()
                    .map(|name| name.as_str().map(str::to_owned));
                protected.critical = names.collect::<Option<_>>()?;
            }
            SCHEME => protected.scheme = Some(text()?),
            SIGNING_TIME => protected.signing_time = Some(time()?),
            AUTHENTIC_SIGNING_TIME => protected.authentic_signing_time = Some(time()?),
            EXPIRY => protected.expiry = Some(time()?),
            PLUGIN => protected.plugin = Some(text()?),
            _ => {}
        }
    }
    Some(protected)
}

fn jws_algorithm(name: &str) -> Option<Algorithm> {
    Some(match name {
        "PS256" => Algorithm::Ps256,
        "PS384" => Algorithm::Ps384,
        "PS512" => Algorithm::Ps512,
        "ES256" => Algorithm::Es256,
        "ES384" => Algorithm::Es384,
        "ES512" => Algorithm::Es512,
        _ => return None,
    })
}

fn open_cose(envelope: &[u8]) -> Result<Envelope, String> {
    let unreadable = |what: &str| format!("failed to parse {what} of the signature envelope");
    let value = Value::read(envelope);
    let Some(Value::Tag(18, message)) = value else {
        return Err(unreadable("the form"));
    };
    let parts = message.array().ok_or_else(|| unreadable("the form"))?;
    let [protected, unprotected, payload, signature] = parts else {
        return Err(unreadable("the form"));
    };
    let raw = protected
        .bytes()
        .ok_or_else(|| unreadable("the protected header"))?;
    let payload = payload.bytes().ok_or_else(|| unreadable("the payload"))?;
    let signature = signature.bytes().ok_or_else(|| unreadable("the signature"))?;
    let chain = cose_chain(unprotected).ok_or_else(|| unreadable("the certificates"))?;
    let header = Value::read(raw).and_then(|header| cose_protected(&header));
    let header = header.ok_or_else(|| unreadable("the protected header"))?;
    let signed = cbor::signature_structure(raw, payload);
    finish(header, &chain, &signed, signature, payload.to_vec())
}

fn cose_chain(unprotected: &Value<'_>) -> Option<Vec<Vec<u8>>> {
    const X5CHAIN: Value<'_> = Value::Integer(33);
    let entries = unprotected.map()?;
    let (_, chain) = entries.iter().find(|(key, _)| *key == X5CHAIN)?;
    chain
        .array()?
        .iter()
        .map(|der| der.bytes().map(<[u8]>::to_vec))
        .collect()
}

fn cose_protected(header: &Value<'_>) -> Option<Protected> {
    let mut protected = Protected::default();
    for (key, value) in header.map()? {
        let text = || value.text().map(str::to_owned);
        match key {
            Value::Integer(1) => protected.algorithm = cose_algorithm(value),
            Value::Integer(2) => {
                // Labels that are numbers stand for nothing that is known here, so they are refused by their name.
                let name = |label: &Value<'_>| match label {
                    Value::Text(text) => Some((*text).to_owned()),
                    Value::Integer(number) => Some(number.to_string()),
                    _ => None,
                };
                protected.critical = value.array()?.iter().map(name).collect::<Option<_>>()?;
            }
            Value::Integer(3) => protected.payload_type = Some(text()?),
            Value::Text(SCHEME) => protected.scheme = Some(text()?),
            Value::Text(SIGNING_TIME) => protected.signing_time = Some(cose_time(value)?),
            Value::Text(AUTHENTIC_SIGNING_TIME) => protected.authentic_signing_time = Some(cose_time(value)?),
            Value::Text(EXPIRY) => protected.expiry = Some(cose_time(value)?),
            Value::Text(PLUGIN) => protected.plugin = Some(text()?),
            _ => {}
        }
    }
    Some(protected)
}

fn cose_algorithm(value: &Value<'_>) -> Option<Algorithm> {
    Some(match value {
        Value::Integer(-37) => Algorithm::Ps256,
        Value::Integer(-38) => Algorithm::Ps384,
        Value::Integer(-39) => Algorithm::Ps512,
        Value::Integer(-7) => Algorithm::Es256,
        Value::Integer(-35) => Algorithm::Es384,
        Value::Integer(-36) => Algorithm::Es512,
        _ => return None,
    })
}

/// Seconds since 1970, tagged as a time.
fn cose_time(value: &Value<'_>) -> Option<Timestamp> {
    match value {
        Value::Tag(1, seconds) => match **seconds {
            Value::Integer(seconds) => Timestamp::from_second(i64::try_from(seconds).ok()?).ok(),
            _ => None,
        },
        _ => None,
    }
}

/// The same for both forms: chain, algorithm, signature, and the rules for the header.
fn finish(
    protected: Protected,
    chain: &[Vec<u8>],
    message: &[u8],
    signature: &[u8],
    payload: Vec<u8>,
) -> Result<Envelope, String> {
    let (chain, algorithm) = certificate::chain(chain)?;
    if protected.algorithm != Some(algorithm) {
        return Err(
            "mismatch between signature algorithm derived from signing certificate and signing algorithm specified"
                .to_owned(),
        );
    }
    let key = UnparsedPublicKey::new(verification(algorithm), &chain[0].key);
    let verified = key.verify(message, signature);
    verified.map_err(|_| "signature is invalid. Error: verification error".to_owned())?;
    let (scheme, signing_time) = scheme(&protected)?;
    check_critical(&protected, scheme)?;
    if protected.expiry.is_some_and(|expiry| expiry <= signing_time) {
        return Err("expiry cannot be equal or before the signing time".to_owned());
    }
    if payload.is_empty() {
        return Err("content not present".to_owned());
    }
    Ok(Envelope {
        payload,
        payload_type: protected.payload_type.unwrap_or_default(),
        scheme,
        signing_time,
        expiry: protected.expiry,
        plugin: protected.plugin,
        chain,
    })
}

fn scheme(protected: &Protected) -> Result<(Scheme, Timestamp), String> {
    let missing = || "signing-time not present".to_owned();
    match protected.scheme.as_deref().unwrap_or_default() {
        "notary.x509" if protected.authentic_signing_time.is_some() => Err(format!(
            "\"{AUTHENTIC_SIGNING_TIME}\" header must not be present for notary.x509 signing scheme"
        )),
        "notary.x509" => Ok((Scheme::X509, protected.signing_time.ok_or_else(missing)?)),
        "notary.x509.signingAuthority" if protected.signing_time.is_some() => Err(format!(
            "\"{SIGNING_TIME}\" header must not be present for notary.x509.signingAuthority signing scheme"
        )),
        "notary.x509.signingAuthority" => Ok((
            Scheme::SigningAuthority,
            protected.authentic_signing_time.ok_or_else(missing)?,
        )),
        other => Err(format!("unsupported SigningScheme: `{other}`")),
    }
}

/// Checks that the required attributes are critical, and that no other critical attribute is unknown.
fn check_critical(protected: &Protected, scheme: Scheme) -> Result<(), String> {
    let mut required = vec![SCHEME];
    required.extend(protected.expiry.map(|_| EXPIRY));
    required.extend((scheme == Scheme::SigningAuthority).then_some(AUTHENTIC_SIGNING_TIME));
    required.extend(protected.plugin.as_ref().map(|_| PLUGIN));
    let critical = |name: &str| protected.critical.iter().any(|critical| critical == name);
    if let Some(name) = required.iter().find(|name| !critical(name)) {
        return Err(format!(
            "these required headers are not marked as critical: [{name}]"
        ));
    }
    let known = |name: &&String| required.contains(&name.as_str()) || *name == PLUGIN_VERSION;
    match protected.critical.iter().find(|name| !known(name)) {
        Some(name) => Err(format!("\"{name}\" header is marked critical but not understood")),
        None => Ok(()),
    }
}

fn verification(algorithm: Algorithm) -> &'static dyn VerificationAlgorithm {
    match algorithm {
        Algorithm::Ps256 => &RSA_PSS_2048_8192_SHA256,
        Algorithm::Ps384 => &RSA_PSS_2048_8192_SHA384,
        Algorithm::Ps512 => &RSA_PSS_2048_8192_SHA512,
        Algorithm::Es256 => &ECDSA_P256_SHA256_FIXED,
        Algorithm::Es384 => &ECDSA_P384_SHA384_FIXED,
        Algorithm::Es512 => &ECDSA_P521_SHA512_FIXED,
    }
}
