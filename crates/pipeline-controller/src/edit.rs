//! The values of a release, set in the manifests of one target. Pure but for the pack.

use std::sync::Arc;

use api::delivery::{Author, Pipeline, Release};
use change_policy::mark::Change;
use cluster_access::targets::Target as Cluster;
use controller_kit::ObjectKey;
use forge::markdown::code;
use git_client::commit::Person;
use git_client::edit::Changes;
use git_client::pack::{self, Node, Pack};
use git_writer::files::below;
use jiff::Timestamp;
use promotion::manifests::{self, Edited, Wanted};
use yaml_setters::is_yaml;

use crate::observe::Looked;
use crate::proposal::{bounded, branch_name};

/// Bytes of files that are held at once.
const MAX_FILES: usize = 32 << 20;
/// Author where the pipeline names none.
const AUTHOR: (&str, &str) = ("pipeline-controller", "pipeline-controller@windlass.dev");

/// What is changed in the files of a commit.
#[derive(Default)]
pub(crate) struct Changed {
    /// Texts that are written, and the values that are set in them.
    pub(crate) edited: Edited,
    /// Files that become what another commit has.
    pub(crate) restored: Changes,
}

impl From<Edited> for Changed {
    fn from(edited: Edited) -> Self {
        Self {
            edited,
            restored: Changes::new(),
        }
    }
}

impl Changed {
    pub(crate) fn is_empty(&self) -> bool {
        self.edited.contents.is_empty() && self.restored.is_empty()
    }

    fn paths(&self) -> impl Iterator<Item = &String> {
        self.edited.contents.keys().chain(self.restored.keys())
    }

    /// The changed files, as a commit has them.
    pub(crate) fn contents(self) -> Changes {
        let texts = self.edited.contents.into_iter();
        let mut all = self.restored;
        all.extend(texts.map(|(path, text)| (path, Some(text.into_bytes().into()))));
        all
    }
}

/// Why the values cannot be set.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The files.
    #[error("failed to read the files")]
    Read(#[from] pack::Error),
    /// Too much would be held in memory.
    #[error("the files below '{0}' that name the applications are larger than {MAX_FILES} bytes together")]
    TooLarge(String),
    /// There is nothing to set.
    #[error("none of the applications has a field that the release carries")]
    Nothing,
    /// The values cannot be set in them.
    #[error(transparent)]
    Manifests(#[from] manifests::Error),
    /// They cannot be changed as a person asked for it.
    #[error(transparent)]
    Asked(#[from] manifest_edit::Error),
    /// A change cannot be taken back.
    #[error(transparent)]
    Revert(#[from] merge_preview::RevertError),
    /// A commit cannot be compared.
    #[error(transparent)]
    Tree(#[from] merge_preview::Error),
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
    /// What is set in its manifests.
    pub(crate) wanted: Wanted,
    /// What the target is called.
    pub(crate) target: String,
    /// Their cluster, if it is another one.
    pub(crate) cluster: Option<Arc<Cluster>>,
    pub(crate) release: Release,
    pub(crate) asked: Option<Asked>,
    /// How it is proposed already.
    pub(crate) proposed: Option<String>,
    /// The Kustomizations that the labels of the applications name.
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
        let fields = |at: usize| facts(at).map(|facts| &facts.fields);
        let place = (environment, looked.namespace.as_str());
        Self {
            wanted: Wanted::new(pipeline, place, release, fields),
            target: looked.name.clone(),
            cluster: looked.cluster.clone(),
            release: release.clone(),
            asked,
            proposed: None,
            owners: (0..pipeline.apps().len())
                .map(|at| facts(at).and_then(|facts| facts.owner.clone()))
                .collect(),
            author: author(pipeline.spec.author.as_ref()),
        }
    }

    /// The same for some of the applications.
    pub(crate) fn part(&self, apps: &[usize]) -> Self {
        Self {
            wanted: Wanted {
                apps: apps.iter().map(|at| self.wanted.apps[*at].clone()).collect(),
                ..self.wanted.clone()
            },
            owners: apps.iter().map(|at| self.owners[*at].clone()).collect(),
            ..self.clone()
        }
    }

    /// What a commit and a pull request say first.
    pub(crate) fn title(&self) -> String {
        let (pipeline, environment, number) = (
            self.wanted.pipeline_name(),
            &self.wanted.environment,
            self.release.number,
        );
        match &self.asked {
            Some(asked) if asked.is_back => {
                format!("Roll back {pipeline} in {environment} to release {number}")
            }
            _ => format!("Promote release {number} of {pipeline} to {environment}"),
        }
    }

    /// The branch of its pull request.
    pub(crate) fn branch(&self) -> String {
        let pipeline = self.wanted.pipeline_name().replace('/', "-");
        let (environment, target) = (&self.wanted.environment, self.target.replace('/', "-"));
        branch_name(format!("{pipeline}-{environment}-{target}"))
    }

    /// The description of its pull request. Texts of others stand in code spans.
    pub(crate) fn body(&self, edited: &Edited) -> String {
        let mut text = format!(
            "Release {} of the pipeline {} goes into {} ({}).\n\n",
            self.release.number,
            code(&self.wanted.pipeline_name()),
            code(&self.wanted.environment),
            code(&self.target)
        );
        if let Some(asked) = &self.asked {
            text.push_str(&format!("Asked for by {}.\n\n", code(&asked.by)));
        }
        for line in edited.lines() {
            text.push_str(&format!("- {}\n", code(&line)));
        }
        text.push_str(
            "\nWhile it is open, this pull request is kept up to date. Close it to decline the release here.\n",
        );
        bounded(text)
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
        let pipeline = self.wanted.pipeline_name();
        let lines: Vec<_> = edited.lines().iter().map(|line| format!("- {line}")).collect();
        format!(
            "{}\n\n{}Targets: {}\n{}\n\nPipeline: {pipeline}\nEnvironment: {}\nRelease: {}\n",
            self.title(),
            self.why(),
            targets.join(", "),
            lines.join("\n"),
            self.wanted.environment,
            self.release.digest
        )
    }
}

/// The author of commits.
pub(crate) fn author(named: Option<&Author>) -> Person {
    match named {
        Some(Author { name, email }) => Person {
            name: match name {
                Some(name) => name.clone(),
                None => email.split('@').next().unwrap_or_default().to_owned(),
            },
            email: email.clone(),
        },
        None => Person {
            name: AUTHOR.0.to_owned(),
            email: AUTHOR.1.to_owned(),
        },
    }
}

/// What identifies a promotion. What was asked for is a change of its own: it may be the same as one that was merged before.
pub(crate) fn change(edited: &Edited, asked: Option<&Asked>) -> Change {
    let parts = edited.changes.iter().flat_map(|(file, change)| {
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
    Change::new(parts.map(String::as_str).chain(asked.as_deref()))
}

/// What identifies the files that a change is made over; None if nothing changes.
pub(crate) fn base(changed: &Changed, pack: &Pack) -> Result<Option<Change>, pack::Error> {
    if changed.is_empty() {
        return Ok(None);
    }
    let mut below = Vec::new();
    for path in changed.paths() {
        below.push(path.clone());
        below.push(
            pack.entry(path)?
                .map(|(_, id)| id.to_string())
                .unwrap_or_default(),
        );
    }
    Ok(Some(Change::new(below.iter().map(String::as_str))))
}

/// The files of YAML below a folder that may have to be changed.
fn yaml_files(wanted: &Wanted, folder: &str, pack: &Pack) -> Result<Vec<(String, Vec<u8>)>, Error> {
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
            || !wanted.may_be_in(&content)
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
pub(crate) fn edit_below(wanted: &Wanted, path: &str, pack: &Pack, before: &Edited) -> Result<Edited, Error> {
    let mut files = yaml_files(wanted, path, pack)?;
    for (file, content) in &mut files {
        if let Some(changed) = before.contents.get(file) {
            *content = changed.clone().into_bytes();
        }
    }
    Ok(wanted.edit(path, &files)?)
}

#[cfg(test)]
mod tests;
