//! Failures of an object, with message and class. Pure, except that it reads kube's error type.
//!
//! The API server's messages are long, repeat what the reader knows, and may quote a Secret. Here they are shortened,
//! masked and told apart; who retries what is decided by the caller from the [`Class`].

use std::borrow::Cow;
use std::fmt;

use kube::core::Status;
use manifest::{ObjectId, Origin};

use crate::inventory::Inventory;
use crate::{Change, mapper};

/// Tells failures apart by what helps against them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Class {
    /// Permission, quota or an admission policy refused: someone must allow it.
    Forbidden,
    /// The manifest is wrong: only a new revision helps.
    Invalid,
    /// A field that cannot change was changed: force or a new revision helps.
    Immutable,
    /// Someone else wrote at the same moment, several times over.
    Conflict,
    /// The namespace, or something else that the request names, does not exist.
    NotFound,
    /// The server does not serve the kind.
    NotServed,
    /// The namespace or the kind's definition is being deleted: it is gone soon, and may come back.
    Terminating,
    /// Time helps: the server is away, overloaded, or a webhook does not answer.
    Transient,
}

/// A failure of one request, without the object that it was about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Class, which says what helps.
    pub class: Class,
    /// The server's own reason word, for example `Invalid`; empty when no server answered.
    pub status: String,
    /// The shortened message.
    pub message: String,
}

impl Failure {
    /// Makes a failure that no server reported.
    pub fn new(class: Class, message: impl Into<String>) -> Self {
        Self {
            class,
            status: String::new(),
            message: message.into(),
        }
    }

    /// Reads the failure out of a client error.
    pub fn from_client(error: &kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Self::from_status(status),
            other => Self::new(Class::Transient, shorten(&error_chain::condensed(other))),
        }
    }

    /// Reads the failure out of the server's answer.
    pub fn from_status(status: &Status) -> Self {
        match classify(status) {
            // The server says `404 page not found`.
            Class::NotServed => Self::new(Class::NotServed, "the API server does not serve its kind"),
            class => Self {
                class,
                status: status.reason.clone(),
                message: message(status),
            },
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

fn classify(status: &Status) -> Class {
    let message = status.message.as_str();
    match status.code {
        // A namespace and a definition that are on their way out.
        403 if message.contains("because it is being terminated") => Class::Terminating,
        403 | 405 if message.contains("while custom resource definition is terminating") => {
            Class::Terminating
        }
        _ if is_immutable(status) => Class::Immutable,
        401 | 408 | 429 => Class::Transient,
        403 => Class::Forbidden,
        404 if names_nothing(status) => Class::NotServed,
        404 => Class::NotFound,
        409 => Class::Conflict,
        // Schema errors of server-side apply come back as 500 without a reason.
        500 if message.contains("failed to create typed") => Class::Invalid,
        // So do values that their type cannot hold, such as text in a Secret's data that is no base64.
        500 if message.contains("unable to convert unstructured object") => Class::Invalid,
        400..500 => Class::Invalid,
        _ => Class::Transient,
    }
}

/// Tells a missing kind from a missing object or namespace: both are a 404, but the former names nothing.
pub(crate) fn names_nothing(status: &Status) -> bool {
    status
        .details
        .as_ref()
        .is_none_or(|details| details.name.is_empty())
}

/// Phrases of API server, CEL rules and webhooks for a field that cannot change.
const IMMUTABLE_PHRASES: [&str; 12] = [
    "is immutable",
    "immutable field",
    "may not be changed",
    "may not change once set",
    "can not be changed",
    "cannot be changed",
    "cannot change roleRef",
    "updates to parameters are forbidden",
    "updates to statefulset spec for fields other than",
    "updates to provisioner are forbidden",
    "pod updates may not change fields other than",
    "may not be modified",
];

/// Returns whether the only trouble is immutable fields. Narrower than Flux, which takes every 409 and 422 for one
/// (`ssa/errors.IsImmutableError`) and so deletes, under force, an object whose new manifest is merely wrong.
fn is_immutable(status: &Status) -> bool {
    let says_so = |text: &str| IMMUTABLE_PHRASES.iter().any(|phrase| text.contains(phrase));
    let causes = status
        .details
        .as_ref()
        .map(|d| d.causes.as_slice())
        .unwrap_or_default();
    if causes.is_empty() {
        says_so(&status.message)
    } else {
        causes.iter().all(|cause| says_so(&cause.message))
    }
}

/// A cause quotes the whole value, which may be a pod template, before it says what is wrong with it.
const CAUSE_START: usize = 60;
/// Long enough for what is wrong.
const CAUSE_END: usize = 280;

fn without_middle(message: &str) -> Cow<'_, str> {
    if message.len() <= CAUSE_START + CAUSE_END {
        return Cow::Borrowed(message);
    }
    let start = &message[..message.floor_char_boundary(CAUSE_START)];
    let end = &message[message.ceil_char_boundary(message.len() - CAUSE_END)..];
    Cow::Owned(format!("{start}…{end}"))
}

/// Causes that are listed; the rest are counted.
const CAUSES: usize = 5;

fn message(status: &Status) -> String {
    let causes = status
        .details
        .as_ref()
        .map(|d| d.causes.as_slice())
        .unwrap_or_default();
    let named: Vec<_> = causes
        .iter()
        .filter(|c| !c.field.is_empty() && !c.message.is_empty())
        .collect();
    if status.code == 422 && !named.is_empty() {
        let mut parts: Vec<_> = named
            .iter()
            .take(CAUSES)
            .map(|c| format!("{}: {}", c.field, without_middle(&c.message)))
            .collect();
        parts.dedup();
        if named.len() > CAUSES {
            parts.push(format!("and {} more", named.len() - CAUSES));
        }
        return shorten(&parts.join("; "));
    }
    shorten(without_preamble(&status.message))
}

/// Cuts what only repeats which object it is about: `failed to create typed patch object (…): `.
fn without_preamble(message: &str) -> &str {
    let typed = message.strip_prefix("failed to create typed patch object (");
    typed
        .and_then(|rest| rest.split_once("): "))
        .map_or(message, |(_, reason)| reason)
}

/// Longest message of one object; a condition holds 32 KiB for all of them.
const LONGEST: usize = 600;

/// Cuts a message that is too long, on one line.
pub(crate) fn shorten(message: &str) -> String {
    let line = message.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(LONGEST) {
        None => line,
        Some((end, _)) => format!("{}…", &line[..end]),
    }
}

/// Step that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// The manifest was checked against itself and the server's kinds.
    Prepare,
    /// The server was asked what an apply would do.
    DryRun,
    /// The object was applied.
    Apply,
    /// Field managers of other tools were taken over.
    TakeOver,
    /// The object was deleted so that it can be created anew.
    Recreate,
    /// The object was waited for.
    Wait,
    /// The object was pruned.
    Delete,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Step::Prepare => "is not valid",
            Step::DryRun => "dry-run failed",
            Step::Apply => "apply failed",
            Step::TakeOver => "field manager take-over failed",
            Step::Recreate => "recreate failed",
            Step::Wait => "did not become usable",
            Step::Delete => "delete failed",
        })
    }
}

/// A failure of one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectError {
    /// The object.
    pub id: ObjectId,
    /// Where its manifest is; None when no file holds it.
    pub origin: Option<Origin>,
    /// Step that failed.
    pub step: Step,
    /// Class, which says what helps.
    pub class: Class,
    /// The server's own reason word, for example `Invalid`; empty when no server answered.
    pub status: String,
    /// Why, shortened and without secrets.
    pub reason: String,
}

impl ObjectError {
    /// Names the object of a failure.
    pub fn new(id: ObjectId, origin: Option<Origin>, step: Step, failure: Failure) -> Self {
        Self {
            id,
            origin,
            step,
            class: failure.class,
            status: failure.status,
            reason: failure.message,
        }
    }
}

impl fmt::Display for ObjectError {
    /// `apps/web.yaml:12: Deployment/default/web dry-run failed (Invalid): spec.replicas: …`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(origin) = &self.origin {
            write!(f, "{origin}: ")?;
        }
        write!(f, "{} {}", self.id, self.step)?;
        if !self.status.is_empty() {
            write!(f, " ({})", self.status)?;
        }
        write!(f, ": {}", self.reason)
    }
}

impl std::error::Error for ObjectError {}

/// A line for each failure, but one for all objects of a kind that is not served: for them it is one failure.
fn lines(errors: &[ObjectError]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut kinds: Vec<(&ObjectError, usize, Vec<String>)> = Vec::new();
    for error in errors {
        let is_like = |other: &ObjectError| {
            (&other.id.group, &other.id.kind, &other.reason)
                == (&error.id.group, &error.id.kind, &error.reason)
        };
        let origin = error.origin.as_ref().map(ToString::to_string);
        match kinds.iter_mut().find(|(first, ..)| is_like(first)) {
            Some((_, _, places)) if error.class == Class::NotServed => places.extend(origin),
            _ => {
                kinds.push((error, lines.len(), Vec::new()));
                lines.push(error.to_string());
            }
        }
    }
    for (_, line, places) in kinds.into_iter().filter(|(.., places)| !places.is_empty()) {
        let told = places.iter().take(PLACES).cloned().collect::<Vec<_>>().join(", ");
        let rest = places.len().saturating_sub(PLACES);
        let rest = if rest == 0 {
            String::new()
        } else {
            format!(" and {rest} more")
        };
        lines[line] = format!("{}; also {told}{rest}", lines[line]);
    }
    lines
}

/// So many places are listed of objects that failed alike.
const PLACES: usize = 10;

/// Says what failed, one line for all objects of a kind that failed alike.
pub fn summarize(errors: &[ObjectError]) -> Vec<String> {
    let mut alike: Vec<Vec<&ObjectError>> = Vec::new();
    for error in errors {
        let is_like = |other: &ObjectError| {
            (&other.id.group, &other.id.kind, other.step) == (&error.id.group, &error.id.kind, error.step)
                && (&other.status, &other.reason) == (&error.status, &error.reason)
        };
        match alike.iter_mut().find(|group| is_like(group[0])) {
            Some(group) => group.push(error),
            None => alike.push(vec![error]),
        }
    }
    let line = |group: &Vec<&ObjectError>| match group.len() {
        1 => group[0].to_string(),
        count => format!("{} (and {} more like it)", group[0], count - 1),
    };
    alike.iter().map(line).collect()
}

/// All that is wrong with a set of objects, and what was applied before it showed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ApplyError {
    /// Every failure, in the order in which the objects are applied.
    pub errors: Vec<ObjectError>,
    /// Changes made nevertheless; empty when validation failed.
    pub changes: Vec<Change>,
}

impl ApplyError {
    /// Returns whether it is certain that nothing was written: the server refused already what was only asked.
    pub fn wrote_nothing(&self) -> bool {
        let only_asked = |error: &ObjectError| matches!(error.step, Step::Prepare | Step::DryRun);
        self.changes.is_empty() && self.errors.iter().all(only_asked)
    }

    /// Returns the objects that failed because their namespace or definition is being deleted, or because their
    /// namespace, or a definition that is in `own`, is gone.
    pub fn cut_off(&self, own: &Inventory) -> Vec<ObjectId> {
        let is_cut_off = |e: &&ObjectError| match e.class {
            Class::Terminating => true,
            Class::NotFound => !e.id.namespace.is_empty(),
            // The definition vanished between the moment it was applied and the moment its object was.
            Class::NotServed => own.definitions_of(&e.id.group).next().is_some(),
            _ => false,
        };
        self.errors
            .iter()
            .filter(is_cut_off)
            .map(|e| e.id.clone())
            .collect()
    }

    /// Returns whether every failure is one that time may heal.
    pub fn is_transient(&self) -> bool {
        self.errors
            .iter()
            .all(|e| matches!(e.class, Class::Transient | Class::Terminating | Class::Conflict))
    }
}

impl From<ObjectError> for ApplyError {
    fn from(error: ObjectError) -> Self {
        Self {
            errors: vec![error],
            changes: Vec::new(),
        }
    }
}

impl fmt::Display for ApplyError {
    /// One line per failure, then one line per change that was made all the same.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let errors = lines(&self.errors).into_iter();
        let changes = self
            .changes
            .iter()
            .filter(|c| c.action.is_change())
            .map(ToString::to_string);
        f.write_str(&errors.chain(changes).collect::<Vec<_>>().join("\n"))
    }
}

impl std::error::Error for ApplyError {}

pub(crate) fn failure(error: &mapper::Error) -> Failure {
    match error {
        mapper::Error::UnknownKind(_) => Failure::new(Class::NotServed, error.to_string()),
        mapper::Error::StaleGroup(_) => Failure::new(Class::Transient, error.to_string()),
        mapper::Error::Discover(source) => Failure::new(
            Class::Transient,
            format!("{error}: {}", Failure::from_client(source)),
        ),
    }
}

#[cfg(test)]
mod tests {
    use kube::core::response::{StatusCause, StatusDetails};

    use super::*;

    fn status(code: u16, reason: &str, message: &str, causes: &[(&str, &str)]) -> Status {
        let causes = causes
            .iter()
            .map(|(field, message)| StatusCause {
                reason: "FieldValueInvalid".into(),
                message: (*message).into(),
                field: (*field).into(),
            })
            .collect();
        let details = StatusDetails {
            name: String::new(),
            group: String::new(),
            kind: String::new(),
            uid: String::new(),
            causes,
            retry_after_seconds: 0,
        };
        Status::failure(message, reason)
            .with_code(code)
            .with_details(details)
    }

    #[test]
    fn answers_are_told_apart() {
        for (code, reason, message, class) in [
            (
                403,
                "Forbidden",
                "deployments.apps is forbidden: User \"x\" cannot patch resource",
                Class::Forbidden,
            ),
            (
                403,
                "Forbidden",
                "unable to create new content in namespace a because it is being terminated",
                Class::Terminating,
            ),
            (
                403,
                "Forbidden",
                "create not allowed while custom resource definition is terminating",
                Class::Terminating,
            ),
            (404, "NotFound", "404 page not found", Class::NotServed),
            (409, "Conflict", "the object has been modified", Class::Conflict),
            (422, "Invalid", "spec.replicas: Invalid value: -1", Class::Invalid),
            (
                400,
                "BadRequest",
                "admission webhook \"w\" denied the request: spec is immutable",
                Class::Immutable,
            ),
            (400, "BadRequest", "this is not immutable", Class::Invalid),
            (
                500,
                "",
                "failed to create typed patch object (a/b; v1, Kind=C): .x: field not declared in schema",
                Class::Invalid,
            ),
            (
                500,
                "",
                "failed to convert new object (a/b; /v1, Kind=Secret) to proper version: unable to convert unstructured object to \
                 /v1, Kind=Secret: error decoding from json: illegal base64 data at input byte 7",
                Class::Invalid,
            ),
            (
                500,
                "InternalError",
                "failed calling webhook \"w\": connection refused",
                Class::Transient,
            ),
            (429, "TooManyRequests", "slow down", Class::Transient),
            (503, "ServiceUnavailable", "away", Class::Transient),
        ] {
            assert_eq!(classify(&status(code, reason, message, &[])), class, "{message}");
        }
    }

    #[test]
    fn a_missing_namespace_is_no_missing_kind() {
        let mut missing = status(404, "NotFound", "namespaces \"a\" not found", &[]);
        if let Some(details) = &mut missing.details {
            details.name = "a".into();
        }
        assert_eq!(classify(&missing), Class::NotFound);
        missing.details = None;
        assert_eq!(classify(&missing), Class::NotServed);
    }

    #[test]
    fn immutable_only_when_every_cause_is() {
        let immutable = ("spec.selector", "Invalid value: {}: field is immutable");
        let wrong = (
            "spec.replicas",
            "Invalid value: -1: must be greater than or equal to 0",
        );
        assert_eq!(
            classify(&status(422, "Invalid", "m", &[immutable])),
            Class::Immutable
        );
        assert_eq!(
            classify(&status(422, "Invalid", "m", &[immutable, wrong])),
            Class::Invalid
        );
    }

    #[test]
    fn the_messages_of_kinds_with_immutable_fields_are_known() {
        for message in [
            "Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals' are forbidden",
            "Forbidden: spec is immutable after creation except resources.requests",
            "Invalid value: \"10.0.0.1\": may not change once set",
            "Invalid value: {}: cannot change roleRef",
            "Forbidden: field is immutable when `immutable` is set",
            "Forbidden: updates to parameters are forbidden.",
            "Forbidden: may not be changed in an update.",
        ] {
            assert_eq!(
                classify(&status(422, "Invalid", "m", &[("f", message)])),
                Class::Immutable,
                "{message}"
            );
        }
    }

    #[test]
    fn messages_lose_what_the_reader_knows() {
        let typed =
            "failed to create typed patch object (a/b; v1, Kind=C): .spec.x: field not declared in schema";
        assert_eq!(
            message(&status(500, "", typed, &[])),
            ".spec.x: field not declared in schema"
        );
        let long: Vec<_> = (0..7).map(|i| format!("spec.f{i}")).collect();
        let causes: Vec<_> = long.iter().map(|f| (f.as_str(), "Required value")).collect();
        let text = message(&status(422, "Invalid", "ConfigMap \"x\" is invalid: …", &causes));
        assert!(text.starts_with("spec.f0: Required value; spec.f1"), "{text}");
        assert!(text.ends_with("and 2 more"), "{text}");
    }

    #[test]
    fn a_cause_keeps_what_is_wrong_with_a_long_value() {
        let message = format!("Invalid value: {{{}}}: field is immutable", "ä".repeat(1000));
        let short = without_middle(&message);
        assert!(
            short.starts_with("Invalid value: {ä") && short.ends_with("}: field is immutable"),
            "{short}"
        );
        assert!(short.len() <= CAUSE_START + CAUSE_END + 3, "{}", short.len());
        assert_eq!(without_middle("short"), "short");
    }

    #[test]
    fn long_messages_are_cut_between_characters() {
        let cut = shorten(&"ä".repeat(2 * LONGEST));
        assert_eq!(cut.chars().count(), LONGEST + 1);
        assert_eq!(shorten("a\n  b"), "a b");
    }

    #[test]
    fn objects_that_failed_alike_are_one_line() {
        let failed = |kind: &str, name: &str, reason: &str| {
            let id = ObjectId {
                group: "example.com".into(),
                kind: kind.into(),
                namespace: "a".into(),
                name: name.into(),
            };
            let failure = Failure::new(Class::NotServed, reason);
            ObjectError::new(id, None, Step::Delete, failure)
        };
        let errors = [
            failed("Thing", "one", "away"),
            failed("Other", "one", "away"),
            failed("Thing", "two", "away"),
            failed("Thing", "three", "held"),
        ];
        let expected = [
            "Thing/a/one delete failed: away (and 1 more like it)",
            "Other/a/one delete failed: away",
            "Thing/a/three delete failed: held",
        ];
        assert_eq!(summarize(&errors), expected);
    }

    #[test]
    fn what_is_not_served_is_cut_off_where_its_definition_is_applied_too() {
        let id = |group: &str, kind: &str, name: &str| ObjectId {
            group: group.into(),
            kind: kind.into(),
            namespace: String::new(),
            name: name.into(),
        };
        let thing = id("example.com", "Thing", "one");
        let failure = Failure::new(Class::NotServed, "away");
        let error = ApplyError::from(ObjectError::new(thing.clone(), None, Step::DryRun, failure));
        let own = |name: &str| {
            let definition = id("apiextensions.k8s.io", "CustomResourceDefinition", name);
            Inventory::from_iter([(definition, "v1".to_owned())])
        };
        assert_eq!(error.cut_off(&own("things.example.com")), [thing]);
        assert!(error.cut_off(&own("things.other.example.com")).is_empty());
        assert!(error.cut_off(&Inventory::default()).is_empty());
    }

    #[test]
    fn an_error_names_file_line_object_and_reason() {
        let id = ObjectId {
            group: "apps".into(),
            kind: "Deployment".into(),
            namespace: "default".into(),
            name: "web".into(),
        };
        let origin = Origin {
            file: "apps/web.yaml".into(),
            line: 12,
        };
        let failure = Failure::from_status(&status(422, "Invalid", "m", &[("spec.x", "Required value")]));
        let error = ObjectError::new(id, Some(origin), Step::DryRun, failure);
        let text =
            "apps/web.yaml:12: Deployment/default/web dry-run failed (Invalid): spec.x: Required value";
        assert_eq!(error.to_string(), text);
    }
}
