//! The certificate that is shown at the next handshake.

use std::{
    io,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError, RwLock},
    time::SystemTime,
};

use rustls::{
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read.
    #[error("failed to read {}", path.display())]
    Read {
        /// Which one.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A file is no PEM, or of something else.
    #[error("failed to parse {}", path.display())]
    Parse {
        /// Which one.
        path: PathBuf,
        /// The error.
        source: rustls::pki_types::pem::Error,
    },
    /// Certificate and key do not belong together, or cannot be used.
    #[error("failed to use the certificate with its key")]
    Use(#[source] rustls::Error),
}

/// Holds the newest certificate. Until there is one, handshakes fail.
#[derive(Debug, Default)]
pub struct Certificate {
    current: RwLock<Option<Arc<CertifiedKey>>>,
    files: Option<Files>,
}

#[derive(Debug)]
struct Files {
    certificate: PathBuf,
    key: PathBuf,
    /// Versions that were read last.
    seen: Mutex<Option<Versions>>,
}

type Versions = [Option<SystemTime>; 2];

impl Certificate {
    /// A certificate (chain) and its key from PEM files, which are read again when they have changed.
    ///
    /// # Errors
    /// When they cannot be used now.
    pub fn from_files(certificate: PathBuf, key: PathBuf) -> Result<Self, Error> {
        let files = Files {
            certificate,
            key,
            seen: Mutex::default(),
        };
        let seen = files.versions();
        let current = files.read()?;
        files.remember(seen);
        Ok(Self {
            current: RwLock::new(Some(Arc::new(current))),
            files: Some(files),
        })
    }

    /// Shows this one from now on.
    pub fn set(&self, certificate: CertifiedKey) {
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(certificate));
    }

    /// Looks whether the files have changed. Those that cannot be used leave the certificate as it is.
    pub async fn refresh(self: &Arc<Self>) {
        if self.files.is_some() {
            let this = self.clone();
            // A panic in there would have been logged; the certificate is as it was.
            tokio::task::spawn_blocking(move || this.read_changed_files())
                .await
                .ok();
        }
    }

    fn read_changed_files(&self) {
        let Some(files) = &self.files else { return };
        let versions = files.versions();
        if files.has_seen(versions) {
            return;
        }
        match files.read() {
            Ok(certificate) => {
                self.set(certificate);
                tracing::info!(logger = "artifact-service", "read the changed certificate");
            }
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::error!(
                    logger = "artifact-service",
                    error,
                    "failed to read the changed certificate"
                );
            }
        }
        // A half-written pair is read again when its second file changes.
        files.remember(versions);
    }
}

impl Files {
    fn versions(&self) -> Versions {
        [&self.certificate, &self.key]
            .map(|path| std::fs::metadata(path).and_then(|file| file.modified()).ok())
    }

    fn has_seen(&self, versions: Versions) -> bool {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) == Some(versions)
    }

    fn remember(&self, versions: Versions) {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(versions);
    }

    fn read(&self) -> Result<CertifiedKey, Error> {
        let chain = std::fs::read(&self.certificate).map_err(|source| Error::Read {
            path: self.certificate.clone(),
            source,
        })?;
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&chain).collect();
        let chain = chain.map_err(|source| Error::Parse {
            path: self.certificate.clone(),
            source,
        })?;
        let key = std::fs::read(&self.key).map_err(|source| Error::Read {
            path: self.key.clone(),
            source,
        })?;
        let key = PrivateKeyDer::from_pem_slice(&key).map_err(|source| Error::Parse {
            path: self.key.clone(),
            source,
        })?;
        certified(chain, key)
    }
}

/// A chain with its key, checked to belong together.
pub(super) fn certified(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<CertifiedKey, Error> {
    CertifiedKey::from_der(chain, key, &aws_lc_rs::default_provider()).map_err(Error::Use)
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.current
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}
