//! `…/diff`: what an object wants to have applied beside what is there, with the reason for each difference, or what the next releases of a
//! pipeline would change in files; `…/values`: what it is built with; `/api/v1/diff`: beside what another one wants.
//!
//! It is asked as the caller, by dry runs: the API server decides what they may read and compare.

use std::time::Duration;

use api::delivery::{Environment, Pipeline, Release};
use axum::Json;
use axum::extract::Path;
use axum::extract::Query;
use axum::extract::rejection::QueryRejection;
use axum::http::StatusCode;
use delivery_diff::{
    Archives, ArtifactFiles, Content, Desired, Entry, Nothing, Reader, Section, Subject, Summary, World,
    given, promoted, source_of,
};
use delivery_graph::object::{self, text};
use fleet::picture::Known;
use fleet::row::Key;
use jiff::Timestamp;
use manifest::ObjectId;
use promotion::board::{Cell, State, board};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::runtime::Handle;
use utoipa::{IntoParams, ToSchema};

use super::actions::Named;
use super::object::find;
use crate::caller::Signed;
use crate::problem::Problem;
use crate::sight::{Answer, Sight};

/// How long a comparison may take: it builds, and asks about each object.
const PATIENCE: Duration = Duration::from_secs(60);

/// How much detail to return.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Parameters {
    /// Include each object before and after, with values of Secrets masked.
    full: bool,
}

/// What is desired, and what is there.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Difference {
    /// The revision that is desired: what the source or the chart has.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub desired: String,
    /// The revision that was applied last.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub applied: String,
    /// Why they differ; empty if they do not.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// How many objects would be created, changed, recreated, pruned and so on.
    #[schema(value_type = Object)]
    summary: Summary,
    /// Objects that are not as desired: object, action, file, message, and fields with path, old, new and setBy.
    #[schema(value_type = Vec<Object>)]
    pub objects: Vec<Value>,
    /// Limitations of the comparison.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// What a Kustomization or HelmRelease would apply now, beside what is there; of a Pipeline, what the releases that its environments wait
/// for would change in files. Nothing is written.
///
/// You need what an apply needs: `get` on the object, its source and what its variables or values are from, and `get` and `patch` on
/// what it applies; what you may not compare is named.
#[utoipa::path(
    get,
    path = "/api/v1/objects/{cluster}/{kind}/{namespace}/{name}/diff",
    tag = "objects",
    params(
        Parameters,
        ("cluster", description = "Cluster"), ("kind", description = "Kustomization, HelmRelease or Pipeline"),
        ("namespace", description = "Namespace"), ("name", description = "Name"),
    ),
    responses(
        (status = 200, description = "The differences", body = Difference),
        (status = 400, description = "Another kind", body = Problem),
        (status = 401, description = "No token, or one that is not accepted", body = Problem),
        (status = 403, description = "You may not get it, whether it is there or not", body = Problem),
        (status = 404, description = "It does not exist", body = Problem),
        (status = 409, description = "It cannot be built, or what it is made of cannot be had", body = Problem),
        (status = 422, description = "This console does not ask as its callers, or not in this cluster", body = Problem),
        (status = 429, description = "You have another comparison under way", body = Problem),
        (status = 503, description = "The cluster does not say what you may get, or it takes too long", body = Problem),
    ),
)]
pub async fn diff(
    signed: Signed,
    parameters: Result<Query<Parameters>, QueryRejection>,
    named: Path<(String, String, String, String)>,
) -> Result<Json<Difference>, Problem> {
    let Query(parameters) = parameters.map_err(|error| wrong(error.body_text()))?;
    let (key, object) = find(&signed, named).await?;
    difference(&signed, &key, object, parameters.full).await.map(Json)
}

/// Compares an object that the caller may get.
pub async fn difference(
    signed: &Signed,
    key: &Key,
    object: Value,
    full: bool,
) -> Result<Difference, Problem> {
    let sight = &signed.sight;
    if key.kind().kind == "Pipeline" {
        return releases(sight, key, object).await;
    }
    check_kind(key)?;
    let (client, archives) = sight.as_the_caller(&key.cluster)?;
    let (desired, applied) = (
        desired(sight, key, &object).await?,
        object::revision(&object).to_owned(),
    );
    let subject = object.clone();
    let comparing = one_at_a_time(sight, move || async move {
        compare(Reader::new(client), archives, subject).await
    });
    let section = comparing.await?;
    if let Some(error) = section.error {
        return Err(Problem::new(StatusCode::CONFLICT, error));
    }
    let summary = Summary::from_sections(std::slice::from_ref(&section));
    Ok(Difference {
        reason: reason(&object, &desired, &applied, &summary),
        summary,
        desired,
        applied,
        objects: section.objects.iter().map(|entry| shown(entry, full)).collect(),
        notes: section.notes,
    })
}

/// What the releases that the environments of a pipeline wait for would change in files.
async fn releases(sight: &Sight, key: &Key, object: Value) -> Result<Difference, Problem> {
    let unreadable = |error| Problem::new(StatusCode::CONFLICT, format!("it cannot be read: {error}"));
    let pipeline: Pipeline = serde_json::from_value(object).map_err(unreadable)?;
    let (client, archives) = sight.as_the_caller(&key.cluster)?;
    let comparing = one_at_a_time(sight, move || async move {
        let (reader, mut objects, mut notes) = (Reader::new(client), Vec::new(), Vec::new());
        for (environment, release) in waiting(&pipeline) {
            let place = (environment, release);
            for target in promoted(&reader, &archives, &pipeline, place).await {
                let where_ = format!(
                    "release {} in {} ({})",
                    release.number, environment.name, target.target
                );
                match target.problem {
                    Some(problem) => notes.push(format!("{where_}: {problem}")),
                    None if target.values.is_empty() => notes.push(format!("{where_}: no file changes")),
                    None => {}
                }
                let shown = target.values.iter().map(|value| {
                    json!({
                        "object": value.object, "action": "changed", "file": value.file, "message": where_,
                        "fields": [{"path": value.field, "old": value.old, "new": value.new}],
                    })
                });
                objects.extend(shown);
            }
        }
        (objects, notes)
    });
    let (objects, notes) = comparing.await?;
    Ok(Difference {
        desired: String::new(),
        applied: String::new(),
        reason: String::new(),
        summary: Summary {
            changed: objects.len(),
            ..Summary::default()
        },
        objects,
        notes,
    })
}

/// The environments of a pipeline that a release waits to enter.
fn waiting(pipeline: &Pipeline) -> Vec<(&Environment, &Release)> {
    let board = board(pipeline, Timestamp::now());
    let status = pipeline.status.as_ref();
    let known = |number: u64| status?.releases.iter().find(|known| known.number == number);
    let environments = pipeline.spec.environments.iter().enumerate();
    let waiting = environments.filter_map(|(at, environment)| {
        let is_next = |cells: &[Cell]| cells.get(at).is_some_and(|cell| cell.state == State::Waiting);
        let row = board.rows.iter().find(|row| is_next(&row.cells))?;
        Some((environment, known(row.release.number)?))
    });
    waiting.collect()
}

/// What an object is built with.
#[derive(Debug, Serialize, ToSchema)]
pub struct Values {
    /// The values, by their path.
    pub values: Vec<ValueOf>,
    /// References that could not be read, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// A value.
#[derive(Debug, Serialize, ToSchema)]
pub struct ValueOf {
    /// Its path, such as `image.tag`. A list is one value.
    pub path: String,
    /// As JSON. Values from Secrets are masked.
    pub value: String,
    /// The source that set it last: `spec.values`, or `ConfigMap/name: key`.
    pub origin: String,
}

/// The values of a HelmRelease (without the defaults of its chart) or the variables of a Kustomization, with the origin of each.
///
/// Requires `get` on the object, and on the ConfigMaps and Secrets it refers to; those you may not get are omitted and listed in `notes`.
#[utoipa::path(
    get,
    path = "/api/v1/objects/{cluster}/{kind}/{namespace}/{name}/values",
    tag = "objects",
    params(
        ("cluster", description = "Cluster"), ("kind", description = "Kustomization or HelmRelease"),
        ("namespace", description = "Namespace"), ("name", description = "Name"),
    ),
    responses(
        (status = 200, description = "The values", body = Values),
        (status = 400, description = "Another kind", body = Problem),
        (status = 401, description = "No token, or one that is not accepted", body = Problem),
        (status = 403, description = "You may not get it, whether it is there or not", body = Problem),
        (status = 404, description = "It does not exist", body = Problem),
        (status = 409, description = "They cannot be composed", body = Problem),
        (status = 422, description = "This console does not ask as its callers, or not in this cluster", body = Problem),
        (status = 429, description = "You have another comparison under way", body = Problem),
        (status = 503, description = "The cluster does not say what you may get, or it takes too long", body = Problem),
    ),
)]
pub async fn values(
    signed: Signed,
    named: Path<(String, String, String, String)>,
) -> Result<Json<Values>, Problem> {
    let (key, object) = find(&signed, named).await?;
    values_of(&signed, &key, object).await.map(Json)
}

/// What an object that the caller may get is built with.
pub async fn values_of(signed: &Signed, key: &Key, object: Value) -> Result<Values, Problem> {
    check_kind(key)?;
    let client = signed.sight.client_of_the_caller(&key.cluster)?;
    let looking = one_at_a_time(&signed.sight, move || async move {
        given(Reader::new(client), &object).await
    });
    let found = looking.await?;
    let found = found.map_err(|error| Problem::new(StatusCode::CONFLICT, error))?;
    let values = found.values.into_iter().map(|one| ValueOf {
        path: one.path,
        value: one.value,
        origin: one.origin,
    });
    Ok(Values {
        values: values.collect(),
        notes: found.notes,
    })
}

/// Runs one comparison at a time, off the async threads: builds take processor time, and rendering futures are not `Send`.
pub(crate) async fn one_at_a_time<T, F>(
    sight: &Sight,
    work: impl FnOnce() -> F + Send + 'static,
) -> Result<T, Problem>
where
    T: Send + 'static,
    F: Future<Output = T>,
{
    let busy = || {
        let message = "you have another comparison under way";
        Problem::new(StatusCode::TOO_MANY_REQUESTS, message)
    };
    let late = |_| Problem::new(StatusCode::SERVICE_UNAVAILABLE, "it takes too long; try again");
    let ending = |_| Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the console is ending");
    let lost = |_| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the comparison was lost");
    let console = &sight.console;
    let own = console.comparing_of_one.begin(&sight.caller.username);
    let own = own.ok_or_else(busy)?;
    let turn = tokio::time::timeout(PATIENCE, console.comparing.clone().acquire_owned()).await;
    let turn = turn.map_err(late)?.map_err(ending)?;
    let handle = Handle::current();
    let working = tokio::task::spawn_blocking(move || {
        // Also if nobody waits for the answer any more.
        let (_own, _turn) = (own, turn);
        handle.block_on(async { tokio::time::timeout(PATIENCE, work()).await })
    });
    working.await.map_err(lost)?.map_err(late)
}

/// Two objects, or one in two revisions: `CLUSTER/KIND/NAMESPACE/NAME`, and for a revision of a HelmRelease that Helm has a record of,
/// `…@3`.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Sides {
    /// What is compared.
    pub from: String,
    /// With what.
    pub to: String,
    /// Include each object on both sides, with values of Secrets masked.
    pub full: bool,
}

/// What two objects want to have applied, beside each other.
#[derive(Debug, Serialize, ToSchema)]
pub struct Between {
    /// What `from` was made of.
    pub from: String,
    /// What `to` was made of.
    pub to: String,
    /// How many objects are only in `to` (created), only in `from` (pruned), in both and changed or unchanged.
    #[schema(value_type = Object)]
    summary: Summary,
    /// Objects that differ: object, action, and fields with path, old and new.
    #[schema(value_type = Vec<Object>)]
    pub objects: Vec<Value>,
    /// Limitations of the comparison.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// How what one Kustomization or HelmRelease wants to have applied differs from what another one wants: between clusters, between
/// environments, or between revisions of a release. Nothing of what is there is compared.
///
/// Objects are the same if kind and name are, without the namespace, the prefix and the suffix that each gives to all of its own. You need
/// `get` on both, on their sources, and on what variables and values are from; on Helm's records for a revision.
#[utoipa::path(
    get,
    path = "/api/v1/diff",
    tag = "objects",
    params(Sides),
    responses(
        (status = 200, description = "The differences", body = Between),
        (status = 400, description = "A side that cannot be understood, or another kind", body = Problem),
        (status = 401, description = "No token, or one that is not accepted", body = Problem),
        (status = 403, description = "You may not get one of them, whether it is there or not", body = Problem),
        (status = 404, description = "One of them does not exist", body = Problem),
        (status = 409, description = "One cannot be built, or what it is made of cannot be had", body = Problem),
        (status = 422, description = "This console does not ask as its callers, or not in this cluster", body = Problem),
        (status = 429, description = "You have another comparison under way", body = Problem),
        (status = 503, description = "The cluster does not say what you may get, or it takes too long", body = Problem),
    ),
)]
pub async fn between(
    signed: Signed,
    sides: Result<Query<Sides>, QueryRejection>,
) -> Result<Json<Between>, Problem> {
    let Query(sides) = sides.map_err(|error| wrong(error.body_text()))?;
    compared(&signed, &sides).await.map(Json)
}

/// Compares two objects that the caller may get.
pub async fn compared(signed: &Signed, sides: &Sides) -> Result<Between, Problem> {
    let from = Side::find(signed, "from", &sides.from).await?;
    let to = Side::find(signed, "to", &sides.to).await?;
    let comparing = one_at_a_time(&signed.sight, move || async move {
        let from = from.desired().await.map_err(|error| format!("from: {error}"))?;
        let to = to.desired().await.map_err(|error| format!("to: {error}"))?;
        let section = from.compared_with(&to);
        Ok::<_, String>((section, from.from, to.from))
    });
    let compared = comparing.await?;
    let failed = |error: String| Problem::new(StatusCode::CONFLICT, error);
    let (section, from, to) = compared.map_err(failed)?;
    Ok(Between {
        from,
        to,
        summary: Summary::from_sections(std::slice::from_ref(&section)),
        objects: section
            .objects
            .iter()
            .map(|entry| shown(entry, sides.full))
            .collect(),
        notes: section.notes,
    })
}

fn wrong(message: String) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, message)
}

/// One of two that are compared.
struct Side {
    reader: Reader,
    archives: Archives,
    object: Value,
    /// A revision of Helm's; None for what it wants now.
    revision: Option<i64>,
}

impl Side {
    async fn find(signed: &Signed, name: &str, text: &str) -> Result<Self, Problem> {
        let read = || {
            let (object, revision) = match text.rsplit_once('@') {
                Some((object, revision)) => {
                    (object, Some(revision.parse().ok().filter(|number| *number > 0)?))
                }
                None => (text, None),
            };
            let named = Named::read(object)?;
            Some(((named.cluster, named.kind, named.namespace, named.name), revision))
        };
        let unclear = || {
            wrong(format!(
                "{name}: write CLUSTER/KIND/NAMESPACE/NAME, or …@REVISION of a HelmRelease"
            ))
        };
        let (named, revision) = read().ok_or_else(unclear)?;
        let (key, object) = find(signed, Path(named)).await?;
        check_kind(&key)?;
        if revision.is_some() && key.kind().kind != "HelmRelease" {
            return Err(wrong(format!(
                "{name}: only of releases are older revisions kept"
            )));
        }
        let (client, archives) = signed.sight.as_the_caller(&key.cluster)?;
        Ok(Self {
            reader: Reader::new(client),
            archives,
            object,
            revision,
        })
    }

    async fn desired(self) -> Result<Desired, String> {
        let (world, subject) =
            world(self.reader, self.archives, self.object, self.revision.is_some()).await?;
        match self.revision {
            Some(revision) => Desired::at(&world, &subject, revision).await,
            None => Desired::now(&world, &subject).await,
        }
    }
}

fn check_kind(key: &Key) -> Result<(), Problem> {
    match key.kind().kind {
        "Kustomization" | "HelmRelease" => Ok(()),
        _ => Err(wrong(
            "only Kustomizations and HelmReleases are compared".to_owned(),
        )),
    }
}

/// The world of an object, with what its source has now unless that is not asked about.
async fn world(
    reader: Reader,
    archives: Archives,
    object: Value,
    is_past: bool,
) -> Result<(World, Subject), String> {
    let content: Box<dyn Content> = match text(&object, "/kind") {
        "Kustomization" if !is_past => {
            let source = source_of(&object).ok_or("its spec names no source")?;
            Box::new(ArtifactFiles::fetch(&reader, &archives, &source).await?)
        }
        _ => Box::new(Nothing),
    };
    let mut world = World::new(reader, content);
    world.archives = archives;
    Ok((world, Subject::root(object)))
}

async fn compare(reader: Reader, archives: Archives, object: Value) -> Section {
    let id = object::id(&object).to_string();
    match world(reader, archives, object, false).await {
        Ok((mut world, subject)) => {
            let sections = delivery_diff::compare(&mut world, vec![subject], false, |_| {}).await;
            let empty = || Section::new(id, None);
            sections.into_iter().next().unwrap_or_else(empty)
        }
        Err(error) => Section {
            error: Some(error),
            ..Section::new(id, None)
        },
    }
}

/// What the source or the chart has, as far as the caller may get it.
async fn desired(sight: &Sight, key: &Key, object: &Value) -> Result<String, Problem> {
    let mut made_of = object::links(object).into_iter();
    let Some(link) = made_of.find(|link| matches!(link.word, "source" | "chart")) else {
        return Ok(String::new());
    };
    let ObjectId {
        kind,
        namespace,
        name,
        ..
    } = &link.id;
    let Some(kind) = delivery_graph::kind::exact(kind) else {
        return Ok(String::new());
    };
    let source = Key::new(&key.cluster, kind, namespace, name);
    if sight.may_get(&source).await? != Answer::Yes {
        return Ok(String::new());
    }
    Ok(match sight.console.picture.object(&source) {
        Known::Whole(source) => object::revision(&source).to_owned(),
        _ => String::new(),
    })
}

/// Why what is there is not what is desired.
fn reason(object: &Value, desired: &str, applied: &str, summary: &Summary) -> String {
    let ready = object::ready(object);
    if desired == applied && summary.changes() == 0 {
        return String::new();
    }
    if object::is_suspended(object) {
        return "it is suspended".to_owned();
    }
    if ready.status == "False" || object::is_in_progress(object) {
        return delivery_graph::one_line(ready.message);
    }
    match desired == applied {
        true => "it was changed in the cluster since it was applied".to_owned(),
        false => format!("{desired} was not applied yet"),
    }
}

pub(super) fn shown(entry: &Entry, full: bool) -> Value {
    let mut value = json!(entry);
    if full {
        (value["before"], value["after"]) = (entry.states.0.clone(), entry.states.1.clone());
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_what_keeps_it_from_being_applied() {
        let object = |suspend: bool, status: &str| {
            json!({
                "kind": "Kustomization", "metadata": {"generation": 1}, "spec": {"suspend": suspend},
                "status": {"observedGeneration": 1, "conditions": [{"type": "Ready", "status": status, "message": "no such\nfile"}]},
            })
        };
        let none = Summary::default();
        let some = Summary {
            changed: 1,
            ..Summary::default()
        };
        let why = |object: &Value, desired: &str, summary: &Summary| reason(object, desired, "a", summary);
        assert_eq!(why(&object(false, "True"), "a", &none), "");
        assert_eq!(why(&object(true, "True"), "b", &none), "it is suspended");
        assert_eq!(why(&object(false, "False"), "b", &none), "no such file");
        assert_eq!(why(&object(false, "True"), "b", &none), "b was not applied yet");
        assert!(why(&object(false, "True"), "a", &some).contains("changed in the cluster"));
    }
}
