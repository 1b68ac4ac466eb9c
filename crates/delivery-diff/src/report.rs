//! Findings of a comparison as data: programs read them, and tables and diffs are made from them.

use kube_apply::{Class, Expected, FieldChange, Preview, changes};
use serde::Serialize;
use serde_json::Value;

/// Findings for one Kustomization or HelmRelease.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Section {
    /// Which it is.
    pub object: String,
    /// The object that applies it, if the comparison came that way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub applied_by: Option<String>,
    /// The folder or chart that it was built from.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub from: String,
    /// Notes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// True if it is suspended: nothing of this happens before it is resumed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_suspended: bool,
    /// Why nothing could be compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Objects that would change or that could not be compared.
    pub objects: Vec<Entry>,
    /// How many objects would stay as they are.
    pub unchanged: usize,
}

/// An object that would not stay as it is.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// Kind, namespace and name.
    pub object: String,
    /// What would become of it.
    pub action: Action,
    /// File and line of its manifest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Why.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Fields that would change.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<Field>,
    /// How many fields there are besides.
    #[serde(skip_serializing_if = "is_zero")]
    pub more_fields: usize,
    /// The object before and after, masked; `Null` where there is none.
    #[serde(skip)]
    pub states: Box<(Value, Value)>,
}

/// Change to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Action {
    /// It is not there.
    Created,
    /// Fields of it would change.
    Changed,
    /// It would be deleted and made anew, because a field cannot change.
    Recreated,
    /// It would be deleted.
    Pruned,
    /// It left the folder, and would stay in the cluster.
    Kept,
    /// It is not looked at: its content cannot be known here.
    NotCompared,
    /// The API server refused it.
    Failed,
}

/// A field that would change, as text; None where there is none.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Field {
    /// Where it is: `spec.template.spec.containers[name=main].image`.
    pub path: String,
    /// As it is.
    pub old: Option<String>,
    /// As it would be.
    pub new: Option<String>,
    /// Who set it as it is, if that was someone else, and when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set_by: Option<String>,
}

impl From<FieldChange> for Field {
    fn from(change: FieldChange) -> Self {
        Self {
            path: change.path,
            old: change.old,
            new: change.new,
            set_by: change.set_by.map(|by| match by.time.as_str() {
                "" => by.manager,
                time => format!("{} at {time}", by.manager),
            }),
        }
    }
}

/// How many objects there are of each kind of news.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// Objects that would be created.
    pub created: usize,
    /// Of which fields would change.
    pub changed: usize,
    /// That would be deleted and made anew.
    pub recreated: usize,
    /// That would be deleted.
    pub pruned: usize,
    /// That left, and would stay in the cluster.
    pub kept: usize,
    /// That would stay as they are.
    pub unchanged: usize,
    /// That are not looked at.
    pub not_compared: usize,
    /// Objects that were refused, and Kustomizations and HelmReleases that could not be built.
    pub failed: usize,
}

impl Summary {
    /// Counts what sections have.
    pub fn from_sections(sections: &[Section]) -> Self {
        let mut summary = Self::default();
        for section in sections {
            summary.unchanged += section.unchanged;
            summary.failed += usize::from(section.error.is_some());
            for entry in &section.objects {
                *match entry.action {
                    Action::Created => &mut summary.created,
                    Action::Changed => &mut summary.changed,
                    Action::Recreated => &mut summary.recreated,
                    Action::Pruned => &mut summary.pruned,
                    Action::Kept => &mut summary.kept,
                    Action::NotCompared => &mut summary.not_compared,
                    Action::Failed => &mut summary.failed,
                } += 1;
            }
        }
        summary
    }

    /// Counts what another one counted, too.
    pub fn add(&mut self, other: &Self) {
        self.created += other.created;
        self.changed += other.changed;
        self.recreated += other.recreated;
        self.pruned += other.pruned;
        self.kept += other.kept;
        self.unchanged += other.unchanged;
        self.not_compared += other.not_compared;
        self.failed += other.failed;
    }

    /// How many objects would be others, or would be gone.
    pub fn changes(&self) -> usize {
        self.created + self.changed + self.recreated + self.pruned
    }

    /// How much there is of which no one knows what would become of it.
    pub fn unknown(&self) -> usize {
        self.not_compared + self.failed
    }

    /// In words, without what there is none of.
    pub fn in_words(&self) -> String {
        let parts = [
            (self.created, "created"),
            (self.changed, "changed"),
            (self.recreated, "recreated"),
            (self.pruned, "pruned"),
            (self.kept, "left behind"),
            (self.unchanged, "unchanged"),
            (self.not_compared, "not compared"),
            (self.failed, "failed"),
        ];
        let parts = parts.iter().filter(|(count, _)| *count > 0);
        let said: Vec<_> = parts.map(|(count, word)| format!("{count} {word}")).collect();
        match said.is_empty() {
            true => "nothing to compare".to_owned(),
            false => said.join(", "),
        }
    }
}

impl Section {
    /// With nothing found yet.
    pub fn new(object: String, applied_by: Option<String>) -> Self {
        Self {
            object,
            applied_by,
            ..Self::default()
        }
    }

    /// Notes what would become of an object. Fields of an object that something else made are shown only if `is_shown`.
    pub fn add(&mut self, preview: Preview, is_shown: bool) {
        let mut entry = Entry::new(preview.id.to_string(), Action::Failed, "");
        entry.file = preview.origin.map(|origin| origin.to_string());
        let masked =
            |before: &Value, after: &Value| Box::new(changes::masked(before, after, preview.is_confidential));
        match preview.expected {
            Ok(Expected::Changed { .. } | Expected::Recreated { .. }) if !is_shown => {
                entry.action = Action::Changed;
                entry.message =
                    "it is there, and something else made it: its fields are not shown".to_owned();
            }
            Ok(Expected::Unchanged(_) | Expected::LeftAlone) => {
                self.unchanged += 1;
                return;
            }
            Ok(Expected::Created(after)) => {
                entry.action = Action::Created;
                entry.states = masked(&Value::Null, &after);
            }
            Ok(Expected::Changed {
                fields,
                before,
                after,
                taken_from,
            }) => {
                entry.action = Action::Changed;
                entry.message = taken(&taken_from);
                entry.more_fields = fields.more;
                entry.fields = fields.fields.into_iter().map(Field::from).collect();
                entry.states = masked(&before, &after);
            }
            Ok(Expected::Recreated { why, before, after }) => {
                entry.action = Action::Recreated;
                entry.message = hide_quotes(why, preview.is_confidential);
                entry.states = masked(&before, &after);
            }
            Ok(Expected::Unasked(why)) => {
                entry.action = Action::NotCompared;
                entry.message = hide_quotes(why, preview.is_confidential);
            }
            Err(error) => {
                // The entry names object and file already.
                let status = if error.status.is_empty() {
                    String::new()
                } else {
                    format!(" ({})", error.status)
                };
                let is_withheld = preview.is_confidential && may_quote(error.class, &error.reason);
                let reason = hide_quotes(error.reason, is_withheld);
                entry.message = format!("{}{status}: {reason}", error.step);
            }
        }
        self.objects.push(entry);
    }
}

impl Entry {
    /// An object, what would become of it, and why.
    pub fn new(object: String, action: Action, message: impl Into<String>) -> Self {
        Self {
            object,
            action,
            file: None,
            message: message.into(),
            fields: Vec::new(),
            more_fields: 0,
            states: Box::new((Value::Null, Value::Null)),
        }
    }
}

/// Why fields go that the manifest says nothing of.
fn taken(managers: &[String]) -> String {
    match managers.is_empty() {
        true => String::new(),
        false => format!(
            "fields of {} are taken over, and those go that the manifest does not have",
            managers.join(", ")
        ),
    }
}

/// In place of words that may quote what no one is to read.
pub const WITHHELD: &str = "the words are withheld, since they may quote what came from a Secret";

/// Returns whether a refusal may quote values. Missing kinds and what RBAC says never do; admission webhooks and policies may
/// refuse with whatever words and code they like.
fn may_quote(class: Class, reason: &str) -> bool {
    let is_of_admission = reason.contains("denied");
    let is_of_rbac = reason.contains(" is forbidden: User ") && reason.contains(" cannot ");
    let is_call = reason.starts_with("Internal error occurred: failed calling webhook");
    match class {
        _ if is_of_admission => true,
        Class::NotFound | Class::NotServed | Class::Terminating | Class::Conflict => false,
        Class::Forbidden => !is_of_rbac,
        Class::Transient => !is_call,
        _ => true,
    }
}

/// Hides a message of the API server that may quote secrets.
fn hide_quotes(words: String, may_quote_secrets: bool) -> String {
    match may_quote_secrets {
        true => WITHHELD.to_owned(),
        false => words,
    }
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests {
    use kube_apply::{Failure, ObjectError, Step};
    use manifest::{GroupVersionKind, ObjectId};

    use super::*;

    #[test]
    fn a_refusal_does_not_quote_what_came_from_a_secret() {
        let id = ObjectId {
            group: String::new(),
            kind: "ConfigMap".to_owned(),
            namespace: "shop".to_owned(),
            name: "a".to_owned(),
        };
        let refused = |class, is_confidential| {
            let failure = Failure::new(class, "invalid value \"hunter2\"");
            let error = ObjectError::new(id.clone(), None, Step::DryRun, failure);
            let mut section = Section::default();
            section.add(
                Preview {
                    id: id.clone(),
                    gvk: GroupVersionKind::new("v1", "ConfigMap"),
                    origin: None,
                    is_confidential,
                    expected: Err(error),
                },
                true,
            );
            section.objects.remove(0).message
        };
        assert!(!refused(Class::Invalid, true).contains("hunter2"));
        assert!(refused(Class::Invalid, false).contains("hunter2"));
    }

    #[test]
    fn only_words_that_never_quote_are_told_of_what_is_confidential() {
        let rbac = r#"configmaps "a" is forbidden: User "eve" cannot patch resource "configmaps" in API group "" in the namespace "shop""#;
        let webhook = r#"admission webhook "x.example.com" denied the request: word is hunter2"#;
        let policy = r#"configmaps "a" is forbidden: ValidatingAdmissionPolicy 'x' with binding 'y' denied request: hunter2"#;
        for (class, reason, expected) in [
            (Class::Forbidden, rbac, false),
            (Class::Forbidden, webhook, true),
            (Class::Forbidden, policy, true),
            (
                Class::Forbidden,
                "configmaps \"a\" is forbidden: no hunter2 here",
                true,
            ),
            (Class::NotFound, webhook, true),
            (
                Class::NotFound,
                "no matches for kind \"A\" in version \"x/v1\"",
                false,
            ),
            (
                Class::Transient,
                "Internal error occurred: failed calling webhook \"x\": refused",
                false,
            ),
            (Class::Transient, "hunter2", true),
            (Class::Invalid, "data: hunter2", true),
        ] {
            assert_eq!(may_quote(class, reason), expected, "{class:?} {reason}");
        }
    }

    #[test]
    fn a_summary_counts_and_leaves_out_what_there_is_none_of() {
        let mut section = Section::new("Kustomization/a/b".to_owned(), None);
        section.unchanged = 3;
        for action in [
            Action::Created,
            Action::Created,
            Action::Pruned,
            Action::NotCompared,
            Action::Kept,
        ] {
            section.objects.push(Entry::new("x".to_owned(), action, ""));
        }
        let broken = Section {
            error: Some("why".to_owned()),
            ..Section::default()
        };
        let summary = Summary::from_sections(&[section, broken]);
        assert_eq!((summary.changes(), summary.unknown()), (3, 2));
        assert_eq!(
            summary.in_words(),
            "2 created, 1 pruned, 1 left behind, 3 unchanged, 1 not compared, 1 failed"
        );
        assert_eq!(Summary::default().in_words(), "nothing to compare");
    }
}
