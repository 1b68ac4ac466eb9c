//! `/api/v1/objects/CLUSTER/KIND/NAMESPACE/NAME`: one object, what it applied, and why it is not ready.

use std::sync::Arc;

use axum::Json;
use axum::extract::Path;
use axum::http::StatusCode;
use delivery_graph::climb::{climb, climb_by_inventory};
use delivery_graph::walk::walk_over;
use delivery_graph::{kind, object, origin, tree};
use fleet::picture::Known;
use fleet::row::Key;
use manifest::ObjectId;
use serde_json::Value;

use crate::caller::Signed;
use crate::problem::Problem;
use crate::sight::{Answer, SILENT, TOO_LARGE};

type Named = Path<(String, String, String, String)>;

/// An object, whole, as the cluster has it.
#[utoipa::path(
    get,
    path = "/api/v1/objects/{cluster}/{kind}/{namespace}/{name}",
    tag = "objects",
    params(
        ("cluster", description = "Cluster"), ("kind", description = "Kind, such as Kustomization or ks"),
        ("namespace", description = "Namespace"), ("name", description = "Name"),
    ),
    responses(
        (status = 200, description = "The object, without managed fields", body = Object),
        (status = 401, description = "No token, or one that is not accepted", body = Problem),
        (status = 403, description = "You may not get it, whether it is there or not", body = Problem),
        (status = 404, description = "It does not exist", body = Problem),
        (status = 503, description = "The cluster does not say what you may get", body = Problem),
        (status = 413, description = "It is too large to be kept", body = Problem),
    ),
)]
pub async fn get(signed: Signed, named: Named) -> Result<Json<Value>, Problem> {
    let (_, object) = find(&signed, named).await?;
    Ok(Json(object))
}

/// What an object of Flux has applied, what that has applied, and so on; of images, what builds upon them.
#[utoipa::path(
    get,
    path = "/api/v1/objects/{cluster}/{kind}/{namespace}/{name}/tree",
    tag = "objects",
    params(
        ("cluster", description = "Cluster"), ("kind", description = "Kind"),
        ("namespace", description = "Namespace"), ("name", description = "Name"),
    ),
    responses(
        (status = 200, description = "A node: group, kind, namespace, name, status, message, and its objects", body = Object),
        (status = 401, description = "No token, or one that is not accepted", body = Problem),
        (status = 403, description = "You may not get it, whether it is there or not", body = Problem),
        (status = 404, description = "It does not exist", body = Problem),
        (status = 503, description = "The cluster does not say what you may get", body = Problem),
        (status = 413, description = "It is too large to be kept", body = Problem),
    ),
)]
pub async fn tree(signed: Signed, named: Named) -> Result<Json<Value>, Problem> {
    let (key, object) = find(&signed, named).await?;
    let seen = signed.sight.of_cluster(&key.cluster);
    let nodes = match tree::has_followers(&object::id(&object).kind) {
        true => tree::follow(&seen, &object).await,
        false => tree::grow(&seen, &object, false).await,
    };
    Ok(Json(tree::value(&nodes, 0)))
}

/// Why an object is not ready: the way to the causes, and the commit that it came from.
#[utoipa::path(
    get,
    path = "/api/v1/objects/{cluster}/{kind}/{namespace}/{name}/why",
    tag = "objects",
    params(
        ("cluster", description = "Cluster"), ("kind", description = "Kind"),
        ("namespace", description = "Namespace"), ("name", description = "Name"),
    ),
    responses(
        (status = 200, description = "object, state, message, revision, and `because`: what it waits for", body = Object),
        (status = 401, description = "No token, or one that is not accepted", body = Problem),
        (status = 403, description = "You may not get it, whether it is there or not", body = Problem),
        (status = 404, description = "It does not exist", body = Problem),
        (status = 503, description = "The cluster does not say what you may get", body = Problem),
        (status = 413, description = "It is too large to be kept", body = Problem),
    ),
)]
pub async fn why(signed: Signed, named: Named) -> Result<Json<Value>, Problem> {
    let (key, object) = find(&signed, named).await?;
    let seen = signed.sight.of_cluster(&key.cluster);
    let mut found = walk_over(&seen, &object::id(&object)).await;
    found.from = origin::origin_of(&climb(&seen, &object).await);
    let lost = |_| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the answer cannot be written");
    serde_json::to_value(&found).map(Json).map_err(lost)
}

/// Where an object comes from: what applied it, what applied that, and so on, with sources and the commit.
#[utoipa::path(
    get,
    path = "/api/v1/objects/{cluster}/{kind}/{namespace}/{name}/trace",
    tag = "objects",
    params(
        ("cluster", description = "Cluster"),
        ("kind", description = "Kind, any at all, with its group: Deployment.apps, ConfigMap; workloads without, too"),
        ("namespace", description = "Namespace; - for objects that have none"), ("name", description = "Name"),
    ),
    responses(
        (status = 200, description = "object, state, message, revision, and `because`: where it is from", body = Object),
        (status = 401, description = "No token, or one that is not accepted", body = Problem),
        (status = 403, description = "An object of Flux that you may not get, whether it is there or not", body = Problem),
        (status = 404, description = "It does not exist, or no inventory that you may get has it", body = Problem),
        (status = 503, description = "The cluster does not say what you may get", body = Problem),
        (status = 413, description = "It is too large to be kept", body = Problem),
    ),
)]
pub async fn trace(signed: Signed, named: Named) -> Result<Json<Value>, Problem> {
    let lost = |_| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the answer cannot be written");
    let Path((cluster, kind, namespace, name)) = &named;
    let mut found = if kind::named(kind).is_some() {
        let (key, object) = find(&signed, named).await?;
        climb(&signed.sight.of_cluster(&key.cluster), &object).await
    } else {
        let id = named_anything(kind, namespace, name);
        let seen = signed.sight.of_cluster(&cluster.as_str().into());
        let unknown = || {
            let message = format!("no inventory that you may get has {id} in {cluster}");
            Problem::new(StatusCode::NOT_FOUND, message)
        };
        climb_by_inventory(&seen, &id).await.ok_or_else(unknown)?
    };
    found.from = origin::origin_of(&found);
    serde_json::to_value(&found).map(Json).map_err(lost)
}

/// Reads `Deployment.apps`. Without a group the common workloads have theirs.
fn named_anything(kind: &str, namespace: &str, name: &str) -> ObjectId {
    let (kind, group) = kind.split_once('.').unwrap_or(match kind {
        "Deployment" | "StatefulSet" | "DaemonSet" => (kind, "apps"),
        "CronJob" | "Job" => (kind, "batch"),
        _ => (kind, ""),
    });
    ObjectId {
        group: group.to_owned(),
        kind: kind.to_owned(),
        namespace: if namespace == "-" { "" } else { namespace }.to_owned(),
        name: name.to_owned(),
    }
}

pub async fn find(
    signed: &Signed,
    Path((cluster, kind, namespace, name)): Named,
) -> Result<(Key, Value), Problem> {
    let Some(kind) = kind::named(&kind) else {
        let message = "the kind is none of Flux or Windlass";
        return Err(Problem::new(StatusCode::NOT_FOUND, message));
    };
    let cluster: Arc<str> = cluster.into();
    let key = Key::new(&cluster, kind, &namespace, &name);
    // First: a refusal must not tell whether it is there.
    match signed.sight.may_get(&key).await? {
        Answer::Yes => {}
        Answer::Silent => return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, SILENT)),
        Answer::No => {
            let caller = &signed.caller().username;
            let message = format!(
                "{caller} may not get {}.{} in {namespace}",
                kind.plural, kind.group
            );
            return Err(Problem::new(StatusCode::FORBIDDEN, message));
        }
    }
    match signed.sight.console.picture.object(&key) {
        Known::Whole(object) => Ok((key, object)),
        Known::TooLarge => Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, TOO_LARGE)),
        Known::Absent => {
            let message = format!("there is no {} {namespace}/{name} in {cluster}", kind.kind);
            Err(Problem::new(StatusCode::NOT_FOUND, message))
        }
    }
}
