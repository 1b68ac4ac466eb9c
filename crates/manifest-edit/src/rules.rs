//! Which files and manifests people may change.
//!
//! A branch of the repository is more than manifests: a file in `.github/workflows` is a program that runs with the secrets of the Git
//! service's CI. So no file is written that is hidden, or whose content is anything but manifests.

use serde_json::Value;

use crate::document::text;
use crate::resources::NAMES;

/// Files, without their ending, that CI services run although they are not hidden. Some pass over keys that they do not know, so
/// such a file can be a manifest, too.
const PROGRAMS: [&str; 10] = [
    "appveyor",
    "azure-pipelines",
    "bitbucket-pipelines",
    "buildspec",
    "circle",
    "cloudbuild",
    "codefresh",
    "jenkins-x",
    "shippable",
    "wercker",
];

/// Returns whether a path may be written, as it stands: relative, without steps up, without hidden folders or files, and no program of
/// a CI service.
#[must_use]
pub fn is_open(path: &str) -> bool {
    let is_plain = |part: &str| !part.is_empty() && !part.starts_with('.');
    let file = path.rsplit('/').next().unwrap_or_default().to_lowercase();
    let stem = file.rsplit_once('.').map_or(&*file, |(stem, _)| stem);
    path.split('/').all(is_plain)
        && !PROGRAMS.contains(&stem)
        && !path.contains(['\\', '\0'])
        && !path.chars().any(char::is_control)
}

/// Returns whether a file says what kustomize builds in its folder.
pub(crate) fn is_kustomization(path: &str) -> bool {
    NAMES.contains(&path.rsplit('/').next().unwrap_or_default())
}

/// Returns whether a path is within a folder, which is empty for the whole repository.
#[must_use]
pub fn is_within(path: &str, folder: &str) -> bool {
    folder.is_empty()
        || path
            .strip_prefix(folder)
            .is_some_and(|rest| rest.starts_with('/'))
}

/// Returns why a document is not accepted, if it is not.
pub(crate) fn refusal(document: &Value) -> Option<&'static str> {
    let has = |pointer| !text(document, pointer).is_empty();
    if !(has("/apiVersion") && has("/kind") && has("/metadata/name")) {
        return Some("each document must be a manifest with apiVersion, kind and metadata.name");
    }
    // Its items would not be checked.
    if text(document, "/kind").ends_with("List") && document.get("items").is_some() {
        return Some("a list is not accepted: write each of its items as a document of its own");
    }
    if text(document, "/apiVersion").starts_with("kustomize.config.k8s.io/") {
        return Some("a kustomization.yaml is not written: it says what is built, and what is pruned");
    }
    let is_secret = text(document, "/kind") == "Secret" && text(document, "/apiVersion") == "v1";
    if is_secret && !is_encrypted(document) {
        return Some(
            "a Secret must be encrypted with SOPS before it goes into Git, or be made by a Secret operator",
        );
    }
    None
}

/// Returns whether a document is encrypted with SOPS: a change of its text would break its seal.
pub(crate) fn is_encrypted(document: &Value) -> bool {
    document.pointer("/sops/mac").is_some()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn no_path_leads_out_or_is_hidden() {
        for path in [
            "../a.yaml",
            "a/../b.yaml",
            "/a.yaml",
            "a//b.yaml",
            "./a.yaml",
            ".github/workflows/ci.yaml",
            "a/.hidden/b.yaml",
            ".gitlab-ci.yml",
            "azure-pipelines.yml",
            "apps/AppVeyor.yaml",
            "a\\b.yaml",
            "a\nb.yaml",
            "",
        ] {
            assert!(!is_open(path), "{path:?}");
        }
        for path in ["a.yaml", "apps/web/release.yaml", "a b/c-d_e.yml"] {
            assert!(is_open(path), "{path:?}");
        }
        assert!(is_within("a/b.yaml", "a") && is_within("a.yaml", "") && !is_within("ab/c.yaml", "a"));
    }

    #[test]
    fn only_manifests_are_accepted_and_no_bare_secret() {
        let named = json!({"name": "a"});
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": named});
        assert!(refusal(&secret).is_some());
        let sealed = json!({"apiVersion": "v1", "kind": "Secret", "metadata": named, "sops": {"mac": "x"}});
        assert_eq!(refusal(&sealed), None);
        assert!(refusal(&json!({"on": "push", "jobs": {}})).is_some());
        assert!(
            refusal(&json!({"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"}))
                .is_some()
        );
        let list = json!({"apiVersion": "v1", "kind": "List", "metadata": named, "items": [secret]});
        assert!(refusal(&list).is_some_and(|text| text.contains("a list")));
        let build = json!({"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "metadata": named});
        assert!(refusal(&build).is_some_and(|text| text.contains("kustomization.yaml")));
        let other = json!({"apiVersion": "external-secrets.io/v1", "kind": "Secret", "metadata": named});
        assert_eq!(refusal(&other), None);
    }
}
