//! The values of a release, set in the manifests of one target. Pure.

use std::collections::{BTreeMap, BTreeSet};

use api::delivery::{AppKind, AppReference, Pipeline, Release};
use yaml_setters::{Image, Setters, Subject, Unmarked};

use crate::values::{Field, Fields, field, tag_and_digest};

/// Key of markers.
const MARKER: &str = "$promotion";

/// Why the values cannot be set.
#[derive(Debug, thiserror::Error)]
pub enum Error {
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
}

/// What is set in the manifests of a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// `namespace:name` of the pipeline.
    pub pipeline: String,
    /// The environment.
    pub environment: String,
    /// Namespace of the applications.
    pub namespace: String,
    /// Applications, with what they are given.
    pub apps: Vec<(AppReference, Vec<(Field, String)>)>,
}

impl Wanted {
    /// A release for a target, as far as its applications have such fields; `has` gives those of an application by its index.
    pub fn new<'a>(
        pipeline: &Pipeline,
        (environment, namespace): (&str, &str),
        release: &Release,
        has: impl Fn(usize) -> Option<&'a Fields>,
    ) -> Self {
        let nothing = Fields::new();
        let apps = pipeline.apps().iter().enumerate().map(|(at, app)| {
            let has = has(at).unwrap_or(&nothing);
            let values = release.values.iter();
            let values = values.filter_map(|(key, value)| Some((field(app, key)?, value.clone())));
            let values = values.filter(|(field, _)| has.contains_key(field));
            (app.clone(), values.collect())
        });
        let metadata = &pipeline.metadata;
        Self {
            pipeline: format!(
                "{}:{}",
                metadata.namespace.as_deref().unwrap_or_default(),
                metadata.name.as_deref().unwrap_or_default()
            ),
            environment: environment.to_owned(),
            namespace: namespace.to_owned(),
            apps: apps.collect(),
        }
    }

    /// Returns whether a file may have to be changed: cheap, before it is read as YAML.
    pub fn may_be_in(&self, content: &[u8]) -> bool {
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
            Field::Path => {
                name(base.clone(), value);
                name(format!("{of_app}:path"), value);
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

    /// The pipeline, as `namespace/name`.
    pub fn pipeline_name(&self) -> String {
        self.pipeline.replace(':', "/")
    }

    /// Sets the values in the files below a folder, given with their contents.
    ///
    /// # Errors
    /// When a value has no place, or several, or a file that has one cannot be changed.
    pub fn edit(&self, path: &str, files: &[(String, Vec<u8>)]) -> Result<Edited, Error> {
        let setters = self.setters();
        let mut texts: BTreeMap<&str, String> = BTreeMap::new();
        let mut edited = Edited::default();
        for (app, fields) in &self.apps {
            let unmarked = unmarked(app, fields, &self.namespace);
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
                let mut names = self.names(app, field, value).into_iter().map(|(name, _)| name);
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
        edited.contents = contents.map(|(file, text)| (file.to_owned(), text)).collect();
        Ok(edited)
    }
}

/// What is to be changed.
#[derive(Debug, Clone, Default)]
pub struct Edited {
    /// New contents, by path.
    pub contents: BTreeMap<String, String>,
    /// What changes, with the file that it is in.
    pub changes: Vec<(String, yaml_setters::Change)>,
}

impl Edited {
    /// Adds what is changed for another target.
    pub fn add(&mut self, other: Self) {
        self.contents.extend(other.contents);
        self.changes.extend(other.changes);
    }

    /// A line for each change. Values and paths are a tenant's: none makes two lines of one.
    pub fn lines(&self) -> BTreeSet<String> {
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
            Field::Path => unmarked.fields.push(yaml_setters::Field {
                setter,
                path: ["spec", "path"].map(str::to_owned).to_vec(),
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

#[cfg(test)]
mod tests;
