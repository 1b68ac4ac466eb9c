//! What callers may have done to objects: asked for a reconcile, suspended, resumed, restarted. What they only get is in `api/download`.
//!
//! What is written is fixed: nothing that a caller sends gets into an object, but for decisions about pipelines ([`decision`]).
//! Whether they may is asked of the object's cluster at that moment, by the verb; who writes is the administrator's choice ([`Mode`]). Each
//! action is recorded before it happens and after it (ADR 19).

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use access_review::Caller;
use axum::http::StatusCode;
use clap::ValueEnum;
use controller_kit::events::{Recorder, Severity};
use controller_kit::impersonation;
use delivery_graph::kind::{self, Kind};
use delivery_graph::{one_line, request};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams};
use kube::{Client, ResourceExt as _};
use ledger::action::{Action, End};
use ledger::store::Ledger;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

mod decision;

pub use self::decision::Decision;
use self::decision::PIPELINE;
use crate::clusters::Judge;
use crate::problem::Problem;
use crate::sight::Sight;

/// As whom fields are written.
const MANAGER: &str = "windlass-console";
/// The verbs of RBAC that read and write.
const GET: &str = "get";
const PATCH: &str = "patch";
/// The reason of Events, and the prefix of their annotations, as flux-operator has them.
const REASON: &str = "WebAction";
const ANNOTATION: &str = "event.toolkit.fluxcd.io/";
/// What kubectl writes into a Pod template to have Pods made anew.
const RESTARTED_AT: &str = "kubectl.kubernetes.io/restartedAt";
/// Groups that an Event names; there may be hundreds.
const MAX_GROUPS: usize = 20;

/// Who writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// Actions are disabled.
    None,
    /// The console, for whoever has the verb on the object.
    FineGrained,
    /// The caller, whom the console impersonates, and who needs the verb and `patch`.
    Impersonated,
    /// The caller, whose own client the server uses, and who needs `patch`.
    #[value(skip)]
    Own,
}

impl Mode {
    /// What a caller needs for a verb: what they are asked for when something is to be done, and what the API server asks for then.
    pub(crate) fn needs(self, verb: Verb) -> (&'static str, Option<&'static str>) {
        match (self, verb) {
            (Self::Own, Verb::Download) => (GET, None),
            (Self::Own, _) => (PATCH, None),
            (Self::None | Self::FineGrained, _) | (Self::Impersonated, Verb::Download) => {
                (verb.right(), None)
            }
            (Self::Impersonated, _) => (verb.right(), Some(PATCH)),
        }
    }
}

/// What can be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Verb {
    /// Have the controller look at it now.
    Reconcile,
    /// Have the controller leave it alone.
    Suspend,
    /// Have the controller look at it again.
    Resume,
    /// Have the Pods of a workload made anew.
    Restart,
    /// Get the archive of a source's artifact. It writes nothing.
    Download,
    /// Have a release enter an environment of a pipeline.
    Promote,
    /// Have an environment of a pipeline go back. It needs the verb `promote`.
    Rollback,
    /// Agree that a release enters an environment.
    Approve,
    /// Hold releases of a pipeline back.
    Hold,
    /// End a hold. It needs the verb `hold`.
    Release,
}

impl Verb {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Reconcile,
        Self::Suspend,
        Self::Resume,
        Self::Restart,
        Self::Download,
        Self::Promote,
        Self::Rollback,
        Self::Approve,
        Self::Hold,
        Self::Release,
    ];

    /// As answers and Events have it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Reconcile => "reconcile",
            Self::Suspend => "suspend",
            Self::Resume => "resume",
            Self::Restart => "restart",
            Self::Download => "download",
            Self::Promote => "promote",
            Self::Rollback => "rollback",
            Self::Approve => "approve",
            Self::Hold => "hold",
            Self::Release => "release",
        }
    }

    /// As RBAC has it.
    pub fn right(self) -> &'static str {
        match self {
            Self::Rollback => Self::Promote.word(),
            Self::Release => Self::Hold.word(),
            verb => verb.word(),
        }
    }

    /// Whether people decide by it about a pipeline.
    pub fn is_decision(self) -> bool {
        matches!(
            self,
            Self::Promote | Self::Rollback | Self::Approve | Self::Hold | Self::Release
        )
    }
}

/// More about what is to be done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// Of a reconcile: install or upgrade a release although nothing has changed.
    pub force: bool,
    /// Of a reconcile: forget the failures of a release.
    pub reset: bool,
    /// Of a decision: what it is about.
    pub decision: Decision,
}

/// A kind that something can be done to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acted {
    /// Of Flux or Windlass.
    Flux(&'static Kind),
    /// Of Kubernetes, with a Pod template.
    Workload(&'static Workload),
}

/// A kind with a Pod template.
#[derive(Debug, PartialEq, Eq)]
pub struct Workload {
    kind: &'static str,
    plural: &'static str,
}

const APPS: &str = "apps";
static WORKLOADS: [Workload; 3] = [
    Workload {
        kind: "Deployment",
        plural: "deployments",
    },
    Workload {
        kind: "StatefulSet",
        plural: "statefulsets",
    },
    Workload {
        kind: "DaemonSet",
        plural: "daemonsets",
    },
];

impl Acted {
    /// The kind of a name that people use.
    pub fn named(word: &str) -> Option<Self> {
        let is_it = |workload: &&Workload| {
            workload.kind.eq_ignore_ascii_case(word) || workload.plural.eq_ignore_ascii_case(word)
        };
        let workload = || WORKLOADS.iter().find(is_it).map(Self::Workload);
        kind::named(word).map(Self::Flux).or_else(workload)
    }

    /// Its name in manifests.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Flux(kind) => kind.kind,
            Self::Workload(workload) => workload.kind,
        }
    }

    /// Group and plural, as RBAC has them.
    pub fn resource(self) -> (&'static str, &'static str) {
        match self {
            Self::Flux(kind) => (kind.group, kind.plural),
            Self::Workload(workload) => (APPS, workload.plural),
        }
    }

    /// Whether a verb means something for it.
    pub fn has(self, verb: Verb) -> bool {
        match (self, verb) {
            (Self::Flux(kind), Verb::Reconcile) => kind.answers,
            (Self::Flux(kind), Verb::Suspend | Verb::Resume) => kind.suspends,
            (Self::Flux(kind), Verb::Download) => kind.has_artifact(),
            (Self::Flux(kind), verb) if verb.is_decision() => kind.kind == PIPELINE,
            (Self::Workload(_), Verb::Restart) => true,
            _ => false,
        }
    }

    fn api_resource(self) -> ApiResource {
        match self {
            Self::Flux(kind) => kind.resource(),
            Self::Workload(workload) => ApiResource {
                group: APPS.to_owned(),
                version: "v1".to_owned(),
                api_version: format!("{APPS}/v1"),
                kind: workload.kind.to_owned(),
                plural: workload.plural.to_owned(),
            },
        }
    }
}

/// An object that something is done to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    pub cluster: Arc<str>,
    pub kind: Acted,
    pub namespace: String,
    pub name: String,
}

/// Why something was not done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{username} may not {verb} {plural}.{group} in {namespace}")]
    Refused {
        username: String,
        verb: &'static str,
        plural: &'static str,
        group: &'static str,
        namespace: String,
    },
    #[error("{verb} means nothing for a {kind}")]
    Meaningless { verb: &'static str, kind: &'static str },
    #[error("nothing is written for it: GET …/download of the object")]
    Reads,
    #[error("you did so much in the last hour that no more is recorded; what is not recorded is not done")]
    TooMuch,
    #[error("it cannot be recorded, so it was not done; try again")]
    Unrecorded,
    #[error("the cluster does not say what you may do; try again when it is there")]
    Silent,
    #[error("it was changed a moment ago; look at it again")]
    Raced,
    #[error("there is no {0}")]
    Absent(String),
    /// Of a decision about a pipeline.
    #[error("{0}")]
    Undecided(String),
    #[error("the API server refuses: {0}")]
    Denied(String),
    #[error("the API server did not do it: {0}")]
    Failed(String),
}

/// What callers are answered where nothing is done.
pub(crate) fn disabled() -> Problem {
    let message = "this console does nothing; its administrator may start it with --actions";
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, message)
}

/// Does it, if the caller may.
///
/// # Errors
/// When they may not, it cannot be recorded, or the API server does not do it.
pub async fn act(
    sight: &Sight,
    subject: &Subject,
    verb: Verb,
    options: &Options,
    reason: &str,
) -> Result<(), Error> {
    if !subject.kind.has(verb) {
        return Err(Error::Meaningless {
            verb: verb.word(),
            kind: subject.kind.kind(),
        });
    }
    let plain = patch(verb, options);
    if plain.is_none() && !verb.is_decision() {
        return Err(Error::Reads);
    }
    let judge = permit(sight, subject, verb).await?;
    let console = &sight.console;
    let mut reason = reason.to_owned();
    let patch = match plain {
        Some(patch) => patch,
        None => {
            let decided = decision::decide(sight, subject, verb, &options.decision, &reason, &judge).await?;
            reason = match reason.is_empty() {
                true => decided.said,
                false => format!("{}: {reason}", decided.said),
            };
            decided.patch
        }
    };
    let action = action(subject, verb.word(), &sight.caller, &reason);
    begin(console.ledger.as_ref(), &action).await?;
    let done = write(&judge, console.actions, subject, patch).await;
    let message = done.as_ref().err().map(ToString::to_string).unwrap_or_default();
    end(console.ledger.as_ref(), &action, &message).await;
    let object = done?;
    publish(&judge.hand.recorder, &object, subject, &action);
    Ok(())
}

/// Asks the object's cluster whether the caller may. Asked anew: a button must not work for a minute after the right to it is gone.
pub(crate) async fn permit(sight: &Sight, subject: &Subject, verb: Verb) -> Result<Judge, Error> {
    let (group, plural) = subject.kind.resource();
    let (needed, _) = sight.console.actions.needs(verb);
    let refused = || Error::Refused {
        username: sight.caller.username.clone(),
        verb: needed,
        plural,
        group,
        namespace: subject.namespace.clone(),
    };
    let judge = sight
        .console
        .clusters
        .judge(&subject.cluster, &sight.caller)
        .ok_or_else(refused)?;
    let target = sight.target(subject);
    match judge.reviews.may_now(&judge.caller, needed, &target).await {
        Ok(true) => Ok(judge),
        Ok(false) => {
            tracing::info!(
                user = judge.caller.username, verb = verb.word(), object = %describe(subject), "an action was refused"
            );
            Err(refused())
        }
        Err(_) => Err(Error::Silent),
    }
}

pub(crate) fn action(subject: &Subject, verb: &str, caller: &Caller, reason: &str) -> Action {
    let began = Timestamp::now();
    let random = RandomState::new().hash_one(began.as_nanosecond());
    Action {
        // In the order of time, for pages.
        id: format!("{:013x}-{random:016x}", began.as_millisecond()),
        cluster: subject.cluster.to_string(),
        kind: subject.kind.kind().to_owned(),
        namespace: subject.namespace.clone(),
        name: subject.name.clone(),
        verb: verb.to_owned(),
        username: caller.username.clone(),
        groups: caller.groups().iter().take(MAX_GROUPS).cloned().collect(),
        reason: one_line(reason),
        began,
        end: End::Unknown,
        message: String::new(),
    }
}

/// Records that it is about to happen.
pub(crate) async fn begin(ledger: Option<&Ledger>, action: &Action) -> Result<(), Error> {
    tracing::info!(
        user = action.username,
        verb = action.verb,
        cluster = action.cluster,
        kind = action.kind,
        namespace = action.namespace,
        name = action.name,
        reason = action.reason,
        "an action begins"
    );
    let Some(ledger) = ledger else {
        return Ok(());
    };
    match ledger.begin_action(action).await {
        Ok(true) => Ok(()),
        Ok(false) => Err(Error::TooMuch),
        Err(error) => {
            let error = format!("{:#}", anyhow::Error::from(error));
            tracing::error!(error, "the ledger does not take an action");
            Err(Error::Unrecorded)
        }
    }
}

/// Records how it went.
pub(crate) async fn end(ledger: Option<&Ledger>, action: &Action, message: &str) {
    if !message.is_empty() {
        tracing::info!(id = action.id, message, "an action failed");
    }
    let Some(ledger) = ledger else {
        return;
    };
    let end = if message.is_empty() {
        End::Done
    } else {
        End::Failed
    };
    if let Err(error) = ledger.end_action(&action.id, end, message).await {
        let error = format!("{:#}", anyhow::Error::from(error));
        tracing::error!(
            id = action.id,
            error,
            "the ledger does not take the end of an action"
        );
    }
}

/// Writes what the verb means.
async fn write(judge: &Judge, mode: Mode, subject: &Subject, patch: Value) -> Result<DynamicObject, Error> {
    let client = match mode {
        Mode::Impersonated => impersonated(&judge.hand.client, &judge.caller)?,
        Mode::FineGrained | Mode::None | Mode::Own => judge.hand.client.clone(),
    };
    let api: Api<DynamicObject> =
        Api::namespaced_with(client, &subject.namespace, &subject.kind.api_resource());
    let parameters = PatchParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PatchParams::default()
    };
    match api.patch(&subject.name, &parameters, &Patch::Merge(patch)).await {
        Ok(object) => Ok(object),
        Err(kube::Error::Api(status)) if status.code == 409 => Err(Error::Raced),
        Err(kube::Error::Api(status)) if status.code == 404 => Err(Error::Absent(describe(subject))),
        Err(kube::Error::Api(status)) if status.code == 403 && mode != Mode::FineGrained => {
            Err(Error::Denied(one_line(&status.message)))
        }
        Err(kube::Error::Api(status)) if status.code == 403 => {
            // Callers need not know who the console is.
            tracing::warn!(problem = status.message, "the console lacks the right to act");
            let message = "the console may not do it itself; its administrator gives it the right";
            Err(Error::Denied(message.to_owned()))
        }
        Err(kube::Error::Api(status)) => Err(Error::Failed(one_line(&status.message))),
        Err(error) => {
            tracing::warn!(%error, object = %describe(subject), "an action did not reach its cluster");
            Err(Error::Failed(
                "it does not answer; the log of the console says why".to_owned(),
            ))
        }
    }
}

/// What is written; None for a verb that writes nothing, or what depends on the object.
fn patch(verb: Verb, options: &Options) -> Option<Value> {
    let now = Timestamp::now().to_string();
    Some(match verb {
        Verb::Reconcile => request::reconcile(&now, options.force, options.reset),
        Verb::Suspend => request::suspend(true),
        Verb::Resume => request::suspend(false),
        Verb::Restart => json!({"spec": {"template": {"metadata": {"annotations": {RESTARTED_AT: now}}}}}),
        Verb::Download | Verb::Promote | Verb::Rollback | Verb::Approve | Verb::Hold | Verb::Release => {
            return None;
        }
    })
}

/// A client that does everything as the caller.
pub fn impersonated(client: &Client, caller: &Caller) -> Result<Client, Error> {
    // Groups that the API server gives by itself need no right to be impersonated.
    let is_given = caller.username.starts_with("system:serviceaccount:");
    let own = |group: &&String| !is_given && *group != "system:authenticated";
    let groups: Vec<String> = caller.groups().iter().filter(own).cloned().collect();
    impersonation::as_user(client, &caller.username, &groups)
        .map_err(|_| Error::Failed("your name or a group cannot be written into a header".to_owned()))
}

/// Tells the object's cluster, and Alerts.
pub(crate) fn publish(recorder: &Recorder, object: &DynamicObject, subject: &Subject, action: &Action) {
    let resource = subject.kind.api_resource();
    let about = ObjectReference {
        api_version: Some(resource.api_version),
        kind: Some(resource.kind),
        namespace: Some(subject.namespace.clone()),
        name: Some(subject.name.clone()),
        uid: object.uid(),
        resource_version: object.resource_version(),
        field_path: None,
    };
    let mut message = format!("{} by {}", action.verb, action.username);
    if !action.reason.is_empty() {
        message = format!("{message}: {}", action.reason);
    }
    let annotations = [
        ("action", action.verb.clone()),
        ("username", action.username.clone()),
        ("groups", action.groups.join(",")),
        ("subject", describe(subject)),
    ];
    let annotations = annotations.map(|(key, value)| (format!("{ANNOTATION}{key}"), value));
    recorder.publish_about(
        about,
        Severity::Info,
        REASON,
        &message,
        BTreeMap::from(annotations),
    );
}

fn describe(subject: &Subject) -> String {
    format!("{}/{}/{}", subject.kind.kind(), subject.namespace, subject.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_the_verbs_that_mean_something() {
        let verbs = |word: &str| {
            let kind = Acted::named(word).unwrap();
            Verb::ALL
                .into_iter()
                .filter(|verb| kind.has(*verb))
                .map(Verb::word)
                .collect::<Vec<_>>()
        };
        assert_eq!(verbs("ks"), ["reconcile", "suspend", "resume"]);
        assert_eq!(verbs("HelmRelease"), ["reconcile", "suspend", "resume"]);
        assert_eq!(verbs("git"), ["reconcile", "suspend", "resume", "download"]);
        assert_eq!(verbs("ExternalArtifact"), ["download"]);
        assert_eq!(verbs("deployments"), ["restart"]);
        assert_eq!(verbs("DaemonSet"), ["restart"]);
        assert!(Acted::named("Secret").is_none() && Acted::named("").is_none());
        assert_eq!(verbs("Provider"), ["suspend", "resume"]);
        assert_eq!(verbs("ChangePolicy"), [""; 0]);
        let of_pipelines = [
            "reconcile",
            "suspend",
            "resume",
            "promote",
            "rollback",
            "approve",
            "hold",
            "release",
        ];
        assert_eq!(verbs("Pipeline"), of_pipelines);
        assert_eq!(
            (Verb::Rollback.right(), Verb::Release.right()),
            ("promote", "hold")
        );
    }

    #[test]
    fn only_what_a_verb_means_is_written() {
        let options = Options {
            force: true,
            ..Options::default()
        };
        let patch = |verb| super::patch(verb, &options).unwrap();
        assert_eq!(patch(Verb::Suspend), json!({"spec": {"suspend": true}}));
        assert_eq!(patch(Verb::Resume), json!({"spec": {"suspend": null}}));
        assert_eq!(super::patch(Verb::Download, &options), None);
        let reconcile = patch(Verb::Reconcile);
        let annotations = reconcile["metadata"]["annotations"].as_object().unwrap();
        assert_eq!(annotations.len(), 2, "{annotations:?}");
    }
}
