//! What is built, and by which Kustomization.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use api::kustomize::{Kustomization, KustomizationSpec};
use api::meta::KUSTOMIZE_GROUP;
use kustomize_build::{FileKind, FileSystem};
use manifest::{Object, ObjectId};
use serde_json::Value;

use crate::report::{Level, Report};
use crate::scan::Scanned;

/// What was built.
pub(crate) struct Build {
    /// The folder from which it all came: clusters have Kustomizations of the same name, each in its own.
    root: String,
    /// The Kustomization of Flux that has it built; None for a kustomization that none names.
    pub(crate) by: Option<ObjectId>,
    /// Its `spec.kubeConfig`: the cluster where it applies the objects, if that is another one.
    cluster: Option<String>,
    pub(crate) objects: Vec<Object>,
}

/// Builds what Kustomizations of the repository name, and all kustomizations besides that no other one uses.
pub(crate) fn build_all(
    tree: &dyn FileSystem,
    scanned: &Scanned,
    is_given_up: &dyn Fn() -> bool,
    report: &mut Report,
) -> Vec<Build> {
    let mut builds: Vec<Build> = Vec::new();
    let mut waiting: VecDeque<(String, Object)> = VecDeque::new();
    let mut folders = BTreeSet::new();
    // Kustomizations of Flux may be patched: those in files are looked at after those that were built.
    for folder in scanned
        .kustomizations
        .iter()
        .filter(|folder| !scanned.used.contains(*folder))
    {
        if is_given_up() {
            return builds;
        }
        if let Some(objects) = build(tree, folder, &KustomizationSpec::default(), None, report) {
            waiting.extend(below(folder, &objects));
            folders.insert(folder.clone());
            builds.push(Build {
                root: folder.clone(),
                by: None,
                cluster: None,
                objects,
            });
        }
    }
    let mut seen = BTreeSet::new();
    let mut named = BTreeSet::new();
    let mut missing = Missing::default();
    while let Some((root, object)) = waiting
        .pop_front()
        .or_else(|| next_loose(scanned, &builds, &seen))
    {
        if is_given_up() {
            return builds;
        }
        if !seen.insert((root.clone(), object.id())) {
            continue;
        }
        let Some((folder, spec)) = of_kustomization(tree, &object, &mut missing, report) else {
            continue;
        };
        let Some(objects) = build(tree, &folder, &spec, Some(&object), report) else {
            continue;
        };
        waiting.extend(below(&root, &objects));
        named.insert(folder);
        builds.push(Build {
            root,
            by: Some(object.id()),
            cluster: kube_config(&object),
            objects,
        });
    }
    missing.report(scanned, &builds, report);
    // Those that a Kustomization builds were built once more than need be.
    let mut folders = folders.into_iter();
    builds.retain(|build| build.by.is_some() || folders.next().is_none_or(|folder| !named.contains(&folder)));
    builds
}

/// The next Kustomization in a file that no build has. First those that no other one would build.
fn next_loose(
    scanned: &Scanned,
    builds: &[Build],
    seen: &BTreeSet<(String, ObjectId)>,
) -> Option<(String, Object)> {
    let files = loose(scanned, builds);
    let found = files.flat_map(|(file, objects)| {
        let folder = file.rsplit_once('/').map_or("", |(folder, _)| folder);
        below(folder, objects)
    });
    let mut left: Vec<_> = found
        .filter(|(folder, object)| !seen.contains(&(folder.clone(), object.id())))
        .collect();
    let paths: Vec<String> = left.iter().map(|(_, object)| path_of(object)).collect();
    let is_first = |at: usize| {
        let folder = format!("{}/", left[at].0);
        let is_above = |path: &String| path.is_empty() || folder.starts_with(&format!("{path}/"));
        let mut others = paths.iter().enumerate().filter(|(other, _)| *other != at);
        !others.any(|(_, path)| is_above(path))
    };
    let first = (0..left.len()).find(|at| is_first(*at)).unwrap_or_default();
    (!left.is_empty()).then(|| left.swap_remove(first))
}

fn path_of(object: &Object) -> String {
    let spec = object.value().get("spec");
    let path = spec.and_then(|spec| spec.get("path")).and_then(Value::as_str);
    flux_spec::build::path::clamp(path.unwrap_or_default())
}

/// Manifests that no build has.
pub(crate) fn loose<'a>(
    scanned: &'a Scanned,
    builds: &[Build],
) -> impl Iterator<Item = (&'a String, &'a Vec<Object>)> + use<'a> {
    let objects = builds.iter().flat_map(|build| &build.objects);
    let known: BTreeSet<String> = objects
        .filter_map(|object| Some(object.origin()?.file.to_string()))
        .collect();
    scanned
        .manifests
        .iter()
        .filter(move |(file, _)| !known.contains(*file))
}

/// The Kustomizations among objects.
fn below<'a>(root: &'a str, objects: &'a [Object]) -> impl Iterator<Item = (String, Object)> + use<'a> {
    let found = objects.iter().filter(|object| is_kustomization(object));
    found.map(move |object| (root.to_owned(), object.clone()))
}

fn is_kustomization(object: &Object) -> bool {
    let gvk = object.gvk();
    gvk.group == KUSTOMIZE_GROUP && gvk.kind == "Kustomization"
}

/// The folder of a Kustomization, if it is in this repository.
fn of_kustomization(
    tree: &dyn FileSystem,
    object: &Object,
    missing: &mut Missing,
    report: &mut Report,
) -> Option<(String, KustomizationSpec)> {
    let read: Result<Kustomization, _> = serde_json::from_value(Value::Object(object.value().clone()));
    let spec = match read {
        Ok(read) => read.spec,
        Err(error) => {
            // What is wrong is a finding of its schema.
            let message = format!("it is not built, as it cannot be read: {error}");
            report.add("build", Level::Note, message).of(object);
            return None;
        }
    };
    let path = spec.path.clone().unwrap_or_default();
    let folder = flux_spec::build::path::clamp(&path);
    let source = repository_of(object);
    if matches!(tree.kind(&folder), Ok(Some(FileKind::Directory))) {
        missing.of_this_one.extend(source);
        return Some((folder, spec));
    }
    if let Some(source) = source {
        missing.folders.push((object.clone(), folder, source));
    }
    None
}

fn kube_config(object: &Object) -> Option<String> {
    let config = object.value().get("spec")?.get("kubeConfig")?;
    Some(config.to_string())
}

/// Namespace and name of the GitRepository that a Kustomization is built from.
fn repository_of(object: &Object) -> Option<(String, String)> {
    let source = object.value().get("spec")?.get("sourceRef")?;
    let named = |field: &str| source.get(field).and_then(Value::as_str);
    let namespace = named("namespace").unwrap_or(object.namespace());
    (named("kind") == Some("GitRepository"))
        .then(|| Some((namespace.to_owned(), named("name")?.to_owned())))
        .flatten()
}

/// Folders of Kustomizations that are not in this repository.
#[derive(Default)]
struct Missing {
    folders: Vec<(Object, String, (String, String))>,
    /// The GitRepositories that have folders which are.
    of_this_one: BTreeSet<(String, String)>,
}

impl Missing {
    /// A GitRepository that this repository declares, and that has no folder here, is another one.
    fn report(self, scanned: &Scanned, builds: &[Build], report: &mut Report) {
        let of_builds = builds.iter().flat_map(|build| &build.objects);
        let of_files = loose(scanned, builds).flat_map(|(_, objects)| objects);
        let declared: BTreeSet<(String, String)> = of_builds
            .chain(of_files)
            .filter(|object| object.gvk().kind == "GitRepository")
            .map(|object| (object.namespace().to_owned(), object.name().to_owned()))
            .collect();
        let mut reported = BTreeSet::new();
        for (object, folder, source) in self.folders {
            // It may be reached from several folders.
            let file = object.origin().map(|origin| origin.file.clone());
            if !reported.insert((object.id(), folder.clone(), file)) {
                continue;
            }
            let is_other = declared.contains(&source) && !self.of_this_one.contains(&source);
            let (level, message) = match is_other {
                true => (
                    Level::Note,
                    format!(
                        "its path ./{folder} is in another repository, GitRepository '{}'; it is not checked",
                        source.1
                    ),
                ),
                false => (
                    Level::Warning,
                    format!(
                        "its path ./{folder} is not in this repository; it is not checked, and fails unless GitRepository '{}' is another \
                         repository",
                        source.1
                    ),
                ),
            };
            report.add("path", level, message).of(&object);
        }
    }
}

fn build(
    tree: &dyn FileSystem,
    folder: &str,
    spec: &KustomizationSpec,
    by: Option<&Object>,
    report: &mut Report,
) -> Option<Vec<Object>> {
    match flux_spec::build::build(tree, folder, spec) {
        Ok(objects) => Some(objects),
        Err(error) => {
            let message = error_chain::chain(&error);
            let finding = report
                .add("build", Level::Error, message)
                .at(&format!("./{folder}"), None);
            if let Some(by) = by {
                finding.object = Some(by.id().to_string());
            }
            None
        }
    }
}

/// Finds objects that two Kustomizations apply: they would take them from each other for ever.
pub(crate) fn twice(builds: &[Build], report: &mut Report) {
    let mut owners: BTreeMap<_, Vec<(&ObjectId, &Object)>> = BTreeMap::new();
    for build in builds {
        let Some(by) = &build.by else { continue };
        for object in &build.objects {
            // Without a namespace it may be in another one than it seems.
            let key = (build.root.as_str(), &build.cluster, object.id());
            owners.entry(key).or_default().push((by, object));
        }
    }
    for ((_, _, id), owners) in owners {
        let [(first, _), .., (last, object)] = owners.as_slice() else {
            continue;
        };
        let is_sure = !id.namespace.is_empty() || id.kind == "Namespace";
        if first != last && is_sure {
            let message = format!("both {first} and {last} apply it, and overwrite each other's changes");
            report.add("applied-twice", Level::Error, message).of(object);
        }
    }
}
