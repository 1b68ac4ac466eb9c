//! Why a run failed, for programs: one entry per object, as compact JSON in the history of the status.
//!
//! Goes beside the message of Ready, which is for people. Pure. The list is bounded, most telling first; what holds a
//! Secret's value was masked where the error was made. Documented in docs/operations/why.md.

use kube_apply::{ApplyError, Class, ObjectError, Step};
use kube_health::why::Kind;
use kube_health::{ObjectReport, Report, Status};
use serde::Serialize;

use crate::error::Error;

/// Where the list is: a key of the metadata of an entry in `status.history`.
pub const KEY: &str = "windlass.dev/why";

/// Bytes of a list. The history has five entries, and an object in etcd some 1.5 MB.
const LIST_LIMIT: usize = 4096;
/// Characters of one message.
const MESSAGE_LIMIT: usize = 500;
/// Bytes reserved for the last entry, which counts the others.
const REST: usize = 32;

/// One object of the list. Fields that say nothing are left out.
#[derive(Debug, Default, Serialize)]
struct Entry {
    object: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    /// Step that failed: Build, DryRun, Apply, …
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<&'static str>,
    /// How its health is, in kstatus's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<String>,
    /// Class of the failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<String>,
    /// The API server's own word.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pod: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    container: Option<String>,
    message: String,
}

/// Lists the objects that a failed run failed on; None for failures that are not about single objects.
pub fn list(error: &Error) -> Option<String> {
    let entries = match error {
        Error::Health { report, .. } => of_health(report),
        Error::Apply(error) => of_apply(error),
        Error::Prune { errors, .. } => errors.iter().map(of_error).collect(),
        _ => return None,
    };
    (!entries.is_empty()).then(|| bounded(entries))
}

fn of_health(report: &Report) -> Vec<Entry> {
    let mut objects: Vec<&ObjectReport> = report.objects.iter().collect();
    // A cause that was found says more than that there is something to wait for.
    objects.sort_by_key(|object| (object.why.is_none(), object.status != Status::Failed));
    objects.into_iter().map(of_object).collect()
}

fn of_object(object: &ObjectReport) -> Entry {
    let found = object.why.as_ref();
    let told = found.map_or(&object.message, |why| &why.text);
    let refused = || Kind::of_refusal(&object.message);
    Entry {
        object: object.id.to_string(),
        status: Some(object.status.to_string()),
        cause: found
            .map(|why| why.kind)
            .or_else(refused)
            .map(|kind| kind.to_string()),
        pod: found.and_then(|why| why.pod.clone()),
        container: found.and_then(|why| why.container.clone()),
        message: shortened(told),
        ..Entry::default()
    }
}

fn of_apply(error: &ApplyError) -> Vec<Entry> {
    error.errors.iter().map(of_error).collect()
}

fn of_error(error: &ObjectError) -> Entry {
    let origin = error.origin.as_ref();
    Entry {
        object: error.id.to_string(),
        file: origin.map(|origin| origin.file.to_string()),
        // Generated objects have a file and no line.
        line: origin.map(|origin| origin.line).filter(|line| *line > 0),
        step: Some(step(error.step)),
        cause: Some(cause(error)),
        reason: Some(error.status.clone()).filter(|status| !status.is_empty()),
        message: shortened(&error.reason),
        ..Entry::default()
    }
}

fn step(step: Step) -> &'static str {
    match step {
        Step::Prepare => "Prepare",
        Step::DryRun => "DryRun",
        Step::Apply => "Apply",
        Step::TakeOver => "TakeOver",
        Step::Recreate => "Recreate",
        Step::Wait => "Wait",
        Step::Delete => "Delete",
        // A step that is new has no word here yet.
        _ => "Other",
    }
}

fn cause(error: &ObjectError) -> String {
    if let Some(kind) = Kind::of_refusal(&error.reason) {
        return kind.to_string();
    }
    // Its Debug is its name: Invalid, Immutable, Conflict, NotFound, Transient, Forbidden.
    let class: Class = error.class;
    format!("{class:?}")
}

/// Writes as many entries as fit, and how many did not.
fn bounded(entries: Vec<Entry>) -> String {
    let total = entries.len();
    let mut list = String::from("[");
    for (index, entry) in entries.iter().enumerate() {
        // Nothing in an entry can fail to be written.
        let text = serde_json::to_string(entry).unwrap_or_default();
        if list.len() + text.len() + REST > LIST_LIMIT {
            list.push_str(&format!("{{\"more\":{}}},", total - index));
            break;
        }
        list.push_str(&text);
        list.push(',');
    }
    list.pop();
    list.push(']');
    list
}

fn shortened(message: &str) -> String {
    match message.char_indices().nth(MESSAGE_LIMIT) {
        None => message.to_owned(),
        Some((end, _)) => format!("{}…", &message[..end]),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use kube_health::report::Ending;
    use kube_health::why::Cause;
    use manifest::{ObjectId, Origin};
    use serde_json::{Value, json};

    use super::*;

    fn id(kind: &str, name: &str) -> ObjectId {
        ObjectId {
            group: "apps".into(),
            kind: kind.into(),
            namespace: "default".into(),
            name: name.into(),
        }
    }

    fn object(name: &str, status: Status, why: Option<Cause>) -> ObjectReport {
        ObjectReport {
            id: id("Deployment", name),
            status,
            message: "0 of 2 replicas available".into(),
            why,
        }
    }

    fn cause(pod: &str) -> Cause {
        Cause {
            kind: Kind::ImagePull,
            pod: Some(pod.into()),
            container: Some("app".into()),
            text: format!("pod {pod} container app: ImagePullBackOff (image a:b)"),
        }
    }

    fn health(objects: Vec<ObjectReport>) -> Error {
        Error::Health {
            after: Duration::from_secs(60).into(),
            report: Box::new(Report {
                ending: Ending::TimedOut,
                objects,
            }),
        }
    }

    fn listed(error: &Error) -> Value {
        serde_json::from_str(&list(error).unwrap()).unwrap()
    }

    fn refused(name: &str, class: Class, status: &str, reason: &str) -> ObjectError {
        ObjectError {
            id: id("Deployment", name),
            origin: Some(Origin {
                file: "apps/web.yaml".into(),
                line: 12,
            }),
            step: Step::DryRun,
            class,
            status: status.into(),
            reason: reason.into(),
        }
    }

    #[test]
    fn unhealthy_objects_are_listed_with_their_causes_those_that_have_one_first() {
        let error = health(vec![
            object("db", Status::InProgress, None),
            object("web", Status::InProgress, Some(cause("web-1"))),
        ]);
        assert_eq!(
            listed(&error),
            json!([
                {"object": "Deployment/default/web", "status": "InProgress", "cause": "ImagePull", "pod": "web-1",
                 "container": "app", "message": "pod web-1 container app: ImagePullBackOff (image a:b)"},
                {"object": "Deployment/default/db", "status": "InProgress", "message": "0 of 2 replicas available"}
            ])
        );
    }

    #[test]
    fn refused_objects_are_listed_with_file_line_and_step() {
        let forbidden = "deployments.apps \"web\" is forbidden: User \"system:serviceaccount:team:deployer\" cannot \
                         patch resource \"deployments\" in API group \"apps\" in the namespace \"default\"";
        let error = Error::Apply(ApplyError {
            errors: vec![
                refused("web", Class::Forbidden, "Forbidden", forbidden),
                refused("db", Class::Invalid, "", "spec.x: Required value"),
            ],
            changes: Vec::new(),
        });
        assert_eq!(
            listed(&error),
            json!([
                {"object": "Deployment/default/web", "file": "apps/web.yaml", "line": 12, "step": "DryRun",
                 "cause": "Forbidden", "reason": "Forbidden", "message": forbidden},
                {"object": "Deployment/default/db", "file": "apps/web.yaml", "line": 12, "step": "DryRun",
                 "cause": "Invalid", "message": "spec.x: Required value"}
            ])
        );
    }

    #[test]
    fn a_list_is_bounded_and_counts_what_it_leaves_out() {
        let many =
            (0..500).map(|i| object(&format!("web-{i}"), Status::Failed, Some(cause(&"ä".repeat(900)))));
        let text = list(&health(many.collect())).unwrap();
        assert!(text.len() <= LIST_LIMIT, "{}", text.len());
        let entries: Vec<Value> = serde_json::from_str(&text).unwrap();
        let (last, named) = entries.split_last().unwrap();
        assert_eq!(last["more"].as_u64().unwrap() as usize, 500 - named.len());
        assert!(named.iter().all(|entry| entry["object"].is_string()));
    }
}
