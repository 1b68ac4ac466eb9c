//! Revisions that a Kustomization was rolled back from.

use api::kustomize::RELEASED_ANNOTATION;
use api::meta::{TRUE, condition_types};
use delivery_graph::kind;
use delivery_graph::object::text;
use serde_json::{Value, json};

use crate::cluster::{self, ClusterFlags, Failure, print};

/// Has the revision applied that is held, whatever its health is.
pub(super) fn release(name: &str, flags: &ClusterFlags) -> Result<(), Failure> {
    cluster::run(flags, async |cluster| {
        let kind = kind::exact("Kustomization");
        let kind = kind.ok_or_else(|| Failure::Usage("Kustomization is no known kind".to_owned()))?;
        let id = kind.id(&cluster.namespace, name);
        let object = cluster.need(&id).await?;
        let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
        let is_held = conditions.into_iter().flatten().any(|condition| {
            text(condition, "/type") == condition_types::HELD && text(condition, "/status") == TRUE
        });
        if !is_held {
            return Err(Failure::NotReady(format!("no revision of {id} is held")));
        }
        let revision = text(&object, "/status/lastAttemptedRevision");
        let patch = json!({"metadata": {
            // Refused if another revision came since it was read.
            "resourceVersion": text(&object, "/metadata/resourceVersion"),
            "annotations": {RELEASED_ANNOTATION: revision},
        }});
        cluster.merge(&id, "release a revision of", &patch).await?;
        print(&format!("{id}: {revision} is released\n"))
    })
}
