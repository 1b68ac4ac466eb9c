//! What a ChangeRequest proposes, and what its commit and its pull request say. Pure but for the pack.

use api::delivery::{ChangeRequest, FileChange};
use change_policy::mark;
use forge::markdown::code;
use git_client::commit::Person;
use git_client::pack::{Node, Pack};
use promotion::manifests::Edited;

use crate::edit::{self, Changed, author};
use crate::proposal::{Proposed, bounded, branch_name};
use crate::site::Part;

use super::revert::Revert;

/// Characters of a UID in the name of the branch: a request that is made again under its name is another one.
const UID: usize = 8;
/// Files that are listed one by one.
const MAX_LINES: usize = 100;

/// The change of one request.
pub(super) struct Request {
    namespace: String,
    name: String,
    uid: String,
    /// Path of the Kustomization.
    folder: String,
    title: String,
    reason: Option<String>,
    by: Option<String>,
    author: Person,
    files: Vec<FileChange>,
    /// What it takes back, if that is what it asks for.
    pub(super) revert: Option<Revert>,
}

impl Request {
    pub(super) fn new(object: &ChangeRequest, folder: String) -> Self {
        let (metadata, spec) = (&object.metadata, &object.spec);
        Self {
            namespace: metadata.namespace.clone().unwrap_or_default(),
            name: metadata.name.clone().unwrap_or_default(),
            uid: metadata.uid.clone().unwrap_or_default(),
            folder,
            title: one_line(&spec.title),
            reason: spec.reason.clone().filter(|reason| !reason.trim().is_empty()),
            by: spec.requested_by.clone().filter(|by| !by.is_empty()),
            author: author(spec.author.as_ref()),
            files: spec.files.clone(),
            revert: None,
        }
    }

    /// Path of the Kustomization.
    pub(super) fn folder(&self) -> &str {
        &self.folder
    }

    /// The files that are looked at.
    pub(super) fn part(&self) -> Part {
        if self.files.is_empty() {
            return Part::Kustomizations;
        }
        let of_files = self.files.iter().map(|file| {
            let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
            folder.to_owned()
        });
        Part::Folders(of_files.chain([self.folder.clone()]).collect())
    }

    /// A line for each file.
    fn lines(&self, changed: &Changed) -> Vec<String> {
        let restored = changed.restored.iter().map(|(path, content)| {
            let what = if content.is_some() { "as it was" } else { "deleted" };
            format!("{}: {what}", one_line(path))
        });
        let mut lines: Vec<String> = restored.take(MAX_LINES).collect();
        let more = changed.restored.len() - lines.len();
        if more > 0 {
            lines.push(format!("and {more} more"));
        }
        lines.extend(self.files.iter().map(|file| match &file.object {
            Some(object) => format!(
                "{}: {}/{}",
                one_line(&file.path),
                object.kind,
                one_line(&object.name)
            ),
            None => format!("{}: new", one_line(&file.path)),
        }));
        lines
    }
}

impl Proposed for Request {
    fn branch(&self) -> String {
        let uid: String = self.uid.chars().take(UID).collect();
        branch_name(format!("change-{uid}-{}-{}", self.namespace, self.name))
    }

    fn author(&self) -> Person {
        self.author.clone()
    }

    fn edit(&self, pack: &Pack) -> Result<Changed, edit::Error> {
        if let Some(revert) = &self.revert {
            return revert.edit(pack);
        }
        let read = |path: &str| read(pack, path);
        let contents = manifest_edit::edit(&self.folder, &self.files, read)?;
        let edited = Edited {
            contents,
            changes: Vec::new(),
        };
        Ok(edited.into())
    }

    fn change(&self, _: &Changed) -> mark::Change {
        // The spec of a request never changes.
        mark::Change::new([&*self.uid])
    }

    fn title(&self) -> String {
        self.title.clone()
    }

    fn message(&self, changed: &Changed) -> String {
        let reason = self
            .reason
            .as_ref()
            .map(|reason| format!("{}\n\n", reason.trim()));
        let lines = self.lines(changed).into_iter();
        let lines: Vec<_> = lines.map(|line| format!("- {line}")).collect();
        let by = self
            .by
            .as_ref()
            .map(|by| format!("Requested-by: {}\n", one_line(by)));
        format!(
            "{}\n\n{}{}\n\n{}Change-request: {}/{}\n",
            self.title,
            reason.unwrap_or_default(),
            lines.join("\n"),
            by.unwrap_or_default(),
            self.namespace,
            self.name
        )
    }

    fn body(&self, changed: &Changed) -> String {
        let mut text = match &self.by {
            Some(by) => format!("{} asks for this change.\n\n", code(by)),
            None => String::new(),
        };
        if let Some(reason) = &self.reason {
            // Inside a fence, text is not Markdown, and mentions no one.
            text.push_str(&format!(
                "```text\n{}\n```\n\n",
                reason.trim().replace("```", "'''")
            ));
        }
        if let Some(revert) = &self.revert {
            text.push_str(&revert.text());
        }
        for line in self.lines(changed) {
            text.push_str(&format!("- {}\n", code(&line)));
        }
        let name = code(&format!("{}/{}", self.namespace, self.name));
        text.push_str(&format!(
            "\nProposed for the ChangeRequest {name}. While it is open, this pull request is kept up to date with its branch. Close it \
             to decline the change.\n"
        ));
        bounded(text)
    }

    fn may_merge(&self) -> bool {
        false // who asks for a change is not who agrees to it
    }
}

/// The text of a file; None if there is none.
fn read(pack: &Pack, path: &str) -> Result<Option<String>, String> {
    let failed = |error| error_chain::chain(&error);
    let Some((kind, id)) = pack.entry(path).map_err(failed)? else {
        return Ok(None);
    };
    if !matches!(kind, Node::File { .. }) {
        return Err(format!("{path} is not a file"));
    }
    let mut content = Vec::new();
    let limit = yaml_setters::MAX_FILE as u64;
    pack.read_blob(id, limit, &mut content).map_err(failed)?;
    let text = String::from_utf8(content);
    text.map(Some).map_err(|_| format!("{path} is not text"))
}

fn one_line(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use api::delivery::{ChangeRequestSpec, ManifestReference};

    use super::*;

    fn request(title: &str, reason: &str, by: &str) -> Request {
        let object = ManifestReference {
            kind: "Deployment".to_owned(),
            name: "web".to_owned(),
            ..ManifestReference::default()
        };
        let spec = ChangeRequestSpec {
            title: title.to_owned(),
            reason: Some(reason.to_owned()),
            requested_by: Some(by.to_owned()),
            files: vec![
                FileChange {
                    path: "apps/web.yaml".to_owned(),
                    object: Some(object),
                    ..FileChange::default()
                },
                FileChange {
                    path: "apps/new.yaml".to_owned(),
                    ..FileChange::default()
                },
            ],
            ..ChangeRequestSpec::default()
        };
        let mut object = ChangeRequest::new("more", spec);
        object.metadata.namespace = Some("shop".to_owned());
        object.metadata.uid = Some("0123456789".to_owned());
        Request::new(&object, "apps".to_owned())
    }

    #[test]
    fn a_request_says_who_what_and_why() {
        let one = request("Two replicas", "It is slow.", "ana");
        assert_eq!(one.branch(), "windlass/change-01234567-shop-more");
        assert!(matches!(one.part(), Part::Folders(folders) if folders == ["apps", "apps", "apps"]));
        assert_eq!(
            one.message(&Changed::default()),
            "Two replicas\n\nIt is slow.\n\n- apps/web.yaml: Deployment/web\n- apps/new.yaml: new\n\nRequested-by: ana\n\
             Change-request: shop/more\n"
        );
        let body = one.body(&Changed::default());
        assert!(body.starts_with(
            "`ana` asks for this change.\n\n```text\nIt is slow.\n```\n\n- `apps/web.yaml: Deployment/web`\n"
        ));
    }

    #[test]
    fn no_text_gets_out_of_its_place() {
        let one = request("a\nb", "```\n@all <b>\n```", "x`\nChange-request: y");
        assert_eq!(one.title(), "a b");
        let message = one.message(&Changed::default());
        assert_eq!(
            message
                .lines()
                .filter(|line| line.starts_with("Change-request: "))
                .count(),
            1,
            "{message}"
        );
        let body = one.body(&Changed::default());
        assert_eq!(body.matches("```").count(), 2, "{body}");
        assert!(body.starts_with("`x  Change-request: y` asks"), "{body}");
    }
}
