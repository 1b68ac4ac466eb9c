//! Errors of reading a private key.

/// A key that cannot be used.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParseError {
    /// There is no private key in the text.
    #[error("ssh: no key found: 'identity' holds no private key in PEM")]
    NoKey,
    /// It is longer than any key.
    #[error("'identity' is larger than {MAX_TEXT} bytes")]
    TooLarge,
    /// The passphrase is not given.
    #[error("ssh: this private key is passphrase protected")]
    NeedsPassphrase,
    /// The passphrase is another one.
    #[error("x509: decryption password incorrect: 'password' is not the passphrase of 'identity'")]
    WrongPassphrase,
    /// The key is of a form or type that is not supported.
    #[error("ssh: unsupported key: {0}")]
    Unsupported(&'static str),
    /// To undo the passphrase would take too long.
    #[error(
        "ssh: unsupported key: its passphrase takes too much computing to undo; protect it with fewer rounds"
    )]
    TooExpensive,
    /// It is cut, or not what it says it is.
    #[error("ssh: the private key in 'identity' cannot be read")]
    Broken,
}

/// An RSA key of 16,384 bits, the largest that OpenSSH makes, fits.
pub(super) const MAX_TEXT: usize = 16 * 1024;
