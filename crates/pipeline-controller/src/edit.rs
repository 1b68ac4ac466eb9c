//! The values of a release, set in the manifests of one target. Pure but for the pack.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::delivery::{AppKind, AppReference, Pipeline, Release};
use change_policy::mark::Change;
use cluster_access::targets::Target as Cluster;
use controller_kit::ObjectKey;
use git_client::commit::Person;
use git_client::edit::Changes;
use git_client::pack::{self, Node, Pack};
use git_writer::files::{below, is_yaml};
use jiff::Timestamp;
use kube::ResourceExt as _;
use promotion::values::{Field, field, tag_and_digest};
use yaml_setters::{Image, Setters, Subject, Unmarked};

use crate::observe::Looked;

/// Key of markers.
const MARKER: &str = "$promotion";
/// Bytes of files that are held at once.
const MAX_FILES: usize = 32 << 20;
/// Author where the pipeline names none.
const AUTHOR: (&str, &str) = ("pipeline-controller", "pipeline-controller@windlass.dev");

/// Why the values cannot be set.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The files.
    #[error("failed to read the files")]
    Read(#[from] pack::Error),
    /// There is no such field in the files.
    #[error(
        "no file below '{path}' has {field}: where the value comes from a base or a variable, mark it with \
         # {{\"{MARKER}\": \"{marker}\"}}"
    )]
    NotFound {
        /// The folder.
        path: String,
        /// The field.
        field: String,
        /// What the marker has to say.
        marker: String,
    },
    /// It is in several files.
    #[error(
        "{field} is in several files ({files}): mark the one that counts with # {{\"{MARKER}\": \"{marker}\"}}"
    )]
    Ambiguous {
        /// The field.
        field: String,
        /// The files.
        files: String,
        /// What the marker has to say.
        marker: String,
    },
    /// Too much would be held in memory.
    #[error("the files below '{0}' that name the applications are larger than {MAX_FILES} bytes together")]
    TooLarge(String),
    /// There is nothing to set.
    #[error("none of the applications has a field that the release carries")]
    Nothing,
    /// A file cannot be changed.
    #[error("{file}:{line}: {problem}")]
    File {
        /// Its path.
        file: String,
        /// The line.
        line: u32,
        /// The problem.
        problem: String,
    },
}

/// A release that enters though the target has had a newer one, or this one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asked {
    /// When it was asked for.
    pub(crate) at: Timestamp,
    /// Whether it is older than what the target had.
    pub(crate) is_back: bool,
    /// Who asked, and why.
    pub(crate) by: String,
}

/// A release for a target.
#[derive(Clone)]
pub(crate) struct Task {
    /// `namespace:name` of the pipeline.
    pipeline: String,
    pub(crate) environment: String,
    /// What the target is called.
    pub(crate) target: String,
    /// Namespace of the applications.
    pub(crate) namespace: String,
    /// Their cluster, if it is another one.
    pub(crate) cluster: Option<Arc<Cluster>>,
    pub(crate) release: Release,
    pub(crate) asked: Option<Asked>,
    /// How it is proposed already.
    pub(crate) proposed: Option<String>,
    /// Applications, with what they are given.
    pub(crate) apps: Vec<(AppReference, Vec<(Field, String)>)>,
    /// The Kustomizations that their labels name.
    pub(crate) owners: Vec<Option<ObjectKey>>,
    pub(crate) author: Person,
}

impl Task {
    /// A release for a target, as far as its applications have such fields.
    pub(crate) fn new(
        pipeline: &Pipeline,
        environment: &str,
        looked: &Looked,
        release: &Release,
        asked: Option<Asked>,
    ) -> Self {
        let facts = |at: usize| looked.apps.get(at).and_then(Option::as_ref);
        let apps = pipeline.spec.apps.iter().enumerate().map(|(at, app)| {
            let has = facts(at).map(|facts| facts.fields.clone()).unwrap_or_default();
            let values = release.values.iter();
            let values = values.filter_map(|(key, value)| Some((field(app, key)?, value.clone())));
            (
                app.clone(),
                values.filter(|(field, _)| has.contains_key(field)).collect(),
            )
        });
        let author = pipeline.spec.author.clone();
        Self {
            pipeline: format!(
                "{}:{}",
                pipeline.namespace().unwrap_or_default(),
                pipeline.name_any()
            ),
            environment: environment.to_owned(),
            target: looked.name.clone(),
            namespace: looked.namespace.clone(),
            cluster: looked.cluster.clone(),
            release: release.clone(),
            asked,
            proposed: None,
            owners: (0..pipeline.spec.apps.len())
                .map(|at| facts(at).and_then(|facts| facts.owner.clone()))
                .collect(),
            apps: apps.collect(),
            author: match author {
                Some(author) => Person {
                    name: author
                        .name
                        .unwrap_or_else(|| author.email.split('@').next().unwrap_or_default().to_owned()),
                    email: author.email,
                },
                None => Person {
                    name: AUTHOR.0.to_owned(),
                    email: AUTHOR.1.to_owned(),
                },
            },
        }
    }

    /// The same for some of the applications.
    pub(crate) fn part(&self, apps: &[usize]) -> Self {
        Self {
            apps: apps.iter().map(|at| self.apps[*at].clone()).collect(),
            owners: apps.iter().map(|at| self.owners[*at].clone()).collect(),
            ..self.clone()
        }
    }

    /// The pipeline, as `namespace/name`.
    pub(crate) fn pipeline(&self) -> String {
        self.pipeline.replace(':', "/")
    }

    /// Returns whether a file may have to be changed: cheap, before it is read as YAML.
    fn may_be_in(&self, content: &[u8]) -> bool {
        let has = |word: &[u8]| content.windows(word.len().max(1)).any(|window| window == word);
        yaml_setters::may_have_markers(content, MARKER)
            || self.apps.iter().any(|(app, _)| has(app.name.as_bytes()))
    }

    /// What markers of this environment begin with.
    fn marker(&self) -> String {
        format!("{}:{}", self.pipeline, self.environment)
    }

    /// The names of a field in markers, with what is to stand there. The first is the one that is proposed to people.
    fn names(&self, app: &AppReference, field: &Field, value: &str) -> Vec<(String, String)> {
        let base = self.marker();
        let of_app = format!("{base}:{}", app.name);
        let mut names = Vec::new();
        let mut name = |name: String, value: &str| names.push((name, value.to_owned()));
        match field {
            Field::Chart => {
                // As Weave's markers: the environment alone.
                name(base.clone(), value);
                name(format!("{of_app}:chart"), value);
                name(format!("{base}:chart"), value);
            }
            Field::Reference(reference) => {
                name(base.clone(), value);
                name(format!("{of_app}:{}", reference.word()), value);
            }
            Field::Image(image) => {
                let (tag, digest) = tag_and_digest(value);
                let reference = match (tag, digest) {
                    ("", digest) => format!("{image}@{digest}"),
                    (tag, "") => format!("{image}:{tag}"),
                    (tag, digest) => format!("{image}:{tag}@{digest}"),
                };
                for prefix in [&base, &of_app] {
                    name(format!("{prefix}:{image}:tag"), tag);
                    name(format!("{prefix}:{image}:digest"), digest);
                    name(format!("{prefix}:{image}"), &reference);
                }
                if self.apps.iter().map(|(_, fields)| fields.len()).sum::<usize>() == 1 {
                    name(base, tag);
                }
            }
        }
        names.retain(|(_, value)| !value.is_empty());
        names
    }

    /// The values that markers may name. A name that would mean two values means none.
    fn setters(&self) -> Setters {
        let mut values: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (app, fields) in &self.apps {
            for (field, value) in fields {
                for (name, value) in self.names(app, field, value) {
                    values.entry(name).or_default().insert(value);
                }
            }
        }
        let clear = values.into_iter().filter(|(_, values)| values.len() == 1);
        clear
            .filter_map(|(name, values)| Some((name, values.into_iter().next()?)))
            .collect()
    }

    /// What a commit and a pull request say first.
    pub(crate) fn title(&self) -> String {
        let (pipeline, environment, number) = (self.pipeline(), &self.environment, self.release.number);
        match &self.asked {
            Some(asked) if asked.is_back => {
                format!("Roll back {pipeline} in {environment} to release {number}")
            }
            _ => format!("Promote release {number} of {pipeline} to {environment}"),
        }
    }

    /// What it carries, in one line.
    pub(crate) fn values(&self) -> String {
        let values = self.release.values.iter();
        let values = values.map(|(field, value)| format!("{field} {value}"));
        values.collect::<Vec<_>>().join(", ")
    }

    /// Who or what asked for it, as a paragraph.
    pub(crate) fn why(&self) -> String {
        let asked = self.asked.as_ref();
        asked.map_or(String::new(), |asked| format!("Asked for by {}\n\n", asked.by))
    }

    /// The message of a commit.
    pub(crate) fn message(&self, targets: &[&str], edited: &Edited) -> String {
        let pipeline = self.pipeline();
        let lines: Vec<_> = edited.lines().iter().map(|line| format!("- {line}")).collect();
        format!(
            "{}\n\n{}Targets: {}\n{}\n\nPipeline: {pipeline}\nEnvironment: {}\nRelease: {}\n",
            self.title(),
            self.why(),
            targets.join(", "),
            lines.join("\n"),
            self.environment,
            self.release.digest
        )
    }
}

/// What is to be changed.
#[derive(Debug, Default)]
pub(crate) struct Edited {
    /// New contents, by path.
    pub(crate) contents: Changes,
    /// What changes, with the file that it is in.
    changes: Vec<(String, yaml_setters::Change)>,
}

impl Edited {
    /// Adds what is changed for another target.
    pub(crate) fn add(&mut self, other: Self) {
        self.contents.extend(other.contents);
        self.changes.extend(other.changes);
    }

    /// A line for each change. Values and paths are a tenant's: none makes two lines of one.
    pub(crate) fn lines(&self) -> BTreeSet<String> {
        let lines = self.changes.iter().map(|(file, change)| {
            let object = &change.object;
            let line = format!(
                "{file}: {}/{}: {} -> {}",
                object.kind, object.name, change.old, change.new
            );
            line.chars()
                .map(|c| if c.is_control() { ' ' } else { c })
                .collect()
        });
        lines.collect()
    }

    /// What identifies the change, and the files that it is made over; None if nothing changes.
    /// What was asked for is a change of its own: it may be the same as one that was merged before.
    pub(crate) fn identity(
        &self,
        asked: Option<&Asked>,
        pack: &Pack,
    ) -> Result<Option<(Change, Change)>, pack::Error> {
        if self.contents.is_empty() {
            return Ok(None);
        }
        let parts = self.changes.iter().flat_map(|(file, change)| {
            let object = &change.object;
            [
                file,
                &object.kind,
                &object.namespace,
                &object.name,
                &change.setter,
                &change.new,
            ]
        });
        let asked = asked.map(|asked| asked.at.to_string());
        let parts = parts.map(String::as_str).chain(asked.as_deref());
        let change = Change::new(parts);
        let mut below = Vec::new();
        for path in self.contents.keys() {
            below.push(path.clone());
            below.push(
                pack.entry(path)?
                    .map(|(_, id)| id.to_string())
                    .unwrap_or_default(),
            );
        }
        Ok(Some((change, Change::new(below.iter().map(String::as_str)))))
    }
}

/// The files of YAML below a folder that may have to be changed.
fn yaml_files(task: &Task, folder: &str, pack: &Pack) -> Result<Vec<(String, Vec<u8>)>, Error> {
    let is_within = |path: &str| folder.is_empty() || below(path, folder).is_some();
    let mut found = Vec::new();
    pack.walk(|entry| match entry.kind {
        Node::Directory => {
            Ok(is_within(entry.path) || entry.path == folder || below(folder, entry.path).is_some())
        }
        Node::File { .. } if is_within(entry.path) && is_yaml(entry.path) => {
            found.push((entry.path.to_owned(), entry.id));
            Ok(false)
        }
        _ => Ok::<_, pack::Error>(false),
    })?;
    let (mut files, mut size) = (Vec::new(), 0);
    for (path, id) in found {
        let mut content = Vec::new();
        // A file that is too large holds no manifest that people write.
        if pack
            .read_blob(id, yaml_setters::MAX_FILE as u64, &mut content)
            .is_err()
            || !task.may_be_in(&content)
        {
            continue;
        }
        size += content.len();
        if size > MAX_FILES {
            return Err(Error::TooLarge(folder.to_owned()));
        }
        files.push((path, content));
    }
    Ok(files)
}

/// Sets the values in the files of a commit, over what is changed in them already.
pub(crate) fn edit_below(task: &Task, path: &str, pack: &Pack, before: &Edited) -> Result<Edited, Error> {
    let mut files = yaml_files(task, path, pack)?;
    for (file, content) in &mut files {
        if let Some(Some(changed)) = before.contents.get(file) {
            content.clone_from(changed);
        }
    }
    edit(task, path, &files)
}

/// What is set without a marker in the manifest of one application. Names of setters are those of the fields.
fn unmarked(app: &AppReference, fields: &[(Field, String)], namespace: &str) -> Unmarked {
    let mut unmarked = Unmarked {
        values: app.kind == AppKind::HelmRelease,
        kustomizations: app.kind == AppKind::Kustomization,
        object: Some(Subject {
            group: app.kind.group().to_owned(),
            kind: app.kind.as_str().to_owned(),
            name: app.name.clone(),
            namespace: namespace.to_owned(),
        }),
        ..Unmarked::default()
    };
    for (field, value) in fields {
        let setter = field.to_string();
        match field {
            Field::Reference(reference) => unmarked.fields.push(yaml_setters::Field {
                setter,
                path: ["spec", "ref", reference.word()].map(str::to_owned).to_vec(),
                value: value.clone(),
            }),
            Field::Chart => unmarked.fields.push(yaml_setters::Field {
                setter,
                path: ["spec", "chart", "spec", "version"].map(str::to_owned).to_vec(),
                value: value.clone(),
            }),
            Field::Image(name) => {
                let (tag, digest) = tag_and_digest(value);
                unmarked.images.push(Image {
                    setter,
                    name: name.clone(),
                    tag: tag.to_owned(),
                    digest: digest.to_owned(),
                });
            }
        }
    }
    unmarked
}

/// Sets the values in the files below a folder. Pure.
fn edit(task: &Task, path: &str, files: &[(String, Vec<u8>)]) -> Result<Edited, Error> {
    let setters = task.setters();
    let mut texts: BTreeMap<&str, String> = BTreeMap::new();
    let mut edited = Edited::default();
    for (app, fields) in &task.apps {
        let unmarked = unmarked(app, fields, &task.namespace);
        // Files by field; those of markers count for all that the marker may mean.
        let mut found: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
        let mut marked = BTreeSet::new();
        for (file, content) in files {
            let content = texts
                .get(file.as_str())
                .map_or(content.as_slice(), |text| text.as_bytes());
            if !yaml_setters::may_have_markers(content, MARKER) && !unmarked.may_be_in(content) {
                continue;
            }
            let Ok(text) = std::str::from_utf8(content) else {
                continue;
            };
            let updated = match yaml_setters::update_with(text, MARKER, &setters, &unmarked) {
                Ok(updated) => updated,
                Err(error) => {
                    return Err(Error::File {
                        file: file.clone(),
                        line: error.line,
                        problem: error.problem,
                    });
                }
            };
            for one in &updated.markers {
                use yaml_setters::Outcome::{Changed, Misplaced, UnknownSetter, UpToDate};
                match one.outcome {
                    Changed | UpToDate if setters.contains_key(&one.setter) => {
                        marked.insert(one.setter.clone());
                    }
                    Changed | UpToDate => drop(found.entry(one.setter.clone()).or_default().insert(file)),
                    Misplaced(problem) if one.setter.is_empty() || setters.contains_key(&one.setter) => {
                        return Err(Error::File {
                            file: file.clone(),
                            line: one.line,
                            problem: problem.to_owned(),
                        });
                    }
                    // Those of other environments and pipelines.
                    UnknownSetter | Misplaced(_) => {}
                }
            }
            let changes = updated.changes.into_iter();
            edited
                .changes
                .extend(changes.map(|change| (file.clone(), change)));
            if let Some(text) = updated.text {
                texts.insert(file, text);
            }
        }
        for (field, value) in fields {
            let name = field.to_string();
            let named = format!("{}/{}: {name}", app.kind.as_str(), app.name);
            let mut names = task.names(app, field, value).into_iter().map(|(name, _)| name);
            let is_marked = names.clone().any(|name| marked.contains(&name));
            let marker = names.find(|name| setters.contains_key(name)).unwrap_or_default();
            let files = found
                .get(&name)
                .map(|files| files.iter().copied().collect::<Vec<_>>());
            match files.as_deref() {
                _ if is_marked => {}
                Some([_]) => {}
                Some(several) => {
                    return Err(Error::Ambiguous {
                        field: named,
                        files: several.join(", "),
                        marker,
                    });
                }
                None => {
                    return Err(Error::NotFound {
                        path: path.to_owned(),
                        field: named,
                        marker,
                    });
                }
            }
        }
    }
    let contents = texts.into_iter();
    let contents = contents.map(|(file, text)| (file.to_owned(), Some(text.into_bytes())));
    edited.contents = contents.collect();
    Ok(edited)
}

#[cfg(test)]
mod tests;
