//! The files of a bootstrap: the components as the chart renders them, the objects that deliver them, and the values that they were
//! rendered with.

use std::collections::BTreeMap;

use git_client::edit::{Changes, Content};
use helm_chart::values;
use helm_release::Release;
use kustomize_build::{DefaultOrder, LoadRestrictions, MemoryFs, Options};
use manifest::Object;
use manifest::yaml::read_documents;
use serde_json::{Map, Value, json};

use super::branch::Branch;
use super::flags::Shared;
use super::origin::failed;
use super::sync::Sync;
use crate::cluster::Failure;
use crate::platform::objects;

/// Flux's own name for the file with its components.
const OF_FLUX: &str = "gotk-components.yaml";
/// The folder of a bootstrap of ours, below the path of the cluster.
const FOLDER: &str = "windlass-system";
/// First words of a file with components of ours.
const HEAD: &str = "# Windlass";
/// Helm's metadata, which says who may change an object; here that is the Kustomization.
const HELM_LABELS: [&str; 2] = ["app.kubernetes.io/managed-by", "helm.sh/chart"];
const KEEP: &str = "helm.sh/resource-policy";
const PRUNE: &str = "kustomize.toolkit.fluxcd.io/prune";
/// The component that applies Kustomizations.
const APPLIES: &str = "kustomize-controller";

/// Where the files of a bootstrap are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Layout {
    /// Their folder.
    pub(super) folder: String,
    /// The file with the components.
    components: &'static str,
    sync: &'static str,
    /// The repository has been bootstrapped before.
    pub(super) is_there: bool,
    /// By Flux, whose components are in the file.
    pub(super) is_flux: bool,
}

impl Layout {
    /// Looks for a bootstrap of ours, then for one of Flux.
    pub(super) fn find(branch: &Branch, path: &str, namespace: &str) -> Result<Self, Failure> {
        let ours = Self {
            folder: joined(path, FOLDER),
            components: "components.yaml",
            sync: "sync.yaml",
            is_there: true,
            is_flux: false,
        };
        if branch.has(&ours.components())? {
            return Ok(ours);
        }
        let flux = Self {
            folder: joined(path, namespace),
            components: OF_FLUX,
            sync: "gotk-sync.yaml",
            ..ours.clone()
        };
        match branch.file(&flux.components())? {
            Some(text) => Ok(Self {
                is_flux: !text.starts_with(HEAD.as_bytes()),
                ..flux
            }),
            None => Ok(Self {
                is_there: false,
                ..ours
            }),
        }
    }

    /// The same after a move of the cluster's folder.
    pub(super) fn at(&self, before: Option<&str>, path: &str) -> Self {
        let rest = before.and_then(|before| self.folder.strip_prefix(before));
        match rest {
            Some(rest) => Self {
                folder: joined(path, rest.trim_start_matches('/')),
                ..self.clone()
            },
            None => self.clone(),
        }
    }

    fn components(&self) -> String {
        joined(&self.folder, self.components)
    }

    fn sync(&self) -> String {
        joined(&self.folder, self.sync)
    }

    fn kustomization(&self) -> String {
        joined(&self.folder, "kustomization.yaml")
    }

    fn values(&self) -> String {
        joined(&self.folder, "values.yaml")
    }
}

/// The values that the components are rendered with: those of the repository, and over them those that were given.
pub(super) fn values(
    branch: &Branch,
    layout: &Layout,
    shared: &Shared,
) -> Result<Map<String, Value>, Failure> {
    let path = layout.values();
    let mut values = match branch.file(&path)? {
        Some(text) => match read_values(&path, &text)? {
            Value::Object(values) => values,
            Value::Null => Map::new(),
            _ => {
                return Err(Failure::Usage(format!(
                    "{path} of the repository: it must be one mapping"
                )));
            }
        },
        None => Map::new(),
    };
    values::merge(&mut values, shared.given()?);
    // Flux's controllers of images are replaced by one of ours, which is off unless it is asked for.
    let is_unset = values
        .get("images")
        .and_then(|images| images.get("enabled"))
        .is_none();
    if layout.is_flux
        && is_unset
        && definitions(branch, layout)?
            .iter()
            .any(|(name, _)| name.contains(".image."))
    {
        let Value::Object(images) = json!({"images": {"enabled": true}}) else {
            return Ok(values);
        };
        values::merge(&mut values, images);
    }
    Ok(values)
}

/// The definitions that the components of the repository have, and whether they stay when they are left out.
fn definitions(branch: &Branch, layout: &Layout) -> Result<Vec<(String, bool)>, Failure> {
    let path = layout.components();
    let Some(text) = branch.file(&path)? else {
        return Ok(Vec::new());
    };
    let objects = objects::of_manifest(&String::from_utf8_lossy(&text))?;
    let definitions = objects
        .iter()
        .filter(|object| object.gvk().kind == "CustomResourceDefinition");
    Ok(definitions
        .map(|object| {
            (
                object.name().to_owned(),
                object.annotation(PRUNE) == Some("disabled"),
            )
        })
        .collect())
}

/// Refuses to leave out definitions: the cluster would delete them, and all their objects with them.
pub(super) fn keeps_definitions(branch: &Branch, before: &Layout, objects: &[Object]) -> Result<(), Failure> {
    let is_lost =
        |(name, stays): &(String, bool)| !stays && !objects.iter().any(|object| object.name() == name);
    let lost: Vec<String> = definitions(branch, before)?
        .into_iter()
        .filter(is_lost)
        .map(|(name, _)| name)
        .collect();
    match lost.is_empty() {
        true => Ok(()),
        false => Err(Failure::NotReady(format!(
            "these definitions would be deleted, with all of their objects: {}; switch on the controllers that have them",
            lost.join(", ")
        ))),
    }
}

fn read_values(path: &str, text: &[u8]) -> Result<Value, Failure> {
    let text = String::from_utf8_lossy(text);
    let documents = read_documents(&text, path);
    let documents =
        documents.map_err(|error| Failure::Usage(format!("values of the repository: {error}")))?;
    Ok(documents.into_iter().next().map_or(Value::Null, |one| one.value))
}

/// What the files are made of.
pub(super) struct Bootstrap<'a> {
    pub(super) release: &'a Release,
    pub(super) namespace: &'a str,
    pub(super) values: &'a Map<String, Value>,
    /// The address that the cluster fetches from.
    pub(super) url: &'a str,
    /// The Secret that it fetches with; None without credentials.
    pub(super) secret: Option<&'a str>,
    pub(super) shared: &'a Shared,
}

impl Bootstrap<'_> {
    /// The files that are to be there; with `before`, the path that the cluster has now, its files are moved.
    pub(super) fn files(
        &self,
        branch: &Branch,
        (before, layout): (&Layout, &Layout),
        moved_from: Option<&str>,
    ) -> Result<Changes, Failure> {
        let mut changes = Changes::new();
        if let Some(path) = moved_from {
            self.moved(branch, path, &mut changes)?;
        }
        let is_written = |changes: &Changes, path: &str| -> Result<bool, Failure> {
            Ok(changes.contains_key(path) || branch.has(path)?)
        };
        changes.insert(layout.components(), Some(self.components()?.into_bytes().into()));
        changes.insert(
            layout.sync(),
            Some(self.sync(branch, before)?.into_bytes().into()),
        );
        if !is_written(&changes, &layout.kustomization())? {
            let text = format!(
                "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n- {}\n- {}\n",
                layout.components, layout.sync
            );
            changes.insert(layout.kustomization(), Some(text.into_bytes().into()));
        }
        self.values(branch, (before, layout), &mut changes)?;
        self.listed(branch, layout, &mut changes)?;
        Ok(changes)
    }

    /// What the chart is rendered to, for a Kustomization: without Helm's metadata, with the namespace.
    fn components(&self) -> Result<String, Failure> {
        let mut all = vec![objects::of_value(&json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": self.namespace, "labels": {
                "app.kubernetes.io/part-of": "flux",
                "kubernetes.io/metadata.name": self.namespace,
                "pod-security.kubernetes.io/warn": "restricted",
                "pod-security.kubernetes.io/warn-version": "latest",
            }},
        }))];
        all.extend(objects::of_manifest(&self.release.manifest)?);
        all.iter_mut().for_each(without_helm);
        let version = env!("CARGO_PKG_VERSION");
        Ok(format!(
            "{HEAD} {version}, written by `windlass bootstrap`: changes belong to values.yaml or kustomization.yaml.\n---\n{}",
            flux_spec::build::to_yaml(&all)
        ))
    }

    /// The text of sync.yaml over the one that is there.
    fn sync(&self, branch: &Branch, before: &Layout) -> Result<String, Failure> {
        let path = before.sync();
        let known = branch.file(&path)?;
        let known = known.as_deref().map(String::from_utf8_lossy);
        let account = self.account()?;
        let deployments = objects::of_manifest(&self.release.manifest)?;
        let deployments = deployments
            .iter()
            .filter(|object| object.gvk().kind == "Deployment");
        let controllers: Vec<&str> = deployments.map(Object::name).collect();
        let sync = Sync {
            name: self.namespace,
            url: self.url,
            secret: self.secret,
            account: account.as_deref(),
            path: &self.shared.path,
            branch: &self.shared.branch,
            interval: self.shared.interval,
            submodules: self.shared.recurse_submodules,
            rollback: self.shared.rollback,
            controllers: &controllers,
        };
        sync.over(&path, known.as_deref())
    }

    /// Where Kustomizations without an account act as a default one, which is for tenants: the account of the controller that applies, if it may
    /// do everything.
    fn account(&self) -> Result<Option<String>, Failure> {
        let tenancy = self.values.get("tenancy");
        let default = tenancy.and_then(|tenancy| tenancy["defaultServiceAccount"].as_str());
        if default.is_none_or(str::is_empty) {
            return Ok(None);
        }
        let objects = objects::of_manifest(&self.release.manifest)?;
        Ok(objects.into_iter().map(Object::into_value).find_map(|binding| {
            let is_of_it = binding["metadata"]["labels"]["app.kubernetes.io/component"] == APPLIES;
            let may_all = binding["roleRef"]["name"] == "cluster-admin";
            let account = binding["subjects"][0]["name"].as_str()?;
            (is_of_it && may_all).then(|| account.to_owned())
        }))
    }

    fn values(
        &self,
        branch: &Branch,
        (before, layout): (&Layout, &Layout),
        changes: &mut Changes,
    ) -> Result<(), Failure> {
        let known = branch.file(&before.values())?;
        let known = known
            .as_deref()
            .map(|text| read_values(&before.values(), text))
            .transpose()?;
        let wanted = Value::Object(self.values.clone());
        if known.as_ref().is_some_and(|known| *known == wanted) || (known.is_none() && self.values.is_empty())
        {
            return Ok(());
        }
        let text = manifest::yaml::write(&wanted).map_err(|error| Failure::Write(error.to_string()))?;
        let text =
            format!("# Values of the chart; `windlass bootstrap` renders components.yaml from them.\n{text}");
        changes.insert(layout.values(), Some(text.into_bytes().into()));
        Ok(())
    }

    /// A kustomization.yaml of the cluster must list the folder, or the cluster would not deliver it.
    fn listed(&self, branch: &Branch, layout: &Layout, changes: &mut Changes) -> Result<(), Failure> {
        for name in manifest_edit::KUSTOMIZATION_FILES {
            let path = joined(&self.shared.path, name);
            let Some(text) = branch.file(&path)? else {
                continue;
            };
            let text = String::from_utf8_lossy(&text);
            let folder = layout.folder.rsplit('/').next().unwrap_or(FOLDER);
            let added = manifest_edit::add_resource(&path, &text, folder);
            let added = added.map_err(|error| Failure::Usage(format!("of the repository: {error}")))?;
            if let Some(text) = added {
                changes.insert(path, Some(text.into_bytes().into()));
            }
            return Ok(());
        }
        Ok(())
    }

    /// The files of the cluster at their new path, without a byte of them changed.
    fn moved(&self, branch: &Branch, before: &str, changes: &mut Changes) -> Result<(), Failure> {
        let path = self.shared.path.as_str();
        let is_nested =
            before.is_empty() || path.is_empty() || is_below(path, before) || is_below(before, path);
        if is_nested {
            return Err(Failure::Usage(format!(
                "--move: './{path}' and './{before}' are one in the other; move the files yourself"
            )));
        }
        if branch.has(path)? {
            return Err(Failure::Usage(format!(
                "--move: './{path}' is there already; what it has not and './{before}' has would be deleted from the cluster"
            )));
        }
        for (file, content) in branch.below(before)? {
            changes.insert(format!("{path}{}", &file[before.len()..]), Some(content));
            changes.insert(file, None);
        }
        Ok(())
    }
}

fn is_below(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder)
        .is_some_and(|rest| rest.starts_with('/'))
}

fn without_helm(object: &mut Object) {
    let is_kept = object.annotation(KEEP) == Some("keep");
    if let Some(Value::Object(metadata)) = object.value_mut().get_mut("metadata") {
        if let Some(Value::Object(labels)) = metadata.get_mut("labels") {
            HELM_LABELS.iter().for_each(|label| drop(labels.remove(*label)));
        }
        if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
            annotations.remove(KEEP);
        }
    }
    if is_kept {
        object.set_annotation(PRUNE, "disabled");
    }
}

/// The objects of the folder as the cluster will build them, patches of people included.
pub(super) fn built(branch: &Branch, layout: &Layout, changes: &Changes) -> Result<Vec<Object>, Failure> {
    let mut files = MemoryFs::default();
    let parent = layout.folder.rsplit_once('/').map_or("", |(parent, _)| parent);
    let root = if parent.is_empty() {
        layout.folder.as_str()
    } else {
        parent
    };
    let mut contents: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for (path, _) in branch.below(root)? {
        if let Some(bytes) = branch.file(&path)? {
            contents.insert(path, bytes);
        }
    }
    for (path, content) in changes {
        match content {
            Some(Content::Bytes(bytes)) => drop(contents.insert(path.clone(), bytes.clone())),
            Some(Content::Stored { id, .. }) => drop(contents.insert(path.clone(), branch.stored(*id)?)),
            None => drop(contents.remove(path)),
        }
    }
    for (path, bytes) in contents {
        files.insert(path, bytes);
    }
    let options = Options {
        load_restrictions: LoadRestrictions::None,
        default_order: DefaultOrder::Fifo,
        ..Options::default()
    };
    let built = kustomize_build::build(&files, &layout.folder, &options);
    let built =
        built.map_err(|error| failed(&format!("build ./{} as it would be", layout.folder), &error))?;
    Ok(built.objects)
}

/// The files of a dry run, one a line.
pub(super) fn shown(branch: &Branch, changes: &Changes) -> String {
    let mut text = String::new();
    for (path, content) in changes {
        let is_changed = branch.differs(path, content.as_ref()).unwrap_or(true);
        let word = match (content, branch.has(path).unwrap_or(false)) {
            _ if !is_changed => continue,
            (None, _) => "delete",
            (Some(_), true) => "change",
            (Some(_), false) => "create",
        };
        text.push_str(&format!("{word} file {path}\n"));
    }
    match text.is_empty() {
        true => "no file changes\n".to_owned(),
        false => text,
    }
}

fn joined(folder: &str, name: &str) -> String {
    match folder {
        "" => name.to_owned(),
        folder => format!("{folder}/{name}"),
    }
}
