//! Why a file is not decrypted or encrypted. Holds no plaintext and no keys.

use crate::age::SealError;
use crate::data_key::DataKeyError;
use crate::format::Format;

/// Why a file is not decrypted or encrypted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// It is no file of this format, or its metadata are not those of SOPS.
    #[error("failed to load encrypted {format} data: {problem}")]
    Load {
        /// The format that it should have.
        format: Format,
        /// The problem.
        problem: String,
    },
    /// No key opens it.
    #[error("cannot get sops data key: {0}")]
    DataKey(#[from] DataKeyError),
    /// A value is not what was encrypted at this place with this key.
    #[error("error decrypting sops tree: Error walking tree: {0}")]
    Decrypt(String),
    /// The message authentication code cannot be read.
    #[error("failed to verify sops data integrity: {0}")]
    Mac(String),
    /// The file was changed after it was encrypted.
    #[error(
        "failed to verify sops data integrity: the file was changed after it was encrypted (its mac does not match)"
    )]
    Integrity,
    /// The decrypted value has no form in the requested format.
    #[error("failed to emit encrypted {input} file as decrypted {output}: {problem}")]
    Emit {
        /// The format of the encrypted file.
        input: Format,
        /// The format that is wanted.
        output: Format,
        /// The problem.
        problem: String,
    },
    /// A plain file is none of this format.
    #[error("failed to load {format} data: {problem}")]
    LoadPlain {
        /// The format that it should have.
        format: Format,
        /// The problem.
        problem: String,
    },
    /// It is encrypted already.
    #[error("it is encrypted already: it has the key `sops`")]
    Encrypted,
    /// No recipient is given, so the result could never be decrypted.
    #[error("there is no recipient")]
    NoRecipient,
    /// It is for groups of keys of which several are needed.
    #[error(
        "its data key is divided among groups of keys (key_groups); use `sops updatekeys` and `sops rotate` for it"
    )]
    KeyGroups,
    /// A data key cannot be encrypted for a key of another kind.
    #[error(
        "its data key must be encrypted for {0}, which is no key of age; use `sops updatekeys` and `sops rotate` for it"
    )]
    ForeignKey(String),
    /// The data key cannot be encrypted.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// A value cannot be encrypted.
    #[error("failed to encrypt: {0}")]
    Encrypt(String),
    /// The encrypted values have no form in this format.
    #[error("failed to write encrypted {format} data: {problem}")]
    Write {
        /// The format.
        format: Format,
        /// The problem.
        problem: String,
    },
    /// It is larger than Flux takes.
    #[error("cannot decrypt file with size ({size} bytes) exceeding limit ({limit})")]
    TooLarge {
        /// Its size.
        size: usize,
        /// The limit.
        limit: usize,
    },
}
