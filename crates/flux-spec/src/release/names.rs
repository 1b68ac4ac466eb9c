//! Names of a release, and the namespaces of its objects and of its records.

use api::helm::HelmRelease;
use kube::ResourceExt as _;
use sha2::{Digest as _, Sha256};

/// Longest name of a release that Helm takes.
const MAX_NAME: usize = 53;
/// Digits of the checksum that end a shortened name.
const CHECKSUM_DIGITS: usize = 12;

/// The name of the release, shortened to what Helm takes.
pub fn release_name(object: &HelmRelease) -> String {
    shortened(&full_release_name(object))
}

/// The name of the release as the spec has it, of any length.
pub fn full_release_name(object: &HelmRelease) -> String {
    if let Some(name) = &object.spec.release_name {
        return name.clone();
    }
    let name = object.name_any();
    match &object.spec.target_namespace {
        Some(target) => format!("{target}-{name}"),
        None => name,
    }
}

/// Where the objects of the release are.
pub fn release_namespace(object: &HelmRelease) -> String {
    own_unless(object, object.spec.target_namespace.as_ref())
}

/// Where Helm's records are.
pub fn storage_namespace(object: &HelmRelease) -> String {
    own_unless(object, object.spec.storage_namespace.as_ref())
}

fn own_unless(object: &HelmRelease, namespace: Option<&String>) -> String {
    namespace
        .cloned()
        .or_else(|| object.namespace())
        .unwrap_or_default()
}

/// A name that is too long ends with digits of its checksum instead, as in Flux.
fn shortened(name: &str) -> String {
    if name.len() <= MAX_NAME {
        return name.to_owned();
    }
    let checksum = hex::encode(Sha256::digest(name));
    let kept = name.floor_char_boundary(MAX_NAME - CHECKSUM_DIGITS - 1);
    format!("{}-{}", &name[..kept], &checksum[..CHECKSUM_DIGITS])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_made_as_flux_makes_them() {
        let mut release: HelmRelease = serde_json::from_value(serde_json::json!({
            "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
            "metadata": {"name": "web", "namespace": "apps"}, "spec": {"interval": "1m"},
        }))
        .unwrap();
        assert_eq!(release_name(&release), "web");
        assert_eq!(release_namespace(&release), "apps");
        release.spec.target_namespace = Some("prod".to_owned());
        assert_eq!(release_name(&release), "prod-web");
        assert_eq!(release_namespace(&release), "prod");
        assert_eq!(storage_namespace(&release), "apps");
        release.spec.storage_namespace = Some("records".to_owned());
        assert_eq!(storage_namespace(&release), "records");
        release.spec.release_name =
            Some("some-front-appended-namespace-release-with-a-longer-name-than-fits".to_owned());
        let name = release_name(&release);
        assert_eq!(name.len(), 53);
        assert!(
            name.starts_with("some-front-appended-namespace-release-wi-"),
            "{name}"
        );
    }
}
