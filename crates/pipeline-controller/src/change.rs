//! One change: the values of a release, set in the manifests of one target, committed and pushed.

use std::collections::{BTreeMap, BTreeSet};

use api::delivery::{AppKind, AppReference, Pipeline, Release};
use git_client::commit::Person;
use git_client::edit::Changes;
use git_client::pack::{self, Node, Pack};
use git_client::push::{self, Move};
use git_client::reference::{Fields, Reference};
use git_client::sparse::Sparse;
use git_client::{Checkout, Outcome};
use git_writer::branch::{self, Wanted};
use git_writer::commit::{Commit, Edit};
use git_writer::files::{below, is_yaml};
use git_writer::races;
use kube::ResourceExt as _;
use promotion::values::{Field, field, tag_and_digest};
use yaml_setters::{Image, Setters, Subject, Unmarked};

use crate::context::Context;
use crate::place::{self, Place};

/// Key of markers.
const MARKER: &str = "$promotion";
/// Author where the pipeline names none.
const AUTHOR: (&str, &str) = ("pipeline-controller", "pipeline-controller@windlass.dev");

/// Why no change was made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// There is no place for it.
    #[error(transparent)]
    Place(#[from] Box<place::Error>),
    /// The fetch.
    #[error("failed to fetch the branch '{branch}'")]
    Fetch {
        /// The branch.
        branch: String,
        /// The error.
        #[source]
        source: branch::Error,
    },
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
    /// The commit.
    #[error("failed to make the commit")]
    Commit(#[from] git_writer::commit::Error),
    /// The push.
    #[error("failed to push to the branch '{branch}'")]
    Push {
        /// The branch.
        branch: String,
        /// The error.
        #[source]
        source: push::Error,
    },
    /// Others were faster.
    #[error("the branch '{0}' was changed by others each of {max} times that a commit was made for it", max = races::MAX_TRIES)]
    Races(String),
    /// A blocking step was torn down.
    #[error("failed to finish the change")]
    Abandoned,
}

impl From<place::Error> for Error {
    fn from(error: place::Error) -> Self {
        Self::Place(Box::new(error))
    }
}

/// A release for a target.
#[derive(Clone)]
pub(crate) struct Task {
    /// `namespace:name` of the pipeline.
    pipeline: String,
    pub(crate) environment: String,
    /// Namespace of the applications.
    pub(crate) namespace: String,
    pub(crate) release: Release,
    /// Applications, with what they are given.
    apps: Vec<(AppReference, Vec<(Field, String)>)>,
    author: Person,
}

/// What was changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Done {
    /// The commit that has the values.
    pub(crate) commit: String,
    /// False if the files had them already.
    pub(crate) is_new: bool,
}

impl Task {
    /// A release for a target, as far as its applications have such fields.
    pub(crate) fn new(
        pipeline: &Pipeline,
        environment: &str,
        namespace: &str,
        release: &Release,
        context: &Context,
    ) -> Self {
        let apps = pipeline.spec.apps.iter().map(|app| {
            let key = controller_kit::ObjectKey::new(namespace, &*app.name);
            let has = context
                .app(app.kind, &key)
                .map(|facts| facts.fields)
                .unwrap_or_default();
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
            namespace: namespace.to_owned(),
            release: release.clone(),
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

    /// What markers of this environment begin with.
    fn marker(&self) -> String {
        format!("{}:{}", self.pipeline, self.environment)
    }

    /// The values that markers may name.
    fn setters(&self) -> Setters {
        let base = self.marker();
        let mut setters = Setters::new();
        let fields: Vec<_> = self.apps.iter().flat_map(|(_, fields)| fields).collect();
        for (field, value) in &fields {
            match field {
                Field::Chart => drop(setters.insert(format!("{base}:chart"), value.clone())),
                Field::Image(name) => {
                    let (tag, digest) = tag_and_digest(value);
                    let reference = match (tag, digest) {
                        ("", digest) => format!("{name}@{digest}"),
                        (tag, "") => format!("{name}:{tag}"),
                        (tag, digest) => format!("{name}:{tag}@{digest}"),
                    };
                    setters.insert(format!("{base}:{name}"), reference);
                    setters.insert(format!("{base}:{name}:tag"), tag.to_owned());
                    setters.insert(format!("{base}:{name}:digest"), digest.to_owned());
                }
            }
        }
        // As Weave's markers: the environment alone. It is the version of the chart, or the one value that there is.
        let chart = fields.iter().find(|(field, _)| *field == Field::Chart);
        let only = chart.or(fields.first().filter(|_| fields.len() == 1));
        if let Some((_, value)) = only {
            setters.insert(base, tag_and_digest(value).0.to_owned());
        }
        setters
    }

    fn message(&self, lines: &BTreeSet<String>) -> String {
        let Self {
            environment,
            namespace,
            release,
            ..
        } = self;
        let pipeline = self.pipeline.replace(':', "/");
        let lines: Vec<_> = lines.iter().map(String::as_str).collect();
        format!(
            "Promote release {} of {pipeline} to {environment}\n\nTarget: {namespace}\n{}\n\nPipeline: {pipeline}\nEnvironment: \
             {environment}\nRelease: {}\n",
            release.number,
            lines.join("\n"),
            release.digest
        )
    }
}

/// Makes the change in all repositories that have manifests of the target.
pub(crate) async fn carry_out(task: &Task, pipeline: &Pipeline, context: &Context) -> Result<Done, Error> {
    let mut places: BTreeMap<Place, Vec<usize>> = BTreeMap::new();
    for (at, (app, fields)) in task.apps.iter().enumerate() {
        if !fields.is_empty() {
            let place = place::find(pipeline, app, &task.namespace, context)?;
            places.entry(place).or_default().push(at);
        }
    }
    let mut done = None;
    let own = pipeline.metadata.namespace.as_deref().unwrap_or_default();
    for (place, apps) in places {
        let repository = place::open(&place.repository, own, context).await?;
        let here = Task {
            apps: apps.iter().map(|at| task.apps[*at].clone()).collect(),
            ..task.clone()
        };
        let one = in_repository(here, &place, &repository, context).await?;
        let is_new = one.is_new || done.is_some_and(|done: Done| done.is_new);
        done = Some(Done { is_new, ..one });
    }
    done.ok_or_else(|| {
        let problem = "none of its applications has a field that the release carries";
        Error::File {
            file: task.namespace.clone(),
            line: 0,
            problem: problem.to_owned(),
        }
    })
}

async fn in_repository(
    task: Task,
    place: &Place,
    repository: &place::Repository,
    context: &Context,
) -> Result<Done, Error> {
    let branch = &repository.branch;
    let remotes = &repository.remotes;
    let _turn = context.writers.turn(remotes.url.as_str(), branch).await;
    for attempt in 1..=races::MAX_TRIES {
        let part: Vec<_> = Some(place.path.clone())
            .filter(|path| !path.is_empty())
            .into_iter()
            .collect();
        let wanted = Wanted {
            reference: Reference::from_fields(Fields {
                branch: Some(branch),
                ..Fields::default()
            }),
            sparse: (!part.is_empty()).then(|| Sparse::new(&part).files(is_yaml)),
            unless_revision: None,
            over: None,
        };
        let fetched = branch::fetch(remotes, repository.timeout, wanted, &context.workshop).await;
        let (outcome, stop) = fetched.map_err(|source| Error::Fetch {
            branch: branch.clone(),
            source,
        })?;
        let Outcome::Fetched(checkout) = outcome else {
            return Err(Error::Abandoned); // it is asked for without a revision that is known
        };
        let Checkout { resolved, pack, .. } = *checkout;
        let base = resolved.commit;
        let (task, path) = (task.clone(), place.path.clone());
        let waiting = stop.when_dropped();
        let making = tokio::task::spawn_blocking(move || make(&task, &path, base, &pack));
        let made = making.await.map_err(|_| Error::Abandoned)??;
        waiting.disarm();
        let Some(commit) = made else {
            return Ok(Done {
                commit: base.to_string(),
                is_new: false,
            });
        };
        let step = Move {
            reference: format!("refs/heads/{branch}"),
            from: Some(base),
            to: Some(commit.id),
        };
        match branch::push(remotes, repository.timeout, step, commit.objects, &[]).await {
            Ok(()) => {
                return Ok(Done {
                    commit: commit.id.to_string(),
                    is_new: true,
                });
            }
            Err(error) if error.is_moved() => {
                tracing::info!("branch '{branch}' was changed in the meantime, attempt {attempt}");
                races::pause().await;
            }
            Err(source) => {
                return Err(Error::Push {
                    branch: branch.clone(),
                    source,
                });
            }
        }
    }
    Err(Error::Races(branch.clone()))
}

/// Makes the commit; None if the files have all values.
fn make(task: &Task, path: &str, base: git_client::ObjectId, pack: &Pack) -> Result<Option<Commit>, Error> {
    let (contents, lines) = edit(task, path, &yaml_files(path, pack)?)?;
    if contents.is_empty() {
        return Ok(None);
    }
    let edit = Edit {
        parent: base,
        contents,
        author: task.author.clone(),
        message: task.message(&lines),
        key: None,
    };
    Ok(Some(edit.write(pack)?))
}

/// The files of YAML below a folder.
fn yaml_files(folder: &str, pack: &Pack) -> Result<Vec<(String, Vec<u8>)>, Error> {
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
    let mut files = Vec::new();
    for (path, id) in found {
        let mut content = Vec::new();
        // A file that is too large holds no manifest that people write.
        if pack
            .read_blob(id, yaml_setters::MAX_FILE as u64, &mut content)
            .is_ok()
        {
            files.push((path, content));
        }
    }
    Ok(files)
}

/// What is set without a marker in the manifest of one application. Names of setters are those of the fields.
fn unmarked(app: &AppReference, fields: &[(Field, String)], namespace: &str) -> Unmarked {
    let mut unmarked = Unmarked {
        values: app.kind == AppKind::HelmRelease,
        kustomizations: app.kind == AppKind::Kustomization,
        object: Some(Subject {
            group: match app.kind {
                AppKind::HelmRelease => "helm.toolkit.fluxcd.io".to_owned(),
                AppKind::Kustomization => "kustomize.toolkit.fluxcd.io".to_owned(),
            },
            kind: app.kind.as_str().to_owned(),
            name: app.name.clone(),
            namespace: namespace.to_owned(),
        }),
        ..Unmarked::default()
    };
    for (field, value) in fields {
        let setter = field.to_string();
        match field {
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

/// Sets the values in the files below a folder. Returns the files that change, and a line for each change. Pure.
fn edit(task: &Task, path: &str, files: &[(String, Vec<u8>)]) -> Result<(Changes, BTreeSet<String>), Error> {
    let setters = task.setters();
    let marker = task.marker();
    let mut texts: BTreeMap<&str, String> = BTreeMap::new();
    let mut lines = BTreeSet::new();
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
                    Misplaced(problem) => {
                        return Err(Error::File {
                            file: file.clone(),
                            line: one.line,
                            problem: problem.to_owned(),
                        });
                    }
                    // Those of other environments and pipelines.
                    UnknownSetter => {}
                }
            }
            let said = updated.changes.iter();
            lines.extend(said.map(|change| {
                let object = &change.object;
                format!(
                    "- {file}: {}/{}: {} -> {}",
                    object.kind, object.name, change.old, change.new
                )
            }));
            if let Some(text) = updated.text {
                texts.insert(file, text);
            }
        }
        for (field, _) in fields {
            let name = field.to_string();
            let is_marked = match field {
                Field::Chart => marked.contains(&marker) || marked.contains(&format!("{marker}:chart")),
                Field::Image(image) => {
                    let base = format!("{marker}:{image}");
                    let has = |end: &str| marked.contains(&format!("{base}{end}"));
                    has("")
                        || has(":tag")
                        || has(":digest")
                        || (fields.len() == 1 && marked.contains(&marker))
                }
            };
            let files = found
                .get(&name)
                .map(|files| files.iter().copied().collect::<Vec<_>>());
            let named = format!("{}/{}: {name}", app.kind.as_str(), app.name);
            let marker = match field {
                Field::Chart => marker.clone(),
                Field::Image(image) => format!("{marker}:{image}:tag"),
            };
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
    Ok((contents.collect(), lines))
}

#[cfg(test)]
mod tests;
