//! ConfigMaps and Secrets that annotations of objects name, read as the account that applies.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use cluster_access::targets::Target;
use manifest::ObjectId;
use resource_set::Objects;
use resource_set::references::{Reference, digest, fill as fill_objects, named};

use super::{Error, Pass};

/// Puts what they hold into the objects. Returns which objects hold what came from a Secret.
pub(super) async fn fill(
    pass: &mut Pass<'_>,
    target: &Target,
    steps: &mut [Objects],
) -> Result<HashSet<ObjectId>, Error> {
    let mut all = BTreeSet::new();
    let mut confidential = HashSet::new();
    for step in steps.iter() {
        for object in &step.objects {
            let references = named(std::slice::from_ref(object))?;
            if references.iter().any(|reference| reference.kind == "Secret") {
                confidential.insert(object.id());
            }
            all.extend(references);
        }
    }
    let mut found = BTreeMap::new();
    for reference in &all {
        if let Some(value) = read(reference, target).await? {
            found.insert(reference.clone(), value);
        }
    }
    for step in steps.iter_mut() {
        fill_objects(&mut step.objects, &found)?;
    }
    let digests = found
        .iter()
        .map(|(reference, value)| (reference.to_string(), digest(value)));
    pass.next.external_checksum_refs = digests.collect();
    pass.context.memory.refers(pass.key, all.into_iter().collect());
    Ok(confidential)
}

async fn read(reference: &Reference, target: &Target) -> Result<Option<serde_json::Value>, Error> {
    let id = ObjectId {
        group: String::new(),
        kind: reference.kind.clone(),
        namespace: reference.namespace.clone(),
        name: reference.name.clone(),
    };
    let found = super::read(target, &id, "v1").await;
    found.map_err(|problem| Error::Read {
        reference: reference.to_string(),
        problem,
    })
}
