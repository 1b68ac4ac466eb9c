//! Context of a comparison: the cluster, the content, and the changes of it that are known so far.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use api::meta::ValuesKind;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use delivery_graph::kind::{self, Kind};
use delivery_graph::object::{self, list, text};
use kube::Client;
use kube::core::ApiResource;
use kube_apply::{Engine, Expected, Preview, Settings};
use manifest::ObjectId;
use serde_json::Value;

use crate::archive::Archives;
use crate::confidential::Confidential;
use crate::content::Content;
use crate::helpers::{Accounts, Fetcher};
use crate::reader::{Reader, refusal};
use crate::subject::Subject;

/// Context of a comparison.
pub struct World {
    pub(crate) reader: Reader,
    /// What is to be applied.
    pub(crate) content: Box<dyn Content>,
    /// True if variables without a value are errors.
    pub strict: bool,
    /// Where archives of sources are had from.
    pub archives: Archives,
    /// True if messages may name flags of the command.
    pub names_flags: bool,
    /// True if the authors of the content may not see all that the reader may: nothing is decrypted, templates look nothing up, and of
    /// objects that others made no fields are shown.
    pub is_for_strangers: bool,
    /// As whom is asked; as the reader without.
    pub accounts: Option<Box<dyn Accounts>>,
    /// Who fetches charts that the cluster does not have yet.
    pub fetcher: Option<Arc<dyn Fetcher>>,
    /// Charts of HelmReleases (namespace/name) that were given by hand.
    pub charts: BTreeMap<String, PathBuf>,
    kustomize: OnceLock<Engine>,
    helm: OnceLock<Engine>,
    /// ConfigMaps and Secrets as they would be; None for those that would go.
    planned: HashMap<ObjectId, Option<Value>>,
    /// Kinds (group, kind) that would be there, and are not.
    kinds: HashSet<(String, String)>,
    namespaces: HashSet<String>,
    /// Sources that would be others, as they would be.
    changed_sources: HashMap<ObjectId, Value>,
    /// Values that may come from Secrets.
    pub(crate) confidential: Confidential,
}

/// Who asks the API server, and how.
pub(crate) struct Actor {
    pub(crate) client: Client,
    pub(crate) engine: Engine,
}

/// So many objects are asked about at once: someone waits.
const AT_ONCE: usize = 16;

impl World {
    /// Of a cluster, and content for it.
    pub fn new(reader: Reader, content: Box<dyn Content>) -> Self {
        Self {
            reader,
            content,
            strict: false,
            archives: Archives::default(),
            names_flags: false,
            is_for_strangers: false,
            accounts: None,
            fetcher: None,
            charts: BTreeMap::new(),
            kustomize: OnceLock::new(),
            helm: OnceLock::new(),
            planned: HashMap::new(),
            kinds: HashSet::new(),
            namespaces: HashSet::new(),
            changed_sources: HashMap::new(),
            confidential: Confidential::default(),
        }
    }

    /// Who asks for what a Kustomization applies, as apply-controller writes.
    pub(crate) async fn kustomize(&self, subject: &Subject) -> Result<Actor, String> {
        let settings = || Settings {
            concurrency: AT_ONCE,
            ..Settings::default()
        };
        self.actor(subject, &self.kustomize, settings).await
    }

    /// Who asks for what a HelmRelease installs, as helm-controller writes.
    pub(crate) async fn helm(&self, subject: &Subject) -> Result<Actor, String> {
        let settings = || Settings {
            field_manager: "helm-controller".to_owned(),
            group: api::meta::HELM_GROUP.to_owned(),
            undoes_kubectl: false,
            concurrency: AT_ONCE,
            ..Settings::default()
        };
        self.actor(subject, &self.helm, settings).await
    }

    async fn actor(
        &self,
        subject: &Subject,
        own: &OnceLock<Engine>,
        settings: impl FnOnce() -> Settings,
    ) -> Result<Actor, String> {
        let Some(client) = self.account(subject).await? else {
            let client = self.reader.client();
            let engine = own.get_or_init(|| Engine::new(client.clone(), settings()));
            let engine = engine.clone();
            return Ok(Actor { client, engine });
        };
        let engine = Engine::new(client.clone(), settings());
        Ok(Actor { client, engine })
    }

    /// Who asks, other than the reader. The object is taken as it is in the cluster: who wrote the content does not say as whom is
    /// asked before others have agreed to it.
    async fn account(&self, subject: &Subject) -> Result<Option<Client>, String> {
        let cluster = subject.object.pointer("/spec/kubeConfig");
        let Some(accounts) = &self.accounts else {
            return match cluster {
                Some(_) => {
                    Err("its objects are in another cluster (spec.kubeConfig), which is not asked".to_owned())
                }
                None => Ok(None),
            };
        };
        let live = self.reader.get(&subject.id()).await?;
        let known = live.as_ref().and_then(|live| live.pointer("/spec/kubeConfig"));
        if cluster != known {
            return Err(
                "its objects would be in another cluster than now (spec.kubeConfig), which is not asked"
                    .to_owned(),
            );
        }
        match live {
            Some(live) => accounts.client(&live).await,
            None => Ok(None),
        }
    }

    /// Remembers what others need: it will be there before those run.
    pub fn plan(&mut self, preview: &Preview) {
        self.confidential.note(preview);
        let (
            Ok(
                Expected::Created(after)
                | Expected::Changed { after, .. }
                | Expected::Recreated { after, .. },
            ),
            id,
        ) = (&preview.expected, &preview.id)
        else {
            return;
        };
        match (id.group.as_str(), id.kind.as_str()) {
            ("", "ConfigMap" | "Secret") => _ = self.planned.insert(id.clone(), Some(after.clone())),
            ("", "Namespace") => _ = self.namespaces.insert(id.name.clone()),
            ("apiextensions.k8s.io", "CustomResourceDefinition") => {
                let (group, kind) = (text(after, "/spec/group"), text(after, "/spec/names/kind"));
                self.kinds.insert((group.to_owned(), kind.to_owned()));
            }
            _ if kind::kind_of(id).is_some_and(Kind::is_source) => {
                self.changed_sources.insert(id.clone(), after.clone());
            }
            _ => {}
        }
    }

    /// Returns whether the kind or the namespace of an object would come with the same change.
    pub fn brings_what_it_needs(&self, id: &ObjectId) -> bool {
        self.namespaces.contains(&id.namespace) || self.kinds.contains(&(id.group.clone(), id.kind.clone()))
    }

    /// Remembers that a namespace is made where it is not there. Tells whether that is so.
    pub async fn bring_namespace(&mut self, name: &str) -> Result<bool, String> {
        if self.namespaces.contains(name) {
            return Ok(false);
        }
        let id = namespace_id(name);
        let found = self.reader.get_any(&id, &core("Namespace", "namespaces")).await;
        if matches!(found, Ok(Some(_))) {
            return Ok(false);
        }
        self.namespaces.insert(name.to_owned());
        match found {
            Ok(_) => Ok(true),
            Err(error) => Err(refusal(&format!("read {id}"), &error)),
        }
    }

    /// A source as it would be, if that is another one.
    pub fn changed_source(&self, id: &ObjectId) -> Option<&Value> {
        self.changed_sources.get(id)
    }

    /// Returns whether values of a HelmRelease would be others.
    pub fn plans_values_of(&self, object: &Value) -> bool {
        self.plans(object, "/spec/valuesFrom")
    }

    /// Returns whether variables of a Kustomization would be others.
    pub fn plans_variables_of(&self, object: &Value) -> bool {
        self.plans(object, "/spec/postBuild/substituteFrom")
    }

    fn plans(&self, object: &Value, references: &str) -> bool {
        let namespace = object::namespace(object);
        list(object, references).iter().any(|reference| {
            self.planned.keys().any(|id| {
                id.namespace == namespace
                    && id.kind == text(reference, "/kind")
                    && id.name == text(reference, "/name")
            })
        })
    }

    /// Remembers that an object would go.
    pub fn plan_gone(&mut self, id: &ObjectId) {
        if matches!(id.kind.as_str(), "ConfigMap" | "Secret") && id.group.is_empty() {
            // What leaves one may be applied by another one.
            self.planned.entry(id.clone()).or_insert(None);
        }
    }

    /// Returns whether values are confidential: those of Secrets, and of ConfigMaps made from them.
    pub fn holds_secrets(&self, kind: ValuesKind, namespace: &str, name: &str) -> bool {
        kind == ValuesKind::Secret || self.confidential.contains(&values_id(kind, namespace, name))
    }

    /// The data of a ConfigMap or Secret as it would be; None if there is none. An error says why it cannot be known.
    pub async fn data(
        &self,
        kind: ValuesKind,
        namespace: &str,
        name: &str,
    ) -> Result<Option<BTreeMap<String, Vec<u8>>>, String> {
        let resource = match kind {
            ValuesKind::ConfigMap => core("ConfigMap", "configmaps"),
            ValuesKind::Secret => core("Secret", "secrets"),
        };
        let id = values_id(kind, namespace, name);
        if let Some(planned) = self.planned.get(&id) {
            return planned.as_ref().map(data_of).transpose();
        }
        if name.is_empty() || name.contains(['/', '%', '?', '#']) {
            return Err(format!("{id}: this is no name of an object"));
        }
        match self.reader.get_any(&id, &resource).await {
            Ok(found) => found.as_ref().map(data_of).transpose(),
            Err(error) => Err(refusal(&format!("read {id}"), &error)),
        }
    }
}

fn values_id(kind: ValuesKind, namespace: &str, name: &str) -> ObjectId {
    let kind = match kind {
        ValuesKind::ConfigMap => "ConfigMap",
        ValuesKind::Secret => "Secret",
    };
    ObjectId {
        group: String::new(),
        kind: kind.to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    }
}

pub fn namespace_id(name: &str) -> ObjectId {
    ObjectId {
        group: String::new(),
        kind: "Namespace".to_owned(),
        namespace: String::new(),
        name: name.to_owned(),
    }
}

fn core(kind: &str, plural: &str) -> ApiResource {
    ApiResource {
        group: String::new(),
        version: "v1".to_owned(),
        api_version: "v1".to_owned(),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
    }
}

/// Nothing of the content is quoted.
fn data_of(object: &Value) -> Result<BTreeMap<String, Vec<u8>>, String> {
    let is_secret = text(object, "/kind") == "Secret";
    let entries = object.pointer("/data").and_then(Value::as_object);
    let mut data = BTreeMap::new();
    for (key, value) in entries.into_iter().flatten() {
        let value = value.as_str().unwrap_or_default();
        let bytes = match is_secret {
            true => STANDARD
                .decode(value)
                .map_err(|_| format!("the value of {key:?} is no base64"))?,
            false => value.as_bytes().to_vec(),
        };
        data.insert(key.clone(), bytes);
    }
    Ok(data)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn data_is_read_as_controllers_read_it() {
        let map = json!({"kind": "ConfigMap", "data": {"a": "YQ=="}, "binaryData": {"b": "YQ=="}});
        assert_eq!(
            data_of(&map),
            Ok(BTreeMap::from([("a".to_owned(), b"YQ==".to_vec())]))
        );
        let secret = json!({"kind": "Secret", "data": {"a": "YQ=="}});
        assert_eq!(
            data_of(&secret),
            Ok(BTreeMap::from([("a".to_owned(), b"a".to_vec())]))
        );
        let broken = data_of(&json!({"kind": "Secret", "data": {"a": "hunter2!"}})).unwrap_err();
        assert!(!broken.contains("hunter2"), "{broken}");
        assert_eq!(data_of(&json!({"kind": "Secret"})), Ok(BTreeMap::new()));
    }
}
