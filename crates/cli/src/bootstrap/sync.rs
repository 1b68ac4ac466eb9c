//! sync.yaml: the GitRepository and the Kustomization that deliver the folder of the cluster. What people have added to them, or to the
//! file, stays.

use std::time::Duration;

use api::kustomize::ROLLBACK_ANNOTATION;
use manifest_edit::Documents;
use serde_json::{Value, json};

use crate::cluster::Failure;
use crate::platform::objects;

/// How often a new bootstrap looks for commits, as in Flux.
const INTERVAL: Duration = Duration::from_secs(60);
/// How long new controllers may take to become healthy, unless the file says so.
const HEALTHY_WITHIN: &str = "5m0s";
/// Value of the annotation of a Kustomization that returns to what was healthy.
const LAST_KNOWN_GOOD: &str = "last-known-good";
const HEAD: &str = "# Delivers this folder to the cluster; written by `windlass bootstrap`.\n---\n";

/// What the two objects must say.
pub(super) struct Sync<'a> {
    /// Their namespace and name.
    pub(super) name: &'a str,
    /// The address that the cluster fetches from.
    pub(super) url: &'a str,
    /// The Secret that it fetches with; None without credentials.
    pub(super) secret: Option<&'a str>,
    /// The account that the Kustomization acts as, unless it names one; None for the controller's own rights.
    pub(super) account: Option<&'a str>,
    /// The folder of the cluster, without slashes around it.
    pub(super) path: &'a str,
    pub(super) branch: &'a str,
    /// How often to look for commits; None for what the file says.
    pub(super) interval: Option<Duration>,
    pub(super) submodules: bool,
    /// Whether the cluster returns to the revision before when the controllers of a new one do not become healthy; None for what the file
    /// says.
    pub(super) rollback: Option<bool>,
    /// Names of the Deployments.
    pub(super) controllers: &'a [&'a str],
}

impl Sync<'_> {
    /// The text of the file over the one that is there.
    pub(super) fn over(&self, path: &str, before: Option<&str>) -> Result<String, Failure> {
        let before = before.unwrap_or_default();
        let documents = Documents::read(path, before);
        let documents = documents.map_err(|error| Failure::Usage(format!("of the repository: {error}")))?;
        let (mut text, mut end) = (String::new(), 0);
        let (mut has_source, mut has_kustomization) = (false, false);
        for (place, value) in &documents.all {
            text.push_str(&before[end..place.start]);
            end = place.end;
            let mut changed = value.clone();
            if self.is(value, "GitRepository") {
                has_source = true;
                self.set_source(spec_of(&mut changed));
            } else if self.is(value, "Kustomization") {
                has_kustomization = true;
                self.set_kustomization(&mut changed);
            }
            match changed == *value {
                true => text.push_str(&before[place.clone()]),
                false => text.push_str(&written(&changed)),
            }
        }
        text.push_str(&before[end..]);
        let missing = [
            (!has_source).then(|| self.source()),
            (!has_kustomization).then(|| self.kustomization()),
        ];
        for object in missing.into_iter().flatten() {
            match text.trim().is_empty() {
                true => HEAD.clone_into(&mut text),
                false if !text.ends_with("\n---\n") => text = format!("{}\n---\n", text.trim_end()),
                false => {}
            }
            text.push_str(&written(&object));
        }
        Ok(text)
    }

    fn is(&self, value: &Value, kind: &str) -> bool {
        value["kind"] == kind && value["metadata"]["name"] == self.name
    }

    fn source(&self) -> Value {
        let mut spec = json!({"interval": api::meta::Duration::from(INTERVAL)});
        self.set_source(&mut spec);
        json!({"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
            "metadata": {"name": self.name, "namespace": self.name}, "spec": spec})
    }

    fn kustomization(&self) -> Value {
        let mut object = json!({"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
            "metadata": {"name": self.name, "namespace": self.name},
            "spec": {"interval": "10m0s", "prune": true, "sourceRef": {"kind": "GitRepository", "name": self.name}}});
        self.set_kustomization(&mut object);
        object
    }

    fn set_source(&self, spec: &mut Value) {
        let bare = |url: &str| url.trim_end_matches(".git").to_owned();
        if bare(spec["url"].as_str().unwrap_or_default()) != bare(self.url) {
            spec["url"] = self.url.into();
            // Credentials of another repository would not be let in.
            spec["secretRef"].take();
        }
        if spec["ref"]["branch"] != self.branch {
            spec["ref"] = json!({"branch": self.branch});
        }
        if let Some(secret) = self.secret {
            spec["secretRef"] = json!({"name": secret});
        }
        if let Some(spec) = spec.as_object_mut() {
            spec.retain(|_, value| !value.is_null());
        }
        if let Some(interval) = self.interval {
            spec["interval"] = json!(api::meta::Duration::from(interval));
        }
        if self.submodules {
            spec["recurseSubmodules"] = true.into();
        }
    }

    fn set_kustomization(&self, object: &mut Value) {
        self.set_rollback(object);
        let spec = spec_of(object);
        if spec["path"].as_str().map(folder) != Some(self.path) {
            spec["path"] = format!("./{}", self.path).into();
        }
        if let (Some(account), true) = (self.account, spec["serviceAccountName"].is_null()) {
            spec["serviceAccountName"] = account.into();
        }
    }

    /// The controllers are what is checked: a revision is healthy when they are.
    fn set_rollback(&self, object: &mut Value) {
        let said = object.pointer("/metadata/annotations").and_then(Value::as_object);
        let mut annotations = said.cloned().unwrap_or_default();
        let is_asked = annotations.get(ROLLBACK_ANNOTATION) == Some(&json!(LAST_KNOWN_GOOD));
        let is_wanted = self.rollback.unwrap_or(is_asked);
        if is_wanted != is_asked {
            match is_wanted {
                true => annotations.insert(ROLLBACK_ANNOTATION.to_owned(), LAST_KNOWN_GOOD.into()),
                false => annotations.remove(ROLLBACK_ANNOTATION),
            };
            if let Some(metadata) = object["metadata"].as_object_mut() {
                metadata.remove("annotations");
                if !annotations.is_empty() {
                    metadata.insert("annotations".to_owned(), annotations.into());
                }
            }
        }
        if !is_wanted {
            return;
        }
        let spec = spec_of(object);
        let is_ours = |check: &Value| check["kind"] == "Deployment" && check["namespace"] == self.name;
        let mut checks = spec["healthChecks"].as_array().cloned().unwrap_or_default();
        checks.retain(|check| !is_ours(check));
        checks.extend(self.controllers.iter().map(|name| {
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": name, "namespace": self.name})
        }));
        spec["healthChecks"] = checks.into();
        if spec["timeout"].is_null() {
            spec["timeout"] = HEALTHY_WITHIN.into();
        }
    }
}

/// The folder that `spec.path` names, without what stands around it.
pub(super) fn folder(path: &str) -> &str {
    path.trim_start_matches("./").trim_matches('/')
}

fn spec_of(object: &mut Value) -> &mut Value {
    let spec = &mut object["spec"];
    if !spec.is_object() {
        *spec = json!({});
    }
    spec
}

fn written(value: &Value) -> String {
    flux_spec::build::to_yaml(&[objects::of_value(value)])
}

#[cfg(test)]
mod tests {
    use super::*;

    const OF_PEOPLE: &str = "# ours
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: flux-system, namespace: flux-system}
spec: {interval: 1m, url: https://git.example.com/fleet, ref: {branch: main}}
---
# decrypts
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: flux-system, namespace: flux-system}
spec:
  interval: 10m
  path: clusters/a/
  decryption: {provider: sops}
---
apiVersion: v1
kind: ConfigMap # theirs
metadata: {name: more}
";

    fn over(before: Option<&str>, path: &str, account: Option<&str>) -> String {
        rolling_back(before, path, account, None)
    }

    fn rolling_back(
        before: Option<&str>,
        path: &str,
        account: Option<&str>,
        rollback: Option<bool>,
    ) -> String {
        let sync = Sync {
            name: "flux-system",
            url: "https://git.example.com/fleet.git",
            secret: None,
            account,
            path,
            branch: "main",
            interval: None,
            submodules: false,
            rollback,
            controllers: &["source-controller", "kustomize-controller"],
        };
        sync.over("sync.yaml", before).unwrap()
    }

    #[test]
    fn what_says_the_same_stays_as_it_is() {
        assert_eq!(over(Some(OF_PEOPLE), "clusters/a", None), OF_PEOPLE);
        let new = over(None, "clusters/a", None);
        assert!(
            new.starts_with(HEAD) && new.contains("path: ./clusters/a\n"),
            "{new}"
        );
        assert_eq!(over(Some(&new), "clusters/a", None), new);
    }

    #[test]
    fn another_path_and_account_keep_what_people_added() {
        let text = over(Some(OF_PEOPLE), "clusters/b", Some("kustomize-controller"));
        for part in [
            "# ours\n---\n",
            "spec: {interval: 1m, url: https://git.example.com/fleet, ref: {branch: main}}\n---\n",
            "decryption:\n    provider: sops\n",
            "path: ./clusters/b\n",
            "serviceAccountName: kustomize-controller\n---\n",
            "kind: ConfigMap # theirs\n",
        ] {
            assert!(text.contains(part), "{part:?}\n{text}");
        }
        let again = over(Some(&text), "clusters/b", Some("other"));
        assert_eq!(again, text, "an account that is named stays");
    }

    #[test]
    fn credentials_stay_with_their_repository() {
        let with = |url: &str| {
            let url = format!("url: {url}, secretRef: {{name: theirs}}");
            let before = OF_PEOPLE.replace("url: https://git.example.com/fleet", &url);
            over(Some(&before), "clusters/a", None)
        };
        assert!(with("https://git.example.com/fleet").contains("secretRef: {name: theirs}"));
        assert!(!with("https://git.example.com/other").contains("secretRef"));
    }

    #[test]
    fn a_rollback_checks_the_controllers_and_whatever_people_check() {
        let theirs = "{kind: Deployment, name: ingress, namespace: ingress}, {kind: Deployment, name: old, namespace: flux-system}";
        let before = OF_PEOPLE.replace(
            "path: clusters/a/",
            &format!("path: clusters/a/\n  healthChecks: [{theirs}]"),
        );
        let text = rolling_back(Some(&before), "clusters/a", None, Some(true));
        for part in [
            "annotations:\n    windlass.dev/rollback: last-known-good\n",
            "name: ingress\n",
            "name: source-controller\n",
            "name: kustomize-controller\n",
            "timeout: 5m0s\n",
        ] {
            assert!(text.contains(part), "{part:?}\n{text}");
        }
        assert!(!text.contains("name: old\n"), "{text}");
        assert_eq!(
            over(Some(&text), "clusters/a", None),
            text,
            "it stays until it is taken back"
        );
        let broken = OF_PEOPLE.replace(
            "metadata: {name: flux-system, namespace: flux-system}\nspec:\n",
            "metadata: {name: flux-system, namespace: flux-system, annotations: [x]}\nspec:\n",
        );
        assert!(broken.contains("[x]"));
        let mended = rolling_back(Some(&broken), "clusters/a", None, Some(true));
        assert!(
            mended.contains("windlass.dev/rollback") && !mended.contains("- x"),
            "{mended}"
        );
        let without = rolling_back(Some(&text), "clusters/a", None, Some(false));
        assert!(
            !without.contains("annotations") && without.contains("name: source-controller\n"),
            "{without}"
        );
    }

    #[test]
    fn an_object_that_is_missing_is_added() {
        let (source, _) = OF_PEOPLE.split_once("---\n# decrypts").unwrap();
        let text = over(Some(source), "", None);
        assert!(text.starts_with(source), "{text}");
        assert!(
            text.ends_with("  sourceRef:\n    kind: GitRepository\n    name: flux-system\n"),
            "{text}"
        );
        assert!(
            text.contains("\n---\napiVersion: kustomize.toolkit.fluxcd.io/v1\n"),
            "{text}"
        );
    }
}
