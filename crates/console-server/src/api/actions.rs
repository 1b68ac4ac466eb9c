//! `/api/v1/actions`: what callers have done, and have had done; `…/verbs`: what they may have done.

use std::sync::Arc;

use access_review::limit::Permit;
use axum::Json;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use delivery_graph::{kind, request};
use fleet::picture::Known;
use fleet::row::Key;
use futures::{StreamExt as _, stream};
use jiff::Timestamp;
use ledger::action::Action;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::deliveries::{self, Parameters};
use super::shape::Form;
use crate::actions::{self, Acted, Decision, Error, Mode, Options, Subject, Verb};
use crate::caller::Signed;
use crate::problem::Problem;
use crate::serve::Console;
use crate::sight::{Answer, Sight};

/// Objects of one request, its bytes, and those that are written at a time.
const MAX_OBJECTS: usize = 100;
pub const MAX_BODY: usize = 64 << 10;
const AT_ONCE: usize = 8;
/// Bytes of a name, and of a reason.
const MAX_NAME: usize = 253;
pub(crate) const MAX_REASON: usize = 1000;
/// An object's sources are asked before it; longer ways are circles.
const MAX_SOURCES: usize = 5;

/// What is to be done, to what, and why.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Wanted {
    pub verb: Verb,
    /// At most 100.
    pub objects: Vec<Named>,
    /// For the record and the Event; at most 1,000 bytes.
    #[serde(default)]
    pub reason: String,
    /// Of `reconcile`: install or upgrade a release although nothing has changed.
    #[serde(default)]
    pub force: bool,
    /// Of `reconcile`: forget the failures of a release.
    #[serde(default)]
    pub reset: bool,
    /// Of `reconcile`: first of what each object is made of.
    #[serde(default)]
    pub with_source: bool,
    /// Of decisions about a Pipeline (`promote`, `rollback`, `approve`, `hold`, `release`): the environment. `hold` and
    /// `release` are for all of them without one.
    #[serde(default)]
    pub environment: String,
    /// Of decisions: number of the release. Without one `promote` and `approve` are for the newest that the environment does not have,
    /// `rollback` for the one that was healthy before, `hold` and `release` for all.
    #[serde(default)]
    pub number: Option<u64>,
    /// Of `hold`: how long, such as `12h`; without it until it is released.
    #[serde(default)]
    pub duration: String,
}

/// An object.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Named {
    pub cluster: String,
    /// Also as `ks`, `hr` and so on.
    pub kind: String,
    pub namespace: String,
    pub name: String,
}

impl Named {
    /// Reads `CLUSTER/KIND/NAMESPACE/NAME`; the name of a cluster may have slashes.
    pub fn read(text: &str) -> Option<Self> {
        let mut parts = text.rsplitn(4, '/').map(str::to_owned);
        let (name, namespace, kind) = (parts.next()?, parts.next()?, parts.next()?);
        let cluster = parts.next()?;
        Some(Self {
            cluster,
            kind,
            namespace,
            name,
        })
    }
}

/// How it went with an object.
#[derive(Debug, Serialize, ToSchema)]
pub struct Outcome {
    #[serde(flatten)]
    pub object: Named,
    /// Status code of HTTP: 200 if it was done.
    pub code: u16,
    /// Why it was not done.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// How it went with each object, in their order; sources come before what is made of them.
#[derive(Debug, Serialize, ToSchema)]
pub struct Outcomes {
    items: Vec<Outcome>,
}

/// What may be done.
#[derive(Debug, Serialize, ToSchema)]
pub struct Verbs {
    verbs: Vec<Verb>,
}

/// A page of actions, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub struct Actions {
    /// The rows.
    items: Vec<Action>,
    /// `after` for the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// Reconcile, suspend, resume or restart objects, or decide about Pipelines. You need the verb of that name on each; `rollback` needs
/// `promote`, and `release` needs `hold`.
#[utoipa::path(
    post,
    path = "/api/v1/actions",
    tag = "actions",
    request_body = Wanted,
    responses(
        (status = 200, description = "All was done", body = Outcomes),
        (status = 207, description = "Some was done", body = Outcomes),
        (status = 400, description = "Something that cannot be done", body = Problem),
        (status = 401, description = "No token or session, or one that is not accepted", body = Problem),
        (status = 403, description = "You may not, or another site had your browser send it", body = Outcomes),
        (status = 404, description = "The objects do not exist", body = Outcomes),
        (status = 409, description = "The Pipeline does not allow it, or was changed a moment ago", body = Outcomes),
        (status = 405, description = "This console does nothing", body = Problem),
        (status = 429, description = "You have other requests under way, or did too much in the last hour", body = Problem),
        (status = 502, description = "The API server did not do it", body = Outcomes),
        (status = 503, description = "It cannot be recorded, or a cluster does not say what you may do", body = Outcomes),
    ),
)]
pub async fn act(
    signed: Signed,
    wanted: Result<Json<Wanted>, JsonRejection>,
) -> Result<(StatusCode, Json<Outcomes>), Problem> {
    if signed.sight.console.actions == Mode::None {
        return Err(actions::disabled());
    }
    let Json(wanted) = wanted.map_err(|error| wrong(error.body_text()))?;
    let items = perform(&signed.sight, &wanted).await?;
    Ok((code(&items), Json(Outcomes { items })))
}

/// Does what is wanted, to each object.
pub async fn perform(sight: &Sight, wanted: &Wanted) -> Result<Vec<Outcome>, Problem> {
    if sight.console.actions == Mode::None {
        return Err(actions::disabled());
    }
    let _turn = turn(sight)?;
    let subjects = subjects(sight, wanted).await?;
    let options = Options {
        force: wanted.force,
        reset: wanted.reset,
        decision: Decision {
            environment: wanted.environment.clone(),
            number: wanted.number,
            duration: wanted.duration.clone(),
        },
    };
    let options = &options;
    let acting = subjects.into_iter().map(async |subject| {
        let done = actions::act(sight, &subject, wanted.verb, options, &wanted.reason).await;
        outcome(&subject, done)
    });
    Ok(stream::iter(acting).buffered(AT_ONCE).collect().await)
}

/// Which verbs you have on an object, of those that mean something for its kind.
#[utoipa::path(
    get,
    path = "/api/v1/objects/{cluster}/{kind}/{namespace}/{name}/verbs",
    tag = "actions",
    params(
        ("cluster", description = "Cluster"), ("kind", description = "Kind, also Deployment, StatefulSet and DaemonSet"),
        ("namespace", description = "Namespace"), ("name", description = "Name"),
    ),
    responses(
        (status = 200, description = "The verbs; none if this console does nothing", body = Verbs),
        (status = 400, description = "An invalid name", body = Problem),
        (status = 401, description = "No token or session, or one that is not accepted", body = Problem),
        (status = 503, description = "The API server does not answer", body = Problem),
    ),
)]
pub async fn verbs(
    signed: Signed,
    Path((cluster, kind, namespace, name)): Path<(String, String, String, String)>,
) -> Result<Json<Verbs>, Problem> {
    let subject = subject(&Named {
        cluster,
        kind,
        namespace,
        name,
    })?;
    let verbs = verbs_on(&signed.sight, &subject).await?;
    Ok(Json(Verbs { verbs }))
}

/// What a caller may do to an object.
pub async fn verbs_on(sight: &Sight, subject: &Subject) -> Result<Vec<Verb>, Problem> {
    let mut verbs = Vec::new();
    for verb in Verb::ALL {
        let is_there = sight.console.actions != Mode::None && subject.kind.has(verb);
        if is_there && sight.has_verb(subject, verb).await? {
            verbs.push(verb);
        }
    }
    Ok(verbs)
}

/// What people did by hand to objects that you may get, newest first.
#[utoipa::path(
    get,
    path = "/api/v1/actions",
    tag = "actions",
    params(Parameters, Form),
    responses(
        (status = 200, description = "A page; outcome, revision and by are passed over", body = Actions),
        (status = 400, description = "A parameter that cannot be used", body = Problem),
        (status = 401, description = "No token or session, or one that is not accepted", body = Problem),
        (status = 404, description = "The console keeps no ledger", body = Problem),
        (status = 503, description = "The ledger or the API server does not answer", body = Problem),
    ),
)]
pub async fn list(
    signed: Signed,
    State(console): State<Console>,
    parameters: Result<Query<Parameters>, QueryRejection>,
) -> Result<Json<Actions>, Problem> {
    let ledger = deliveries::ledger(&console)?;
    let parameters = deliveries::read(parameters)?;
    let (wanted, filter) = parameters.filter(Timestamp::now())?;
    let scopes = deliveries::seen(&signed.sight, ledger, &wanted).await?;
    let items = ledger.actions(&scopes, &filter, parameters.username()).await?;
    let last = items.last().filter(|_| items.len() == filter.limit);
    let next = last.map(|row| format!("{}/{}", row.began, row.id));
    Ok(Json(Actions { items, next }))
}

/// One request of each caller at a time: what it asks for is work for others.
pub(crate) fn turn(sight: &Sight) -> Result<Permit, Problem> {
    let busy = || {
        let message = "another request of yours is under way; wait for it";
        Problem::new(StatusCode::TOO_MANY_REQUESTS, message)
    };
    sight
        .console
        .acting
        .begin(&sight.caller.username)
        .ok_or_else(busy)
}

/// The objects, with their sources before them if that is wanted; each once.
async fn subjects(sight: &Sight, wanted: &Wanted) -> Result<Vec<Subject>, Problem> {
    if wanted.objects.is_empty() || wanted.objects.len() > MAX_OBJECTS {
        return Err(wrong(format!("objects: from 1 to {MAX_OBJECTS} may be given")));
    }
    if wanted.reason.len() > MAX_REASON {
        return Err(wrong(format!("reason: it is longer than {MAX_REASON} bytes")));
    }
    let is_reconcile = wanted.verb == Verb::Reconcile;
    if !is_reconcile && (wanted.force || wanted.reset || wanted.with_source) {
        return Err(wrong("force, reset and withSource are for reconcile".to_owned()));
    }
    let is_about_more = !wanted.environment.is_empty() || wanted.number.is_some();
    if !wanted.verb.is_decision() && is_about_more {
        let verb = wanted.verb.word();
        return Err(wrong(format!(
            "environment and number are for decisions about pipelines, not for {verb}"
        )));
    }
    if wanted.verb != Verb::Hold && !wanted.duration.is_empty() {
        return Err(wrong("duration is for hold".to_owned()));
    }
    if wanted.environment.len() > MAX_NAME || wanted.duration.len() > MAX_NAME {
        return Err(wrong(format!(
            "environment, duration: they are longer than {MAX_NAME} bytes"
        )));
    }
    let mut subjects: Vec<Subject> = Vec::new();
    for named in &wanted.objects {
        let subject = subject(named)?;
        let sources = match wanted.with_source {
            true => sources(sight, &subject).await?,
            false => Vec::new(),
        };
        for subject in sources.into_iter().chain([subject]) {
            if !subjects.contains(&subject) {
                subjects.push(subject);
            }
        }
    }
    Ok(subjects)
}

/// What an object is made of, the farthest first, as the picture has it. Who may not get an object does not learn its source so.
async fn sources(sight: &Sight, subject: &Subject) -> Result<Vec<Subject>, Problem> {
    let mut found: Vec<Subject> = Vec::new();
    let mut at = subject.clone();
    while let (Acted::Flux(kind), true) = (at.kind, found.len() < MAX_SOURCES) {
        let key = Key::new(&at.cluster, kind, &at.namespace, &at.name);
        if sight.may_get(&key).await? != Answer::Yes {
            break;
        }
        let Known::Whole(object) = sight.console.picture.object(&key) else {
            break;
        };
        let Some(id) = request::source_of(&object) else {
            break;
        };
        let Some(kind) = kind::kind_of(&id) else {
            break;
        };
        at = Subject {
            cluster: at.cluster,
            kind: Acted::Flux(kind),
            namespace: id.namespace,
            name: id.name,
        };
        if found.contains(&at) {
            break;
        }
        if kind.answers {
            found.insert(0, at.clone());
        }
    }
    Ok(found)
}

pub(super) fn subject(named: &Named) -> Result<Subject, Problem> {
    let kind = Acted::named(&named.kind);
    let kind = kind.ok_or_else(|| {
        wrong(format!(
            "kind: there is nothing to be done to a {:.50}",
            named.kind
        ))
    })?;
    for (field, value) in [("namespace", &named.namespace), ("name", &named.name)] {
        if !is_name(value) {
            return Err(wrong(format!("{field}: it is no name")));
        }
    }
    Ok(Subject {
        cluster: Arc::from(named.cluster.as_str()),
        kind,
        namespace: named.namespace.clone(),
        name: named.name.clone(),
    })
}

/// Returns whether a text may be the name of an object or a namespace.
pub(crate) fn is_name(text: &str) -> bool {
    let is_of_name =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'.';
    !text.is_empty() && text.len() <= MAX_NAME && text.bytes().all(is_of_name)
}

fn outcome(subject: &Subject, done: Result<(), Error>) -> Outcome {
    let code = match &done {
        Ok(()) => StatusCode::OK,
        Err(error) => refusal(error),
    };
    Outcome {
        object: Named {
            cluster: subject.cluster.to_string(),
            kind: subject.kind.kind().to_owned(),
            namespace: subject.namespace.clone(),
            name: subject.name.clone(),
        },
        code: code.as_u16(),
        message: done.err().map(|error| error.to_string()).unwrap_or_default(),
    }
}

/// The code of what was not done.
pub(crate) fn refusal(error: &Error) -> StatusCode {
    match error {
        Error::Refused { .. } | Error::Denied(_) => StatusCode::FORBIDDEN,
        Error::Meaningless { .. } | Error::Reads => StatusCode::BAD_REQUEST,
        Error::TooMuch => StatusCode::TOO_MANY_REQUESTS,
        Error::Unrecorded | Error::Silent => StatusCode::SERVICE_UNAVAILABLE,
        Error::Absent(_) => StatusCode::NOT_FOUND,
        Error::Undecided(_) | Error::Raced => StatusCode::CONFLICT,
        Error::Failed(_) => StatusCode::BAD_GATEWAY,
    }
}

/// The code of all: that of the first that was not done, unless some were.
pub fn code(items: &[Outcome]) -> StatusCode {
    let done = StatusCode::OK.as_u16();
    let bad = items.iter().find(|item| item.code != done);
    let some = items.iter().any(|item| item.code == done);
    match bad {
        None => StatusCode::OK,
        Some(_) if some => StatusCode::MULTI_STATUS,
        Some(item) => StatusCode::from_u16(item.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
    }
}

fn wrong(message: String) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, message)
}
