//! `windlass export --all --out FOLDER`: all that a cluster knows of delivery, as files that `windlass restore` applies to another one.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use delivery_graph::kind::{self, Kind};
use delivery_graph::object::text;
use delivery_graph::references;
use jiff::Timestamp;
use kube::core::ApiResource;
use manifest::ObjectId;
use serde_json::Value;
use sops::Format;
use sops::age::Recipient;

use super::declared;
use crate::cluster::{Cluster, Failure};

/// Of flux-operator: named by no word of Flux's command.
const OF_FLUX_OPERATOR: [&str; 2] = ["ResourceSet", "ResourceSetInputProvider"];
/// Made by controllers, or a request that was answered.
const PASSING: [&str; 2] = ["ExternalArtifact", "ChangeRequest"];
/// The values of Secrets.
const CONFIDENTIAL: &str = "^(data|stringData)$";
/// Secrets that Kubernetes and Helm make.
const OF_PROGRAMS: [&str; 2] = ["kubernetes.io/service-account-token", "helm.sh/release.v1"];

/// What is written, and what of it is encrypted.
pub(super) struct Backup<'a> {
    pub(super) folder: &'a Path,
    pub(super) recipients: &'a [Recipient],
    pub(super) with_credentials: bool,
    /// None for all of them.
    pub(super) namespace: Option<&'a str>,
}

impl Backup<'_> {
    /// Writes the files. `report_line` is for what could not be read.
    pub(super) async fn write(&self, cluster: &Cluster, report_line: &impl Fn(&str)) -> Result<(), Failure> {
        empty_folder(self.folder)?;
        let found = self.objects(cluster).await?;
        let mut wanted = BTreeSet::new();
        let mut namespaces = BTreeSet::new();
        for object in &found {
            namespaces.insert(text(object, "/metadata/namespace").to_owned());
            if self.with_credentials {
                wanted.extend(references::of(object));
            }
        }
        let mut unread = Vec::new();
        let mut count = 0;
        for id in wanted {
            match get(cluster, &id).await {
                Ok(Some(object)) if OF_PROGRAMS.contains(&text(&object, "/type")) => {}
                Ok(Some(object)) => {
                    namespaces.insert(id.namespace.clone());
                    self.file(&object)?;
                    count += 1;
                }
                // It may be optional; if it is not, the object that references it is not ready and says so.
                Ok(None) => report_line(&format!("{id} is referenced but does not exist")),
                Err(failure) => unread.push(failure.to_string()),
            }
        }
        for name in namespaces.into_iter().filter(|name| !name.is_empty()) {
            let id = ObjectId {
                kind: "Namespace".to_owned(),
                name,
                ..ObjectId::default()
            };
            match get(cluster, &id).await {
                Ok(Some(mut object)) => {
                    // Its finalizer is the API server's.
                    object["spec"] = Value::Null;
                    self.file(&object)?;
                }
                Ok(None) => {}
                Err(failure) => unread.push(failure.to_string()),
            }
        }
        for object in &found {
            self.file(object)?;
        }
        report_line(&format!(
            "{} objects, {count} Secrets and ConfigMaps in {}",
            found.len(),
            self.folder.display()
        ));
        for line in &unread {
            report_line(line);
        }
        match unread.len() {
            0 => Ok(()),
            unread => Err(Failure::Incomplete(format!("{unread} objects could not be read"))),
        }
    }

    /// The objects of delivery that nothing makes again by itself.
    async fn objects(&self, cluster: &Cluster) -> Result<Vec<Value>, Failure> {
        let kinds = kind::ALL.iter().filter(|kind| !PASSING.contains(&kind.kind));
        let kinds: Vec<&Kind> = kinds
            .chain(OF_FLUX_OPERATOR.into_iter().filter_map(kind::exact))
            .collect();
        let mut found = Vec::new();
        for kind in kinds {
            let objects = cluster.list(kind, self.namespace, None).await?;
            found.extend(objects.unwrap_or_default().into_iter().filter(is_kept));
        }
        Ok(found)
    }

    fn file(&self, object: &Value) -> Result<(), Failure> {
        let mut object = declared(object);
        if object["spec"].is_null()
            && let Some(fields) = object.as_object_mut()
        {
            fields.remove("spec");
        }
        let kind = text(&object, "/kind").to_owned();
        let is_secret = kind == "Secret";
        let written = manifest::yaml::write(&object).map_err(|error| Failure::Write(error.to_string()))?;
        let mut content = written.into_bytes();
        let is_encrypted = is_secret && !self.recipients.is_empty();
        if is_encrypted {
            let now = Timestamp::now();
            let encrypted = sops::encrypt(&content, Format::Yaml, self.recipients, Some(CONFIDENTIAL), now);
            content = encrypted.map_err(|error| Failure::Write(error.to_string()))?;
        }
        let path = path_of(&object);
        let path = self.folder.join(path);
        let failed = |error: std::io::Error| Failure::Write(format!("{}: {error}", path.display()));
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        let mode = if is_secret && !is_encrypted { 0o600 } else { 0o644 };
        let mut options = fs::OpenOptions::new();
        let file = options.write(true).create_new(true).mode(mode).open(&path);
        file.and_then(|mut file| file.write_all(&content)).map_err(failed)
    }
}

/// `NAMESPACE/KIND-NAME.yaml`. Groups share no kinds that are backed up.
fn path_of(object: &Value) -> PathBuf {
    let kind = text(object, "/kind").to_lowercase();
    let file = format!("{kind}-{}.yaml", text(object, "/metadata/name"));
    match text(object, "/metadata/namespace") {
        "" => PathBuf::from(file),
        namespace => Path::new(namespace).join(file),
    }
}

/// Returns whether an object is not made by a controller, as the charts of HelmReleases are.
fn is_kept(object: &Value) -> bool {
    let owned = object["metadata"]["ownerReferences"].as_array();
    let is_of_release = text(object, "/kind") == "HelmChart"
        && !object["metadata"]["labels"]["helm.toolkit.fluxcd.io/name"].is_null();
    owned.is_none_or(Vec::is_empty) && !is_of_release
}

async fn get(cluster: &Cluster, id: &ObjectId) -> Result<Option<Value>, Failure> {
    let resource = ApiResource {
        group: String::new(),
        version: "v1".to_owned(),
        api_version: "v1".to_owned(),
        plural: format!("{}s", id.kind.to_lowercase()),
        kind: id.kind.clone(),
    };
    let found = cluster.get_any(id, &resource).await;
    found.map_err(|error| Failure::request(format!("get {id}"), error))
}

/// What another export has left would be restored, too.
fn empty_folder(folder: &Path) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::Usage(format!("{}: {error}", folder.display()));
    fs::create_dir_all(folder).map_err(failed)?;
    match fs::read_dir(folder).map_err(failed)?.next() {
        None => Ok(()),
        Some(_) => Err(Failure::Usage(format!(
            "--out: {} is not empty: what is in it would be restored, too",
            folder.display()
        ))),
    }
}
