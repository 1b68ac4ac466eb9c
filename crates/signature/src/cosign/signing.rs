//! Statements and contents that we sign, in the forms of cosign 1 and 2.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1, ECDSA_P256_SHA256_ASN1_SIGNING, ED25519, EcdsaKeyPair, Ed25519KeyPair,
    KeyPair as _,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use x509_parser::pem::parse_x509_pem;

use super::envelope::{Envelope, STATEMENT, pre_authentication_encoding};
use super::{Error, PublicKey};

/// Returns the predicate of a statement of this type about a digest (`sha256:…`), if the key's owner signed its envelope. It is
/// [`Authority::verify_attestation`](super::Authority::verify_attestation) for keys alone, which needs nothing of Sigstore's installations.
///
/// # Errors
/// When the envelope is none, or was not signed with this key, or says something else.
pub fn attested(
    envelope: &[u8],
    digest: &str,
    predicate_type: &str,
    key: &PublicKey,
) -> Result<Value, Error> {
    let unreadable = |_| Error::Parse { what: "the envelope" };
    let envelope: Envelope = serde_json::from_slice(envelope).map_err(unreadable)?;
    envelope.open(digest, key)?.predicate(predicate_type)
}

/// What cosign 1 and 2 sign about the image or artifact with this digest (`sha256:…`) in a repository (`host/path`).
#[must_use]
pub fn simple_payload(repository: &str, digest: &str) -> String {
    let payload = json!({
        "critical": {
            "identity": {"docker-reference": repository},
            "image": {"docker-manifest-digest": digest},
            "type": "cosign container image signature",
        },
        "optional": null,
    });
    payload.to_string()
}

/// A private key that cannot be used, or with which nothing could be signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SigningError {
    /// No PEM, or nothing readable in it.
    #[error("it is no private key in PEM")]
    Decode,
    /// A key with a passphrase.
    #[error("the private key is encrypted: it must have no passphrase")]
    Encrypted,
    /// Neither ECDSA with the curve P-256 nor Ed25519.
    #[error("the private key is neither ECDSA with the curve P-256 nor Ed25519")]
    Algorithm,
    /// The library refused.
    #[error("nothing could be signed")]
    Sign,
}

/// A key that statements are signed with.
pub struct SigningKey(Kind);

enum Kind {
    Ecdsa(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

impl std::fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SigningKey(..)")
    }
}

impl SigningKey {
    /// Reads the first private key of a PEM file, as `openssl genpkey` and `openssl ecparam` write it.
    ///
    /// # Errors
    /// When there is no key of a supported kind in it.
    pub fn from_pem(pem: &[u8]) -> Result<Self, SigningError> {
        let mut rest = pem;
        loop {
            let (after, block) = parse_x509_pem(rest).map_err(|_| SigningError::Decode)?;
            let key = match block.label.as_str() {
                // Of `openssl ecparam -genkey`, before the key.
                "EC PARAMETERS" => {
                    rest = after;
                    continue;
                }
                "PRIVATE KEY" => Ed25519KeyPair::from_pkcs8_maybe_unchecked(&block.contents)
                    .map(Kind::Ed25519)
                    .or_else(|_| {
                        EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &block.contents)
                            .map(Kind::Ecdsa)
                    }),
                "EC PRIVATE KEY" => {
                    EcdsaKeyPair::from_private_key_der(&ECDSA_P256_SHA256_ASN1_SIGNING, &block.contents)
                        .map(Kind::Ecdsa)
                }
                label if label.starts_with("ENCRYPTED ") => return Err(SigningError::Encrypted),
                _ => return Err(SigningError::Decode),
            };
            return key.map(Self).map_err(|_| SigningError::Algorithm);
        }
    }

    /// The key that verifies what this one signs.
    #[must_use]
    pub fn public_key(&self) -> PublicKey {
        match &self.0 {
            Kind::Ecdsa(key) => PublicKey::from_parts(&ECDSA_P256_SHA256_ASN1, key.public_key().as_ref()),
            Kind::Ed25519(key) => PublicKey::from_parts(&ED25519, key.public_key().as_ref()),
        }
    }

    /// Signs a statement. Returns the envelope, as JSON.
    ///
    /// # Errors
    /// When the library refuses, which it does without randomness.
    pub fn attest(&self, statement: &Value) -> Result<String, SigningError> {
        let payload = statement.to_string();
        let message = pre_authentication_encoding(STATEMENT, payload.as_bytes());
        let signature = self.sign(&message)?;
        let envelope = json!({
            "payloadType": STATEMENT,
            "payload": STANDARD.encode(payload),
            "signatures": [{"keyid": "", "sig": signature}],
        });
        Ok(envelope.to_string())
    }

    /// Signs bytes: the content of a file, as `cosign sign-blob` does, or the [payload](simple_payload) about an image. Returns the
    /// signature in base64, which is ASN.1 of an ECDSA key.
    ///
    /// # Errors
    /// When the library refuses, which it does without randomness.
    pub fn sign(&self, content: &[u8]) -> Result<String, SigningError> {
        let signature = match &self.0 {
            Kind::Ecdsa(key) => key
                .sign(&SystemRandom::new(), content)
                .map_err(|_| SigningError::Sign)?
                .as_ref()
                .to_vec(),
            Kind::Ed25519(key) => key.sign(content).as_ref().to_vec(),
        };
        Ok(STANDARD.encode(signature))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    use super::super::{Attestation, Authority, SimpleSignature, Witness};
    use super::*;

    const DIGEST: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    /// As people make keys.
    fn openssl(arguments: &[&str], input: &[u8]) -> Vec<u8> {
        let mut child = Command::new("openssl")
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        child.wait_with_output().unwrap().stdout
    }

    fn statement(digest: &str) -> Value {
        let hex = digest.strip_prefix("sha256:").unwrap();
        json!({
            "_type": "https://in-toto.io/Statement/v1", "predicateType": "https://example.com/a/v1",
            "subject": [{"name": "release", "digest": {"sha256": hex}}], "predicate": {"says": "yes"},
        })
    }

    #[test]
    fn what_is_signed_is_verified_with_the_public_key_of_each_kind() {
        let keys = [
            openssl(&["genpkey", "-algorithm", "ed25519"], b""),
            openssl(
                &[
                    "genpkey",
                    "-algorithm",
                    "EC",
                    "-pkeyopt",
                    "ec_paramgen_curve:P-256",
                ],
                b"",
            ),
            openssl(&["ecparam", "-name", "prime256v1", "-genkey"], b""),
        ];
        for private in &keys {
            let public = PublicKey::from_pem(&openssl(&["pkey", "-pubout"], private)).unwrap();
            let key = SigningKey::from_pem(private).unwrap();
            let envelope = key.attest(&statement(DIGEST)).unwrap();
            let own = attested(
                envelope.as_bytes(),
                DIGEST,
                "https://example.com/a/v1",
                &key.public_key(),
            );
            assert_eq!(own.unwrap()["says"], "yes");
            let verified = |envelope: &str, key: &PublicKey, kind: &str| {
                let attestation = Attestation::Envelope {
                    json: envelope.as_bytes().to_vec(),
                    witness: Witness::default(),
                };
                Authority::Key(key).verify_attestation(&attestation, DIGEST, kind)
            };
            let attested = verified(&envelope, &public, "https://example.com/a/v1").unwrap();
            assert_eq!(attested.predicate["says"], "yes");
            let alone = super::attested(envelope.as_bytes(), DIGEST, "https://example.com/a/v1", &public);
            assert_eq!(alone.unwrap(), attested.predicate);
            let other = super::attested(envelope.as_bytes(), DIGEST, "https://example.com/b/v1", &public);
            assert!(matches!(other, Err(Error::PredicateType { .. })), "{other:?}");
            let other = openssl(
                &["pkey", "-pubout"],
                &openssl(&["genpkey", "-algorithm", "ed25519"], b""),
            );
            let other = PublicKey::from_pem(&other).unwrap();
            let refused = verified(&envelope, &other, "https://example.com/a/v1");
            assert!(matches!(refused, Err(Error::VerifyWithKey)), "{refused:?}");
            // Another statement with the same signature.
            let mut forged: Value = serde_json::from_str(&envelope).unwrap();
            forged["payload"] = json!(STANDARD.encode(statement(DIGEST).to_string().replace("yes", "no!")));
            let refused = verified(&forged.to_string(), &public, "https://example.com/a/v1");
            assert!(matches!(refused, Err(Error::VerifyWithKey)), "{refused:?}");
        }
    }

    #[test]
    fn files_and_images_are_signed_as_cosign_does() {
        let key = openssl(&["ecparam", "-name", "prime256v1", "-genkey"], b"");
        let public = openssl(&["pkey", "-pubout"], &key);
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).display().to_string();
        let signing = SigningKey::from_pem(&key).unwrap();
        let signature = signing.sign(b"content").unwrap();
        std::fs::write(at("key"), &public).unwrap();
        std::fs::write(at("signature"), STANDARD.decode(&signature).unwrap()).unwrap();
        let (key, file) = (at("key"), at("signature"));
        let verify = |content: &[u8]| {
            openssl(
                &["dgst", "-sha256", "-verify", &key, "-signature", &file],
                content,
            )
        };
        assert_eq!(verify(b"content"), b"Verified OK\n");
        assert_eq!(verify(b"other"), b"Verification failure\n");

        let payload = simple_payload("example.com/app", DIGEST);
        let signature = SimpleSignature {
            signature: signing.sign(payload.as_bytes()).unwrap(),
            payload: payload.into_bytes(),
            witness: Witness::default(),
        };
        let public = PublicKey::from_pem(&public).unwrap();
        let verified = |digest: &str| Authority::Key(&public).verify_simple(&signature, digest);
        verified(DIGEST).unwrap();
        assert!(verified(&DIGEST.replace('3', "4")).is_err());
    }

    #[test]
    fn other_keys_are_refused_by_name() {
        let rsa = openssl(&["genpkey", "-algorithm", "RSA"], b"");
        let p384 = openssl(
            &[
                "genpkey",
                "-algorithm",
                "EC",
                "-pkeyopt",
                "ec_paramgen_curve:P-384",
            ],
            b"",
        );
        let plain = openssl(&["genpkey", "-algorithm", "ed25519"], b"");
        let sealed = openssl(&["pkey", "-aes256", "-passout", "pass:x"], &plain);
        let public = openssl(&["pkey", "-pubout"], &plain);
        for (pem, expected) in [
            (rsa.as_slice(), SigningError::Algorithm),
            (&p384, SigningError::Algorithm),
            (&sealed, SigningError::Encrypted),
            (&public, SigningError::Decode),
            (b"", SigningError::Decode),
            (b"-----BEGIN PRIVATE KEY-----\n", SigningError::Decode),
        ] {
            let refused = SigningKey::from_pem(pem).unwrap_err();
            assert_eq!(refused, expected, "{}", String::from_utf8_lossy(pem));
        }
    }
}
