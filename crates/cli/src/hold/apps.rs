//! Kustomizations and HelmReleases that get nothing new: each by a Freeze of its own. Revisions that a Kustomization was rolled back
//! from.

use api::kustomize::RELEASED_ANNOTATION;
use api::meta::{ROLLBACK_REASON_ANNOTATION, ROLLBACK_TO_ANNOTATION, TRUE, condition_types};
use delivery_graph::kind::{self, Kind};
use delivery_graph::object::text;
use jiff::{SignedDuration, Timestamp};
use manifest::ObjectId;
use serde_json::{Value, json};

use crate::cluster::{self, Cluster, Failure, print};

/// Has nothing new delivered to an object.
pub(super) fn hold(kind: &Kind, name: &str, flags: &super::Hold) -> Result<(), Failure> {
    cluster::run(&flags.object.cluster, async |cluster| {
        let app = kind.id(&cluster.namespace, name);
        cluster.need(&app).await?;
        let freeze = freeze_of(&app)?;
        let until = flags.duration.map(until);
        let mut spec = json!({
            "reason": flags.reason, "apps": [{"kind": app.kind, "name": app.name}],
        });
        if let Some(until) = until {
            spec["until"] = json!(until.to_string());
        }
        let object = json!({
            "apiVersion": format!("{}/{}", api::delivery::GROUP, api::delivery::VERSION), "kind": freeze.kind,
            "metadata": {"name": freeze.name, "namespace": freeze.namespace}, "spec": spec,
        });
        cluster.apply(&freeze, "create", &object).await?;
        let until = until.map_or_else(|| "it is released".to_owned(), |until| until.to_string());
        print(&format!(
            "{app}: nothing new is delivered until {until} ({freeze})\n"
        ))
    })
}

/// Ends the hold of an object, and has the revision applied that it was rolled back from.
pub(super) fn release(kind: &Kind, name: &str, flags: &super::Release) -> Result<(), Failure> {
    cluster::run(&flags.object.cluster, async |cluster| {
        let app = kind.id(&cluster.namespace, name);
        let object = cluster.need(&app).await?;
        let freeze = freeze_of(&app)?;
        let was_held = cluster.delete(&freeze).await?;
        if was_held {
            print(&format!("{app}: {freeze} deleted\n"))?;
        }
        if is_rolled_back_by_hand(&object) {
            return end_rollback(&cluster, &app).await;
        }
        match (is_rolled_back(&object), was_held) {
            (true, _) => release_revision(&cluster, &app, &object).await,
            (false, true) => Ok(()),
            (false, false) => Err(Failure::NotReady(format!(
                "neither {app} nor a revision of it is held"
            ))),
        }
    })
}

fn freeze_of(app: &ObjectId) -> Result<ObjectId, Failure> {
    let kind = kind::exact("Freeze");
    let kind = kind.ok_or_else(|| Failure::Usage("Freeze is no known kind".to_owned()))?;
    let name = format!("hold-{}-{}", app.kind.to_lowercase(), app.name);
    Ok(kind.id(&app.namespace, &name))
}

fn until(duration: std::time::Duration) -> Timestamp {
    let duration = SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX);
    let until = Timestamp::now().checked_add(duration).unwrap_or(Timestamp::MAX);
    until.round(jiff::Unit::Second).unwrap_or(until)
}

fn is_rolled_back_by_hand(object: &Value) -> bool {
    let annotations = object.pointer("/metadata/annotations");
    annotations.is_some_and(|all| all.get(ROLLBACK_TO_ANNOTATION).is_some())
}

/// Has what the source says delivered again.
async fn end_rollback(cluster: &Cluster, id: &ObjectId) -> Result<(), Failure> {
    let annotations = json!({ROLLBACK_TO_ANNOTATION: null, ROLLBACK_REASON_ANNOTATION: null});
    let patch = json!({"metadata": {"annotations": annotations}});
    cluster.merge(id, "end the rollback of", &patch).await?;
    print(&format!(
        "{id}: the rollback is ended, and the newest revision of its source is delivered\n"
    ))
}

fn is_rolled_back(object: &Value) -> bool {
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().any(|condition| {
        text(condition, "/type") == condition_types::HELD && text(condition, "/status") == TRUE
    })
}

/// Has the revision applied that is held, whatever its health is.
async fn release_revision(cluster: &Cluster, id: &ObjectId, object: &Value) -> Result<(), Failure> {
    let revision = text(object, "/status/lastAttemptedRevision");
    let patch = json!({"metadata": {
        // Refused if another revision came since it was read.
        "resourceVersion": text(object, "/metadata/resourceVersion"),
        "annotations": {RELEASED_ANNOTATION: revision},
    }});
    cluster.merge(id, "release a revision of", &patch).await?;
    print(&format!("{id}: {revision} is released\n"))
}
