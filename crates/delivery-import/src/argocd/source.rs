//! Where an Application comes from.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::Notes;
use crate::{named, object, set, text, without_credentials};

const VERSION: &str = "source.toolkit.fluxcd.io/v1";

/// Sources by what they are, so that applications share them.
#[derive(Default)]
pub(crate) struct Sources {
    /// By kind, address and reference.
    known: BTreeMap<(String, String, String), String>,
    objects: BTreeMap<String, Value>,
}

/// A source, as its users refer to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    pub(crate) kind: &'static str,
    pub(crate) name: String,
}

impl Source {
    pub(crate) fn reference(&self) -> Value {
        json!({"kind": self.kind, "name": self.name})
    }
}

impl Sources {
    pub(crate) fn objects(self) -> BTreeMap<String, Value> {
        self.objects
    }

    /// Finds or makes the source of an Application.
    pub(crate) fn add(&mut self, source: &Value, namespace: &str, notes: &mut Notes<'_>) -> Source {
        let (address, has_credentials) = without_credentials(text(source, "/repoURL"));
        let address = address.as_str();
        if has_credentials {
            notes.add(
                "source.repoURL",
                "its credentials are left out: put them into a Secret, and name it in spec.secretRef of the source",
            );
        }
        let revision = text(source, "/targetRevision");
        if !text(source, "/chart").is_empty() {
            // A registry is written without a scheme.
            let (address, kind) = match address.contains("://") {
                true if address.starts_with("oci://") => (address.to_owned(), "oci"),
                true => (address.to_owned(), ""),
                false => (format!("oci://{address}"), "oci"),
            };
            let mut spec = json!({"url": address, "interval": "1h"});
            set(&mut spec, "type", kind.into());
            set(
                &mut spec,
                "passCredentials",
                source["helm"]["passCredentials"].clone(),
            );
            return self.named("HelmRepository", &address, "", namespace, spec);
        }
        if address.starts_with("oci://") {
            let reference = match revision {
                "" => json!({"tag": "latest"}),
                digest if digest.starts_with("sha256:") => json!({"digest": digest}),
                range if is_range(range) => json!({"semver": range}),
                tag => json!({"tag": tag}),
            };
            let spec = json!({"url": address, "interval": "5m", "ref": reference});
            return self.named("OCIRepository", address, revision, namespace, spec);
        }
        let reference = match revision {
            "" | "HEAD" => {
                notes.add(
                    "source.targetRevision",
                    "it follows the default branch of the repository, which a GitRepository does not know: branch main is written",
                );
                json!({"branch": "main"})
            }
            commit if commit.len() == 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
                json!({"commit": commit})
            }
            name if name.starts_with("refs/") => json!({"name": name}),
            range if is_range(range) => json!({"semver": range}),
            tag if is_version(tag) => {
                notes.add("source.targetRevision", format!("{tag} is taken for a tag"));
                json!({"tag": tag})
            }
            branch => json!({"branch": branch}),
        };
        let spec = json!({"url": address, "interval": "1m", "ref": reference});
        self.named("GitRepository", address, revision, namespace, spec)
    }

    fn named(
        &mut self,
        kind: &'static str,
        address: &str,
        revision: &str,
        namespace: &str,
        spec: Value,
    ) -> Source {
        let key = (
            kind.to_owned(),
            address.trim_end_matches(".git").to_owned(),
            revision.to_owned(),
        );
        if let Some(name) = self.known.get(&key) {
            return Source {
                kind,
                name: name.clone(),
            };
        }
        let last = key
            .1
            .trim_end_matches('/')
            .rsplit(['/', ':'])
            .next()
            .unwrap_or_default();
        let plain = named(last);
        let with_revision = named(&format!("{last}-{revision}"));
        let numbered = (2..).map(|number| format!("{plain}-{number}"));
        let mut names = [plain.clone(), with_revision].into_iter().chain(numbered);
        let is_free = |name: &String| {
            !self
                .known
                .iter()
                .any(|(known, taken)| known.0 == kind && taken == name)
        };
        let name = names.find(is_free).unwrap_or(plain);
        let mut made = object(VERSION, kind, spec);
        made["metadata"]["name"] = name.clone().into();
        made["metadata"]["namespace"] = namespace.into();
        self.objects
            .insert(format!("{}-{name}", kind.to_lowercase()), made);
        self.known.insert(key, name.clone());
        Source { kind, name }
    }
}

/// Versions with a `*`, or with an operator, are ranges.
pub(crate) fn is_range(text: &str) -> bool {
    let is_wild = text.split('.').any(|part| matches!(part, "*" | "x" | "X"));
    is_wild || text.starts_with(['>', '<', '=', '^', '~']) || text.contains(" - ") || text.contains("||")
}

fn is_version(text: &str) -> bool {
    let numbers = text.strip_prefix('v').unwrap_or(text);
    numbers.starts_with(|letter: char| letter.is_ascii_digit()) && numbers.contains('.')
}
