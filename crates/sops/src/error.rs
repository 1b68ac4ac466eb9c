//! Why a file is not decrypted. Holds no plaintext and no keys.

use crate::data_key::DataKeyError;
use crate::format::Format;

/// Why a file is not decrypted.
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
    /// It is larger than Flux takes.
    #[error("cannot decrypt file with size ({size} bytes) exceeding limit ({limit})")]
    TooLarge {
        /// Its size.
        size: usize,
        /// The limit.
        limit: usize,
    },
}
