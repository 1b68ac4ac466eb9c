//! Names of cloud providers.

use api::source::OCIProvider;

/// A provider, as in the spec.
pub(crate) fn provider_name(provider: OCIProvider) -> &'static str {
    match provider {
        OCIProvider::Generic => "generic",
        OCIProvider::Aws => "aws",
        OCIProvider::Azure => "azure",
        OCIProvider::Gcp => "gcp",
    }
}
