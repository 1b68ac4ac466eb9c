//! StatefulSets: replicas created and ready, then the partition or the revision. Its controller writes no conditions.

use serde_json::Value;

use crate::fields;
use crate::verdict::Verdict;

pub(crate) fn verdict(object: &Value) -> Verdict {
    // Pods are replaced when a person deletes them: nothing to wait for.
    if fields::text_or(object, "spec.updateStrategy.type", "") == "OnDelete" {
        return Verdict::current("is updated by hand (OnDelete)");
    }
    let wanted = fields::integer_or(object, "spec.replicas", 1);
    let created = fields::integer_or(object, "status.replicas", 0);
    let ready = fields::integer_or(object, "status.readyReplicas", 0);
    if wanted > created {
        return Verdict::in_progress(format!("{created} of {wanted} replicas created"));
    }
    if wanted > ready {
        return Verdict::in_progress(format!("{ready} of {wanted} replicas ready"));
    }
    if created > wanted {
        return Verdict::in_progress(format!(
            "{} replicas too many have not yet ended",
            created.saturating_sub(wanted)
        ));
    }
    // kstatus takes -1 for "not set".
    match fields::integer_or(object, "spec.updateStrategy.rollingUpdate.partition", -1) {
        -1 => revision(object, wanted),
        partition => partition_updated(object, wanted.saturating_sub(partition)),
    }
}

/// Only the Pods from the partition's number on are to be updated.
fn partition_updated(object: &Value, wanted: i64) -> Verdict {
    let updated = fields::integer_or(object, "status.updatedReplicas", 0);
    if updated < wanted {
        Verdict::in_progress(format!(
            "{updated} of {wanted} replicas beyond the partition updated"
        ))
    } else {
        Verdict::current(format!("{updated} replicas updated, the partition is complete"))
    }
}

fn revision(object: &Value, wanted: i64) -> Verdict {
    let current = fields::integer_or(object, "status.currentReplicas", 0);
    if wanted > current {
        return Verdict::in_progress(format!("{current} of {wanted} replicas at the current revision"));
    }
    let current_revision = fields::text_or(object, "status.currentRevision", "");
    let update_revision = fields::text_or(object, "status.updateRevision", "");
    if current_revision != update_revision {
        return Verdict::in_progress(format!(
            "revision {update_revision:?} is not yet the current one ({current_revision:?})"
        ));
    }
    Verdict::current(format!("{wanted} replicas ready"))
}
