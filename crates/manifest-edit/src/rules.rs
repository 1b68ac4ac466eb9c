//! Which files and manifests people may change.
//!
//! A branch of the repository is more than manifests: a file in `.github/workflows` is a program that runs with the secrets of the Git
//! service's CI. So no file is written that is hidden, or whose content is anything but manifests.

use serde_json::Value;

use crate::document::text;

/// Returns whether a path may be written, as it stands: relative, without steps up, without hidden folders or files.
pub(crate) fn is_open(path: &str) -> bool {
    let is_plain = |part: &str| !part.is_empty() && !part.starts_with('.');
    path.split('/').all(is_plain) && !path.contains(['\\', '\0']) && !path.chars().any(char::is_control)
}

/// Returns whether a path is within a folder, which is empty for the whole repository.
pub(crate) fn is_within(path: &str, folder: &str) -> bool {
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
    let is_secret = text(document, "/kind") == "Secret" && text(document, "/apiVersion") == "v1";
    if is_secret && !is_encrypted(document) {
        return Some(
            "a Secret must be encrypted with SOPS before it goes into Git, or be made by a Secret operator",
        );
    }
    None
}

/// Returns whether a document is encrypted with SOPS: a change of its text would break its seal.
#[must_use]
pub fn is_encrypted(document: &Value) -> bool {
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
        let other = json!({"apiVersion": "external-secrets.io/v1", "kind": "Secret", "metadata": named});
        assert_eq!(refusal(&other), None);
    }
}
