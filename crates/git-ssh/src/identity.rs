//! The private key that we sign in with.
//!
//! In: the text of a Secret, in one of the forms that ssh-keygen and openssl write, with a passphrase or not: OpenSSH,
//! PKCS#1, SEC1, PKCS#8. Out: an [`Identity`], or an error that says what is wrong without quoting anything of it. The
//! text is a tenant's: what it makes us compute to undo its passphrase is bounded.

mod error;
mod legacy;
mod short;

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pkcs8::EncryptedPrivateKeyInfoRef;
use pkcs8::der::Decode as _;
use pkcs8::pkcs5::EncryptionScheme;
use pkcs8::pkcs5::pbes2::Kdf as Pbes2Kdf;
use russh::keys::ssh_key::private::Ed25519Keypair;
use russh::keys::ssh_key::{self, Kdf};
use russh::keys::{Algorithm, HashAlg, PrivateKey, decode_secret_key};
use zeroize::Zeroizing;

use error::MAX_TEXT;

pub use error::ParseError;

/// Rounds of bcrypt; ssh-keygen's default is 24. This many take seconds.
const MAX_BCRYPT_ROUNDS: u32 = 1024;
/// Iterations of PBKDF2; openssl's default is 2,048.
const MAX_PBKDF2_ITERATIONS: u32 = 2_000_000;
/// Memory that scrypt may take.
const MAX_SCRYPT_BYTES: u64 = 64 << 20;
const MAX_SCRYPT_PARALLELIZATION: u16 = 16;

/// A signature that was not made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("failed to sign with the ssh key {0}")]
pub struct SignError(String);

/// A key that was not made or written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("failed to make an ssh key")]
pub struct GenerateError;

/// A private key, ready to sign.
#[derive(Clone)]
pub struct Identity {
    key: Arc<PrivateKey>,
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_tuple("Identity")
            .field(&self.fingerprint())
            .finish()
    }
}

impl Identity {
    /// Reads a private key. A passphrase is used only if the key has one, as Flux does.
    pub fn parse(text: &[u8], passphrase: Option<&str>) -> Result<Self, ParseError> {
        if text.len() > MAX_TEXT {
            return Err(ParseError::TooLarge);
        }
        let text = std::str::from_utf8(text).map_err(|_| ParseError::NoKey)?;
        let block = Block::find(text).ok_or(ParseError::NoKey)?;
        let passphrase = passphrase.filter(|passphrase| !passphrase.is_empty());
        let key = match block.label {
            "OPENSSH PRIVATE KEY" => openssh(&block.bytes()?, passphrase)?,
            "ENCRYPTED PRIVATE KEY" => encrypted_pkcs8(&block, passphrase)?,
            "RSA PRIVATE KEY" | "EC PRIVATE KEY" if block.is_encrypted() => {
                let passphrase = passphrase.ok_or(ParseError::NeedsPassphrase)?;
                let bytes = legacy::decrypt(block.header("DEK-Info"), &block.bytes()?, passphrase)?;
                // The padding of a wrong passphrase may be right by accident.
                plain(&pem(block.label, &bytes)).map_err(|_| ParseError::WrongPassphrase)?
            }
            "RSA PRIVATE KEY" | "EC PRIVATE KEY" | "PRIVATE KEY" => {
                plain(&pem(block.label, &block.bytes()?))?
            }
            "DSA PRIVATE KEY" => {
                return Err(ParseError::Unsupported(
                    "keys of type DSA are not secure any more",
                ));
            }
            _ => return Err(ParseError::Unsupported("it is in a form that is not known")),
        };
        check_type(&key)?;
        Ok(Self { key: Arc::new(key) })
    }

    /// Makes a new key of the type ed25519.
    ///
    /// # Errors
    /// When the machine gives no random bytes.
    pub fn generate() -> Result<Self, GenerateError> {
        let mut seed = Zeroizing::new([0; 32]);
        aws_lc_rs::rand::fill(seed.as_mut()).map_err(|_| GenerateError)?;
        let key = PrivateKey::from(Ed25519Keypair::from_seed(&seed));
        Ok(Self { key: Arc::new(key) })
    }

    /// The private key as `ssh-keygen` writes it, without a passphrase.
    ///
    /// # Errors
    /// When it cannot be written, which is never so for keys of [`Identity::generate`].
    pub fn to_openssh(&self) -> Result<Zeroizing<String>, GenerateError> {
        let text = self.key.to_openssh(ssh_key::LineEnding::LF);
        text.map_err(|_| GenerateError)
    }

    /// The public key as servers take it: its type and the key, without a comment.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn public(&self) -> Result<String, GenerateError> {
        let mut public = self.key.public_key().clone();
        public.set_comment("");
        let text = public.to_openssh().map_err(|_| GenerateError)?;
        Ok(text.trim().to_owned())
    }

    /// Its type, such as `ssh-ed25519`.
    pub fn key_type(&self) -> String {
        match self.key.algorithm() {
            Algorithm::Rsa { .. } => "ssh-rsa".to_owned(),
            algorithm => algorithm.as_str().to_owned(),
        }
    }

    /// The fingerprint of its public key, `SHA256:…`.
    pub fn fingerprint(&self) -> String {
        self.key.fingerprint(HashAlg::Sha256).to_string()
    }

    /// Signs bytes as `ssh-keygen -Y sign` does, for one purpose, such as `git`. Returns the armored signature.
    ///
    /// # Errors
    /// When the key cannot sign.
    pub fn sign(&self, namespace: &str, payload: &[u8]) -> Result<String, SignError> {
        let signature = self.key.sign(namespace, HashAlg::Sha512, payload);
        let armored = signature.and_then(|signature| signature.to_pem(ssh_key::LineEnding::LF));
        armored.map_err(|_| SignError(self.fingerprint()))
    }

    pub(crate) fn key(&self) -> Arc<PrivateKey> {
        self.key.clone()
    }

    pub(crate) fn is_rsa(&self) -> bool {
        self.key.algorithm().is_rsa()
    }
}

/// One block of PEM, whose lines may be of any length and may have blanks around them.
struct Block<'a> {
    label: &'a str,
    headers: Vec<(&'a str, &'a str)>,
    body: String,
}

impl<'a> Block<'a> {
    /// The first block in the text that holds a private key.
    fn find(text: &'a str) -> Option<Self> {
        let mut lines = text.lines().map(str::trim);
        let label = lines.by_ref().find_map(|line| {
            let label = line.strip_prefix("-----BEGIN ")?.strip_suffix("-----")?;
            label.ends_with("PRIVATE KEY").then_some(label)
        })?;
        let mut block = Block {
            label,
            headers: Vec::new(),
            body: String::new(),
        };
        for line in lines {
            if let Some(end) = line.strip_prefix("-----END ") {
                return (end.strip_suffix("-----") == Some(label)).then_some(block);
            }
            match line.split_once(": ") {
                Some((name, value)) if block.body.is_empty() => block.headers.push((name, value)),
                _ => block.body.push_str(line),
            }
        }
        None
    }

    fn header(&self, name: &str) -> Option<&'a str> {
        self.headers
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, value)| *value)
    }

    fn is_encrypted(&self) -> bool {
        self.header("Proc-Type")
            .is_some_and(|kind| kind.contains("ENCRYPTED"))
    }

    fn bytes(&self) -> Result<Vec<u8>, ParseError> {
        STANDARD.decode(&self.body).map_err(|_| ParseError::Broken)
    }
}

fn openssh(bytes: &[u8], passphrase: Option<&str>) -> Result<PrivateKey, ParseError> {
    let read = PrivateKey::from_bytes(bytes).or_else(|error| short::plain(bytes).ok_or(error));
    let key = read.map_err(|error| match error {
        ssh_key::Error::AlgorithmUnknown | ssh_key::Error::AlgorithmUnsupported { .. } => {
            ParseError::Unsupported("its type is not known")
        }
        _ => ParseError::Broken,
    })?;
    if !key.is_encrypted() {
        return Ok(key);
    }
    let passphrase = passphrase.ok_or(ParseError::NeedsPassphrase)?;
    if !matches!(key.kdf(), Kdf::Bcrypt { rounds, .. } if *rounds <= MAX_BCRYPT_ROUNDS) {
        return Err(ParseError::TooExpensive);
    }
    match key.decrypt(passphrase) {
        Ok(key) => Ok(key),
        // What a wrong passphrase decrypts has another error.
        Err(ssh_key::Error::Encoding(_)) => {
            short::encrypted(&key, passphrase).ok_or(ParseError::WrongPassphrase)
        }
        Err(_) => Err(ParseError::WrongPassphrase),
    }
}

fn encrypted_pkcs8(block: &Block<'_>, passphrase: Option<&str>) -> Result<PrivateKey, ParseError> {
    let passphrase = passphrase.ok_or(ParseError::NeedsPassphrase)?;
    let bytes = block.bytes()?;
    let info = EncryptedPrivateKeyInfoRef::from_der(&bytes).map_err(|_| ParseError::Broken)?;
    let EncryptionScheme::Pbes2(parameters) = &info.encryption_algorithm else {
        return Err(ParseError::Unsupported("its encryption is not secure any more"));
    };
    let affordable = match &parameters.kdf {
        Pbes2Kdf::Pbkdf2(parameters) => parameters.iteration_count <= MAX_PBKDF2_ITERATIONS,
        Pbes2Kdf::Scrypt(parameters) => {
            let bytes = u64::from(parameters.block_size)
                .checked_mul(128)
                .and_then(|bytes| bytes.checked_mul(parameters.cost_parameter));
            parameters.parallelization <= MAX_SCRYPT_PARALLELIZATION
                && bytes.is_some_and(|bytes| bytes <= MAX_SCRYPT_BYTES)
        }
        _ => false,
    };
    if !affordable {
        return Err(ParseError::TooExpensive);
    }
    let decoded = decode_secret_key(&pem(block.label, &bytes), Some(passphrase));
    decoded.map_err(|_| ParseError::WrongPassphrase)
}

/// A key without a passphrase.
fn plain(pem: &str) -> Result<PrivateKey, ParseError> {
    decode_secret_key(pem, None).map_err(|error| match error {
        russh::keys::Error::UnknownAlgorithm(_) | russh::keys::Error::UnsupportedKeyType { .. } => {
            ParseError::Unsupported("its type is not known")
        }
        _ => ParseError::Broken,
    })
}

fn check_type(key: &PrivateKey) -> Result<(), ParseError> {
    match key.algorithm() {
        Algorithm::Ed25519 | Algorithm::Ecdsa { .. } | Algorithm::Rsa { .. } => Ok(()),
        Algorithm::SkEd25519 | Algorithm::SkEcdsaSha2NistP256 => Err(ParseError::Unsupported(
            "a key of a security token cannot sign without the token",
        )),
        _ => Err(ParseError::Unsupported("its type is not known")),
    }
}

fn pem(label: &str, bytes: &[u8]) -> String {
    let body = STANDARD.encode(bytes);
    format!("-----BEGIN {label}-----\n{body}\n-----END {label}-----\n")
}

#[cfg(test)]
mod tests;
