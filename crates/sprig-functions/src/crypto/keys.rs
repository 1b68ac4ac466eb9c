//! Private keys: `genPrivateKey`, and those that certificates are made with.

use aws_lc_rs::encoding::{
    AsBigEndian, AsDer, Curve25519SeedBin, EcPrivateKeyRfc5915Der, Pkcs8V1Der, PublicKeyX509Der,
};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P384_SHA384_ASN1_SIGNING, ECDSA_P521_SHA512_ASN1_SIGNING,
    EcdsaKeyPair, EcdsaSigningAlgorithm, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256,
};
use go_template::{Error, Functions, Type};

use super::der::{self, INTEGER, OBJECT_IDENTIFIER, OCTET_STRING, Reader, SEQUENCE, element};
use super::pem;
use crate::arguments::{add, made, text};

pub(crate) fn register(functions: &mut Functions) {
    add(
        functions,
        &[("genPrivateKey", &[Type::STRING], |context, arguments| {
            context.step()?;
            let key = match text(arguments, 0) {
                b"" | b"rsa" => PrivateKey::generate_rsa(rsa::KeySize::Rsa4096)?,
                b"ecdsa" => PrivateKey::generate_ecdsa()?,
                b"ed25519" => PrivateKey::generate_ed25519()?,
                // No one should want one; TLS does not take them.
                b"dsa" => return Err(Error::new("failed to generate private key: DSA is not supported")),
                other => return made([b"Unknown type ", other].concat()),
            };
            made(key.to_pem()?)
        })],
    );
}

/// A private key.
pub(super) enum PrivateKey {
    Rsa(rsa::KeyPair),
    Ec(EcdsaKeyPair, &'static Curve),
    Ed25519(Ed25519KeyPair),
    /// A key of a kind that can be read but signs nothing.
    Dsa,
}

pub(super) struct Curve {
    identifier: &'static [u8],
    algorithm: &'static EcdsaSigningAlgorithm,
    signature: &'static [u8],
}

/// Contents of object identifiers.
const RSA_ENCRYPTION: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
const SHA256_WITH_RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0b];
const EC_PUBLIC_KEY: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
const ED25519: &[u8] = &[0x2b, 0x65, 0x70];

static CURVES: [Curve; 3] = [
    Curve {
        identifier: &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07],
        algorithm: &ECDSA_P256_SHA256_ASN1_SIGNING,
        signature: &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02],
    },
    Curve {
        identifier: &[0x2b, 0x81, 0x04, 0x00, 0x22],
        algorithm: &ECDSA_P384_SHA384_ASN1_SIGNING,
        signature: &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x03],
    },
    Curve {
        identifier: &[0x2b, 0x81, 0x04, 0x00, 0x23],
        algorithm: &ECDSA_P521_SHA512_ASN1_SIGNING,
        signature: &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x04],
    },
];

impl PrivateKey {
    pub(super) fn generate_rsa(size: rsa::KeySize) -> Result<Self, Error> {
        rsa::KeyPair::generate(size).map(Self::Rsa).map_err(not_generated)
    }

    fn generate_ecdsa() -> Result<Self, Error> {
        let curve = &CURVES[0];
        let pair = EcdsaKeyPair::generate(curve.algorithm).map_err(not_generated)?;
        Ok(Self::Ec(pair, curve))
    }

    fn generate_ed25519() -> Result<Self, Error> {
        Ed25519KeyPair::generate()
            .map(Self::Ed25519)
            .map_err(not_generated)
    }

    /// Reads a key from PEM. The error is sprig's.
    pub(super) fn from_pem(text: &[u8]) -> Result<Self, String> {
        let block = pem::decode(text).ok_or("no PEM data in input")?;
        let label = String::from_utf8_lossy(&block.label);
        if label == "PRIVATE KEY" {
            return from_pkcs8_or_why_not(&block.contents)
                .map_err(|error| format!("decoding PEM as PKCS#8: {error}"));
        }
        match label.strip_suffix(" PRIVATE KEY") {
            None => Err(format!("no private key data in PEM block of type {label}")),
            Some("RSA") => from_pkcs1_or_why_not(&block.contents)
                .map_err(|error| format!("parsing RSA private key from PEM: {error}")),
            Some("EC") => from_sec1_or_why_not(&block.contents)
                .map_err(|error| format!("parsing EC private key from PEM: {error}")),
            Some("DSA") => match Reader(&block.contents).tagged(SEQUENCE) {
                Some(_) => Ok(Self::Dsa),
                None => Err(format!(
                    "parsing DSA private key from PEM: {}",
                    asn1_error(&block.contents, "DSAKeyFormat")
                )),
            },
            Some(_) => Err(format!("invalid private key type {label}")),
        }
    }

    /// Writes the key in the form that Go has for its kind.
    pub(super) fn to_pem(&self) -> Result<Vec<u8>, Error> {
        match self {
            Self::Rsa(pair) => Ok(pem::encode("RSA PRIVATE KEY", &pkcs1(pair)?)),
            Self::Ec(pair, _) => {
                let der: EcPrivateKeyRfc5915Der<'_> = pair.private_key().as_der().map_err(not_written)?;
                Ok(pem::encode("EC PRIVATE KEY", der.as_ref()))
            }
            Self::Ed25519(pair) => {
                let seed = pair.seed().map_err(not_written)?;
                let seed: Curve25519SeedBin<'_> = seed.as_be_bytes().map_err(not_written)?;
                let algorithm = element(SEQUENCE, &[&element(OBJECT_IDENTIFIER, &[ED25519])]);
                let key = element(OCTET_STRING, &[&element(OCTET_STRING, &[seed.as_ref()])]);
                let version = der::integer(&[0]);
                Ok(pem::encode(
                    "PRIVATE KEY",
                    &element(SEQUENCE, &[&version, &algorithm, &key]),
                ))
            }
            Self::Dsa => Err(not_written(aws_lc_rs::error::Unspecified)),
        }
    }

    /// The public key as certificates have it.
    pub(super) fn public_key(&self) -> Result<Vec<u8>, String> {
        let public: Result<PublicKeyX509Der<'_>, _> = match self {
            Self::Rsa(pair) => pair.public_key().as_der(),
            Self::Ec(pair, _) => pair.public_key().as_der(),
            Self::Ed25519(pair) => pair.public_key().as_der(),
            Self::Dsa => return Err("x509: unsupported public key type: *dsa.PublicKey".to_owned()),
        };
        let public = public.map_err(|_| "x509: failed to marshal the public key".to_owned())?;
        Ok(public.as_ref().to_vec())
    }

    /// Returns whether it can sign certificates; Go's DSA keys cannot.
    pub(super) fn is_signer(&self) -> bool {
        !matches!(self, Self::Dsa)
    }

    /// The algorithm of its signatures as certificates name it.
    pub(super) fn signature_algorithm(&self) -> Vec<u8> {
        let null: &[u8] = &[0x05, 0x00];
        let (identifier, parameters): (&[u8], &[u8]) = match self {
            Self::Rsa(_) => (SHA256_WITH_RSA, null),
            Self::Ec(_, curve) => (curve.signature, b""),
            Self::Ed25519(_) | Self::Dsa => (ED25519, b""),
        };
        element(
            SEQUENCE,
            &[&element(OBJECT_IDENTIFIER, &[identifier]), parameters],
        )
    }

    pub(super) fn sign(&self, message: &[u8]) -> Result<Vec<u8>, String> {
        let random = SystemRandom::new();
        let signature = match self {
            Self::Rsa(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature)
                    .map(|()| signature)
            }
            Self::Ec(pair, _) => pair
                .sign(&random, message)
                .map(|signature| signature.as_ref().to_vec()),
            Self::Ed25519(pair) => Ok(pair.sign(message).as_ref().to_vec()),
            Self::Dsa => {
                return Err("x509: certificate private key does not implement crypto.Signer".to_owned());
            }
        };
        signature.map_err(|_| "x509: failed to sign".to_owned())
    }
}

/// The PKCS#1 form, which is inside of PKCS#8.
fn pkcs1(pair: &rsa::KeyPair) -> Result<Vec<u8>, Error> {
    let pkcs8: Pkcs8V1Der<'_> = pair.as_der().map_err(not_written)?;
    let key = parse_pkcs8(pkcs8.as_ref()).map(|(_, _, key)| key.to_vec());
    key.ok_or_else(|| not_written(aws_lc_rs::error::Unspecified))
}

/// The identifier, the parameters and the key of PKCS#8.
fn parse_pkcs8(der: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let mut key = Reader(der).inside(SEQUENCE)?;
    key.tagged(INTEGER)?;
    let mut algorithm = key.inside(SEQUENCE)?;
    let identifier = algorithm.tagged(OBJECT_IDENTIFIER)?.contents;
    Some((identifier, algorithm.0, key.tagged(OCTET_STRING)?.contents))
}

fn from_pkcs1(der: &[u8]) -> Option<PrivateKey> {
    rsa::KeyPair::from_der(der).ok().map(PrivateKey::Rsa)
}

fn from_pkcs8(der: &[u8]) -> Option<PrivateKey> {
    let (identifier, parameters, key) = parse_pkcs8(der)?;
    match identifier {
        RSA_ENCRYPTION => from_pkcs1(key),
        EC_PUBLIC_KEY => {
            let curve = curve(Reader(parameters).tagged(OBJECT_IDENTIFIER)?.contents)?;
            let pair = EcdsaKeyPair::from_pkcs8(curve.algorithm, der).ok()?;
            Some(PrivateKey::Ec(pair, curve))
        }
        ED25519 => {
            let seed = Reader(key).tagged(OCTET_STRING)?.contents;
            Ed25519KeyPair::from_seed_unchecked(seed)
                .ok()
                .map(PrivateKey::Ed25519)
        }
        _ => None,
    }
}

/// Reads SEC 1, which names its curve within.
fn from_sec1(der: &[u8]) -> Option<PrivateKey> {
    let curve = curve(sec1_curve(der)??)?;
    let pair = EcdsaKeyPair::from_private_key_der(curve.algorithm, der).ok()?;
    Some(PrivateKey::Ec(pair, curve))
}

/// The inner None is a key that does not name its curve.
fn sec1_curve(der: &[u8]) -> Option<Option<&[u8]>> {
    let mut key = Reader(der).inside(SEQUENCE)?;
    key.tagged(INTEGER)?;
    key.tagged(OCTET_STRING)?;
    let curve = key.inside(der::explicit(0));
    Some(curve.and_then(|mut curve| Some(curve.tagged(OBJECT_IDENTIFIER)?.contents)))
}

fn curve(identifier: &[u8]) -> Option<&'static Curve> {
    CURVES.iter().find(|curve| curve.identifier == identifier)
}

const USE_PKCS1: &str =
    "x509: failed to parse private key (use ParsePKCS1PrivateKey instead for this key format)";
const USE_PKCS8: &str =
    "x509: failed to parse private key (use ParsePKCS8PrivateKey instead for this key format)";
const USE_EC: &str = "x509: failed to parse private key (use ParseECPrivateKey instead for this key format)";

fn from_pkcs1_or_why_not(der: &[u8]) -> Result<PrivateKey, String> {
    match from_pkcs1(der) {
        Some(key) => Ok(key),
        None if from_sec1(der).is_some() => Err(USE_EC.to_owned()),
        None if from_pkcs8(der).is_some() => Err(USE_PKCS8.to_owned()),
        None => Err(asn1_error(der, "pkcs1PrivateKey")),
    }
}

fn from_sec1_or_why_not(der: &[u8]) -> Result<PrivateKey, String> {
    match from_sec1(der) {
        Some(key) => Ok(key),
        None if from_pkcs8(der).is_some() => Err(USE_PKCS8.to_owned()),
        None if from_pkcs1(der).is_some() => Err(USE_PKCS1.to_owned()),
        None if sec1_curve(der).is_some() => Err("x509: unknown elliptic curve".to_owned()),
        None => Err(format!(
            "x509: failed to parse EC private key: {}",
            asn1_error(der, "ecPrivateKey")
        )),
    }
}

fn from_pkcs8_or_why_not(der: &[u8]) -> Result<PrivateKey, String> {
    match from_pkcs8(der) {
        Some(key) => Ok(key),
        None if from_sec1(der).is_some() => Err(USE_EC.to_owned()),
        None if from_pkcs1(der).is_some() => Err(USE_PKCS1.to_owned()),
        None => Err(asn1_error(der, "pkcs8")),
    }
}

/// encoding/asn1's error for bytes that are not a sequence of some kind, for the two common cases.
fn asn1_error(der: &[u8], name: &str) -> String {
    match Reader(der).any() {
        Some(found) if found.tag != SEQUENCE => tag_mismatch(found.tag, found.contents.len(), name),
        None if der.first().is_some_and(|&tag| tag != SEQUENCE) && der.len() > 1 && der[1] < 0x80 => {
            tag_mismatch(der[0], der[1].into(), name)
        }
        _ => "asn1: syntax error: sequence truncated".to_owned(),
    }
}

fn tag_mismatch(tag: u8, length: usize, name: &str) -> String {
    let (class, number, is_compound) = (tag >> 6, tag & 0x1f, tag & 0x20 != 0);
    format!(
        "asn1: structure error: tags don't match (16 vs {{class:{class} tag:{number} length:{length} \
         isCompound:{is_compound}}}) {{optional:false explicit:false application:false private:false \
         defaultValue:<nil> tag:<nil> stringType:0 timeType:0 set:false omitEmpty:false}} {name} @2"
    )
}

fn not_generated(_: aws_lc_rs::error::Unspecified) -> Error {
    Error::new("failed to generate private key")
}

fn not_written(_: aws_lc_rs::error::Unspecified) -> Error {
    Error::new("failed to marshal private key")
}
