//! What a change alters in the objects that Kustomizations build: both states of the files are built, and compared field by
//! field.
//!
//! Nothing of the cluster is read but the specs of Kustomizations that the ChangePolicy names, in its own namespace and of the
//! automation's source. Nothing is decrypted and no variable is substituted, so what is shown can be read in the repository.

use std::collections::BTreeMap;
use std::time::Duration;

use api::kustomize::{Kustomization, KustomizationSpec, SourceKind};
use controller_kit::ObjectKey;
use flux_spec::build;
use git_client::edit::{Changes, Content};
use git_client::pack::{Node, Pack};
use kube::Api;
use kube_apply::changes::{self, FieldChanges};
use kustomize_build::{DirEntry, FileKind, FileSystem, FsError, MemoryFs, OverlayFs};
use manifest::{Object, ObjectId, is_object_name};
use serde_json::Value;
use transport::stop::Stop;

use super::words::code;
use super::work::Work;
use crate::automation::target;

/// All builds together may take so long.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Size limit of the report on one Kustomization, in bytes.
const MAX_REPORT: usize = 4096;
/// Bytes of one file.
const MAX_FILE: u64 = 16 << 20;

/// The files before the change, and what it makes of them.
pub(super) struct Trees {
    pub(super) base: Pack,
    pub(super) changes: Changes,
}

/// What changes in the objects of each Kustomization, as text of the description.
pub(super) async fn find(trees: Trees, work: &Work<'_>) -> Vec<String> {
    let deadline = tokio::time::Instant::now() + TIMEOUT;
    let stop = Stop::default();
    let _stopping = stop.when_dropped();
    let mut trees = Some(Trees {
        base: trees.base.stopped_by(stop.clone()),
        ..trees
    });
    let mut found = Vec::new();
    for name in &work.spec.kustomizations {
        let one = async {
            let spec = spec(name, work).await?;
            let taken = trees.take().ok_or("there was no time for it")?;
            let building = tokio::task::spawn_blocking(move || (taken.compare(&spec), taken));
            let (compared, taken) = building.await.map_err(|_| "the build was abandoned")?;
            trees = Some(taken);
            compared
        };
        let compared = tokio::time::timeout_at(deadline, one).await;
        found.push(
            match compared.unwrap_or_else(|_| Err("it takes too long".into())) {
                Ok(report) if report.is_empty() => {
                    format!("\nNo object of Kustomization {} changes.\n", code(name))
                }
                Ok(report) => format!(
                    "\nIn the objects of Kustomization {}:\n\n{}",
                    code(name),
                    fenced(&report)
                ),
                Err(Problem(problem)) => {
                    let name = code(name);
                    format!("\nThe objects of Kustomization {name} are not compared: {problem}.\n")
                }
            },
        );
    }
    found
}

/// Why objects are not compared, as Markdown.
#[derive(Debug)]
struct Problem(String);

impl From<&str> for Problem {
    fn from(problem: &str) -> Self {
        Self(problem.to_owned())
    }
}

/// The spec of a Kustomization beside the automation, if it has the same source.
async fn spec(name: &str, work: &Work<'_>) -> Result<KustomizationSpec, Problem> {
    let own = work.object.metadata.namespace.as_deref().unwrap_or_default();
    if !is_object_name(name) {
        return Err("this is not the name of a Kustomization".into());
    }
    let all: Api<Kustomization> = Api::namespaced(work.context.client.clone(), own);
    let found = all.get_opt(name).await.map_err(|error| {
        tracing::debug!(%error, "the Kustomization {own}/{name} cannot be read");
        Problem("it cannot be read".to_owned())
    })?;
    let spec = found.ok_or("it does not exist")?.spec;
    let source = &spec.source_ref;
    let key = ObjectKey::new(source.namespace.as_deref().unwrap_or(own), &*source.name);
    if source.kind != SourceKind::GitRepository || key != target::source_of(work.object) {
        return Err("its source is not the GitRepository of the automation".into());
    }
    Ok(spec)
}

impl Trees {
    /// Builds both states and says what differs.
    fn compare(&self, spec: &KustomizationSpec) -> Result<String, Problem> {
        let folder = build::path::clamp(spec.path.as_deref().unwrap_or_default());
        let files = Files(&self.base);
        let mut added = MemoryFs::default();
        for (path, content) in &self.changes {
            if let Some(Content::Bytes(content)) = content {
                added.insert(path, content.clone());
            }
        }
        let objects = |fs: &dyn FileSystem, when| {
            build::build(fs, &folder, spec).map_err(|error| {
                let problem = code(&error_chain::chain(&error));
                Problem(format!("{when}, they cannot be built: {problem}"))
            })
        };
        let before = objects(&files, "before the change")?;
        let after = objects(&OverlayFs::new(&files, added), "after the change")?;
        Ok(differences(before, after))
    }
}

/// Compares two lists of objects. Pure.
fn differences(before: Vec<Object>, after: Vec<Object>) -> String {
    let by_id = |objects: Vec<Object>| -> BTreeMap<ObjectId, Value> {
        objects
            .into_iter()
            .map(|object| (object.id(), object.into_value()))
            .collect()
    };
    let (mut before, after) = (by_id(before), by_id(after));
    let mut lists = String::new();
    let mut compared = Vec::new();
    for (id, new) in &after {
        match before.remove(id) {
            Some(old) if old == *new => {}
            Some(old) => compared.push((id.to_string(), FieldChanges::between(&old, new, "", false))),
            None => lists.push_str(&format!("{id}: new\n")),
        }
    }
    for id in before.keys() {
        lists.push_str(&format!("{id}: gone\n"));
    }
    lists.truncate(lists.floor_char_boundary(MAX_REPORT / 2));
    let compared = compared.iter().map(|(name, changes)| (name.clone(), changes));
    let report = changes::report(compared, MAX_REPORT - lists.len());
    [lists.trim_end(), &report]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join("\n")
}

/// Text that is shown as it is: nothing in it ends the fence.
fn fenced(text: &str) -> String {
    let plain = |c: char| match c {
        '\n' => '\n',
        '`' => '\'',
        c if c.is_control() => '?',
        c => c,
    };
    format!("```\n{}\n```\n", text.chars().map(plain).collect::<String>())
}

/// The files of a commit. Links and submodules lead nowhere.
struct Files<'a>(&'a Pack);

impl FileSystem for Files<'_> {
    fn read(&self, path: &str) -> Result<Vec<u8>, FsError> {
        let Some((Node::File { .. }, id)) = self.0.entry(path).map_err(failed)? else {
            return Err(FsError::NotFound);
        };
        let mut content = Vec::new();
        self.0.read_blob(id, MAX_FILE, &mut content).map_err(failed)?;
        Ok(content)
    }

    fn kind(&self, path: &str) -> Result<Option<FileKind>, FsError> {
        if path.is_empty() {
            return Ok(Some(FileKind::Directory));
        }
        let entry = self.0.entry(path).map_err(failed)?;
        Ok(entry.and_then(|(node, _)| kind(node)))
    }

    fn list(&self, path: &str) -> Result<Vec<DirEntry>, FsError> {
        let entries = self.0.list(path).map_err(failed)?.ok_or(FsError::NotFound)?;
        let entries = entries.into_iter().filter_map(|(name, node)| {
            let kind = kind(node)?;
            Some(DirEntry { name, kind })
        });
        let mut entries: Vec<_> = entries.collect();
        entries.sort();
        Ok(entries)
    }
}

fn kind(node: Node) -> Option<FileKind> {
    match node {
        Node::File { .. } => Some(FileKind::File),
        Node::Directory => Some(FileKind::Directory),
        Node::Symlink | Node::Submodule => None,
    }
}

fn failed(error: git_client::pack::Error) -> FsError {
    FsError::Io(error_chain::chain(&error))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> Object {
        let Value::Object(value) = value else {
            panic!("an object");
        };
        Object::new(value, None)
    }

    fn deployment(image: &str) -> Object {
        object(json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"template": {"spec": {"containers": [{"name": "web", "image": image}]}}},
        }))
    }

    fn secret(value: &str) -> Object {
        object(json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "web", "namespace": "shop"},
            "stringData": {"password": value},
        }))
    }

    #[test]
    fn fields_that_change_are_told_and_secrets_are_not() {
        let (before, after) = (
            vec![deployment("web:1"), secret("hunter1")],
            vec![deployment("web:2"), secret("hunter2")],
        );
        let report = differences(before, after);
        assert!(
            report.contains("containers[name=web].image: \"web:1\" → \"web:2\""),
            "{report}"
        );
        assert!(
            report.contains("Secret") && !report.contains("hunter"),
            "{report}"
        );
        assert_eq!(
            differences(vec![deployment("web:1")], vec![deployment("web:1")]),
            ""
        );
    }

    #[test]
    fn objects_that_come_and_go_are_listed() {
        let report = differences(vec![deployment("web:1")], vec![secret("a")]);
        let lines: Vec<_> = report.lines().collect();
        assert_eq!(lines.len(), 2, "{report}");
        assert!(
            lines[0].contains("Secret") && lines[0].ends_with(": new"),
            "{report}"
        );
        assert!(
            lines[1].contains("Deployment") && lines[1].ends_with(": gone"),
            "{report}"
        );
    }

    #[test]
    fn a_fence_is_not_left() {
        let text = fenced("a\n```\n@everyone\r\u{1b}[31m");
        assert_eq!(text, "```\na\n'''\n@everyone??[31m\n```\n");
    }

    #[test]
    fn a_report_is_bounded() {
        let named = |name: String| {
            object(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}))
        };
        let many = (0..1000).map(|index| named(format!("{index}-{}", "é".repeat(100))));
        assert!(differences(Vec::new(), many.collect()).len() <= MAX_REPORT);
    }
}
