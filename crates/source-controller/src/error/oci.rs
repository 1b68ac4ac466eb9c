//! Errors of an OCIRepository.

use api::meta::condition_types::{FETCH_FAILED, SOURCE_VERIFIED};
use api::meta::reasons;

use super::disposition::Disposition;
use super::layer::LayerError;

/// Error of an OCIRepository.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OciError {
    /// `spec.url` of an OCIRepository.
    #[error("URL validation failed for '{url}'")]
    ValidateUrl {
        /// As in the spec.
        url: String,
        /// The error.
        #[source]
        source: oci_client::name::Error,
    },
    /// The artifact could not be pulled.
    #[error(transparent)]
    Pull(#[from] oci_client::Error),
    /// The artifact has not the signature that `spec.verify` demands.
    #[error("failed to verify the signature using provider '{provider}'")]
    Verify {
        /// "cosign", "cosign keyless" or "notation".
        provider: &'static str,
        /// The error.
        #[source]
        source: Box<oci_verify::Error>,
    },
    /// The layer is no archive, or a hostile one, or not the promised one.
    #[error("failed to extract layer contents from artifact")]
    ExtractLayer(#[source] LayerError),
    /// The layer could not be taken as it is.
    #[error("failed to copy layer from artifact")]
    CopyLayer(#[source] LayerError),
}

impl OciError {
    /// The condition that reports it besides Ready, and the reason of both.
    pub(super) fn condition(&self) -> (&'static str, &'static str) {
        let reason = match self {
            Self::ValidateUrl { .. } => reasons::URL_INVALID,
            Self::Pull(oci_client::Error::DetermineTag { .. }) => reasons::READ_OPERATION_FAILED,
            Self::Pull(oci_client::Error::DetermineDigest(_) | oci_client::Error::Pull { .. }) => {
                reasons::OCI_PULL_FAILED
            }
            Self::Pull(_) | Self::ExtractLayer(_) | Self::CopyLayer(_) => reasons::OCI_LAYER_OPERATION_FAILED,
            Self::Verify { .. } => return (SOURCE_VERIFIED, reasons::VERIFICATION_ERROR),
        };
        (FETCH_FAILED, reason)
    }

    /// When to try again; None as for any other error.
    pub(super) fn disposition(&self) -> Option<Disposition> {
        match self {
            Self::ValidateUrl { .. } => Some(Disposition::Stalled),
            Self::Verify { source, .. } if source.is_about_the_spec() => Some(Disposition::Stalled),
            _ => None,
        }
    }
}
