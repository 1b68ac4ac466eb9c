//! The flags of programs that verify keyless signatures.

use std::path::PathBuf;

use url::Url;

use crate::SigstoreRoot;

/// Origin of the Sigstore trusted root.
#[derive(Debug, Clone, clap::Args)]
pub struct SigstoreFlags {
    /// File with the Sigstore trusted root (trusted_root.json) for keyless signatures, unless the object names another
    /// one; read at each verification. Default: the root of the public Sigstore instance
    #[arg(long, value_name = "PATH")]
    pub sigstore_trusted_root: Option<PathBuf>,
    /// TUF repository from which the public Sigstore trusted root is refreshed, at most once a day, when a keyless
    /// signature is verified. If it is unreachable, the last known or built-in root is used. Empty: built-in only
    #[arg(long, default_value = "https://tuf-repo-cdn.sigstore.dev", value_name = "URL")]
    pub sigstore_tuf_mirror: String,
}

/// The value of `--sigstore-tuf-mirror` is not the address of a repository.
#[derive(Debug, thiserror::Error)]
#[error("--sigstore-tuf-mirror must be an http or https URL, not {0:?}")]
pub struct InvalidMirror(String);

impl SigstoreFlags {
    /// Creates the trusted root that the flags describe.
    ///
    /// # Errors
    /// When the mirror is not an http or https URL.
    pub fn root(&self) -> Result<SigstoreRoot, InvalidMirror> {
        let mirror = match &*self.sigstore_tuf_mirror {
            "" => None,
            url => Some(mirror(url).ok_or_else(|| InvalidMirror(url.to_owned()))?),
        };
        Ok(SigstoreRoot::new(self.sigstore_trusted_root.clone(), mirror))
    }
}

fn mirror(url: &str) -> Option<Url> {
    let url = Url::parse(url).ok()?;
    (matches!(url.scheme(), "http" | "https") && url.has_host()).then_some(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mirror_has_an_address() {
        let root = |url: &str| {
            let flags = SigstoreFlags {
                sigstore_trusted_root: None,
                sigstore_tuf_mirror: url.to_owned(),
            };
            flags.root().map(|_| ()).map_err(|error| error.to_string())
        };
        assert_eq!(root(""), Ok(()));
        assert_eq!(root("https://tuf.example.com/x"), Ok(()));
        for wrong in ["tuf.example.com", "file:///tuf", "https://"] {
            let error = root(wrong).unwrap_err();
            assert!(error.starts_with("--sigstore-tuf-mirror must be"), "{error}");
        }
    }
}
