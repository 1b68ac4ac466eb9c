//! Decrypts files of SOPS, for `spec.decryption` of Flux's Kustomizations, and encrypts them for recipients of age.
//!
//! In: the bytes of an encrypted file and its [`Format`]. Out: the bytes that `sops decrypt` gives. The way between:
//! a store of the format makes a tree of the text and takes the [`Metadata`] out of it; [`data_key`] asks the
//! [`KeyService`] for the data key, group by group; the tree is decrypted value by value, each bound to its path, and
//! hashed in the order of the document; a store writes what is left.
//!
//! [`flux`] has Flux's rules about what is decrypted and with which keys; [`kms`] are the key services that are asked
//! over HTTP; [`rules`] are those of `.sops.yaml`. [`encrypt`] and [`Decryptor::rotate`] go the other way. Nothing here knows a cluster or an HTTP client. No error, and no `Debug`
//! output, holds plaintext or keys.
//!
//! ```no_run
//! # async fn example(keys: sops::Keys, encrypted: &[u8]) -> Result<(), sops::Error> {
//! use sops::{Decryptor, Format, Integrity};
//!
//! let decryptor = Decryptor::new(keys, Integrity::Checked);
//! let plain = decryptor.decrypt(encrypted, Format::Yaml).await?;
//! # Ok(()) }
//! ```

pub mod age;
mod cipher;
pub mod data_key;
mod decryptor;
mod encryptor;
mod error;
pub mod flux;
mod format;
pub mod key;
pub mod kms;
mod limits;
mod metadata;
mod number;
pub mod openpgp;
pub mod rules;
mod shamir;
mod store;
mod time;
mod tree;
mod walk;

pub use crate::limits::MAX_NESTING;
pub use decryptor::{Decryptor, Integrity, MAX_FILE_BYTES};
pub use encryptor::{Rotated, encrypt};
pub use error::Error;
pub use format::Format;
pub use key::{EncryptedKey, KeyError, KeyService, Keys, MasterKey};
pub use metadata::Metadata;
