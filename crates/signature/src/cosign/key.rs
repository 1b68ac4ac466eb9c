//! Public keys: PEM goes in, verdicts about messages come out.

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1, ECDSA_P384_SHA256_ASN1, ECDSA_P521_SHA256_ASN1, ED25519,
    RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey, VerificationAlgorithm,
};
use x509_parser::oid_registry as oid;
use x509_parser::pem::parse_x509_pem;
use x509_parser::prelude::FromDer as _;
use x509_parser::x509::SubjectPublicKeyInfo;

use super::error::Error;

/// PEM that holds no key, or one of a kind that is not supported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// No PEM, or nothing readable in it.
    #[error("PEM decoding failed")]
    Decode,
    /// Something else than a public key.
    #[error("unknown Public key PEM file type: {0}. Are you passing the correct public key?")]
    Label(String),
    /// Neither ECDSA with a curve of NIST, nor RSA, nor Ed25519.
    #[error("unsupported public key type")]
    Algorithm,
}

/// A key that signatures are verified with.
#[derive(Clone)]
pub struct PublicKey(UnparsedPublicKey<Vec<u8>>);

impl std::fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PublicKey(..)")
    }
}

impl PublicKey {
    /// Reads the first key of a PEM file, as `cosign generate-key-pair` and `openssl` write it.
    ///
    /// # Errors
    /// When there is no key of a supported kind in it.
    pub fn from_pem(pem: &[u8]) -> Result<Self, KeyError> {
        let (_, pem) = parse_x509_pem(pem).map_err(|_| KeyError::Decode)?;
        match pem.label.as_str() {
            "PUBLIC KEY" => {
                let (_, info) =
                    SubjectPublicKeyInfo::from_der(&pem.contents).map_err(|_| KeyError::Decode)?;
                let algorithm = algorithm(&info).ok_or(KeyError::Algorithm)?;
                let bytes = info.subject_public_key.data.to_vec();
                Ok(Self(UnparsedPublicKey::new(algorithm, bytes)))
            }
            "RSA PUBLIC KEY" => Ok(Self(UnparsedPublicKey::new(
                &RSA_PKCS1_2048_8192_SHA256,
                pem.contents,
            ))),
            label => Err(KeyError::Label(label.to_owned())),
        }
    }

    /// A key that is known already.
    pub(super) fn from_parts(algorithm: &'static dyn VerificationAlgorithm, bytes: &[u8]) -> Self {
        Self(UnparsedPublicKey::new(algorithm, bytes.to_vec()))
    }

    /// Returns whether the key's owner signed this message. The hash is SHA-256 whatever the key, as in Flux.
    pub(super) fn verify(&self, message: &[u8], signature: &[u8]) -> Result<(), Error> {
        self.0
            .verify(message, signature)
            .map_err(|_| Error::VerifyWithKey)
    }
}

fn algorithm(info: &SubjectPublicKeyInfo<'_>) -> Option<&'static dyn VerificationAlgorithm> {
    let kind = &info.algorithm.algorithm;
    if *kind == oid::OID_PKCS1_RSAENCRYPTION {
        return Some(&RSA_PKCS1_2048_8192_SHA256);
    }
    if *kind == oid::OID_SIG_ED25519 {
        return Some(&ED25519);
    }
    if *kind != oid::OID_KEY_TYPE_EC_PUBLIC_KEY {
        return None;
    }
    let curve = info.algorithm.parameters.as_ref()?.as_oid().ok()?;
    if curve == oid::OID_EC_P256 {
        Some(&ECDSA_P256_SHA256_ASN1)
    } else if curve == oid::OID_NIST_EC_P384 {
        Some(&ECDSA_P384_SHA256_ASN1)
    } else if curve == oid::OID_NIST_EC_P521 {
        Some(&ECDSA_P521_SHA256_ASN1)
    } else {
        None
    }
}
