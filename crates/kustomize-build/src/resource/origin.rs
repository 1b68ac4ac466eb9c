//! Where a resource comes from, in the form of `buildMetadata`'s annotations.

use serde_json::Value;

use crate::fetch::Repository;
use crate::path::join_for_message;

/// A file, or the generator or transformer that a file configures.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BuildOrigin {
    pub(crate) path: String,
    /// The repository that was fetched, and the reference in it.
    pub(crate) repository: String,
    pub(crate) reference: String,
    pub(crate) configured_in: String,
    pub(crate) api_version: String,
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) namespace: String,
}

impl BuildOrigin {
    /// Returns the origin of something below this path, or of a repository that is named there.
    pub(crate) fn append(&self, path: &str) -> Self {
        // kustomize reads the folder from where the clone will be, and finds this name when there is no folder.
        const NO_FOLDER: &str = "notCloned";
        if let Some(repository) = Repository::parse(path) {
            let folder = match repository.path() {
                "" => NO_FOLDER,
                folder => folder,
            };
            return Self {
                repository: repository.clone_url(),
                reference: repository.reference().to_owned(),
                ..self.at(join_for_message("", folder))
            };
        }
        let below = path.trim_start_matches('/');
        let joined = if self.path.is_empty() {
            join_for_message("", path)
        } else {
            join_for_message(&self.path, below)
        };
        self.at(joined)
    }

    fn at(&self, path: String) -> Self {
        Self {
            path: if path == "." { String::new() } else { path },
            ..self.clone()
        }
    }

    /// Returns the origin of what a kustomization file itself configures.
    pub(crate) fn of_field(&self, file_name: &str, kind: &str) -> Self {
        Self {
            configured_in: self.append(file_name).path,
            repository: self.repository.clone(),
            reference: self.reference.clone(),
            api_version: "builtin".to_owned(),
            kind: kind.to_owned(),
            ..Self::default()
        }
    }

    fn fields(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut field = |name: &str, value: &str| {
            if !value.is_empty() {
                lines.push(format!("{name}: {}", scalar(value)));
            }
        };
        field("path", &self.path);
        field("repo", &self.repository);
        field("ref", &self.reference);
        field("configuredIn", &self.configured_in);
        let by = [
            ("apiVersion", &self.api_version),
            ("kind", &self.kind),
            ("name", &self.name),
            ("namespace", &self.namespace),
        ];
        if by.iter().any(|(_, value)| !value.is_empty()) {
            lines.push("configuredBy:".to_owned());
            let by = by.iter().filter(|(_, value)| !value.is_empty());
            lines.extend(by.map(|(name, value)| format!("  {name}: {}", scalar(value))));
        }
        lines
    }

    /// Writes the origin annotation's value.
    pub(crate) fn to_annotation(&self) -> String {
        let fields = self.fields();
        if fields.is_empty() {
            "{}\n".to_owned()
        } else {
            fields.join("\n") + "\n"
        }
    }

    /// Writes the transformations annotation's value.
    pub(crate) fn list_to_annotation(list: &[Self]) -> String {
        let mut text = String::new();
        for origin in list {
            for (index, line) in origin.fields().iter().enumerate() {
                text.push_str(if index == 0 { "- " } else { "  " });
                text.push_str(line);
                text.push('\n');
            }
        }
        text
    }
}

/// Quotes what YAML would not read as the same text (`name: "n"`).
fn scalar(text: &str) -> String {
    let written = manifest::yaml::write(&Value::from(text)).unwrap_or_default();
    written.trim_end().to_owned()
}
