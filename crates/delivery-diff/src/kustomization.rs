//! Computes what content would change for one Kustomization.

use api::kustomize::{DeletionPolicy, Kustomization};
use kube_apply::{CommonMetadata, Engine, Fate, IgnoreRule, IgnoreRules, Means};
use kustomize_build::FileKind;

use crate::apply::{self, owner};
use crate::built::{self, Built, Closed};
use crate::report::{Action, Entry};
use crate::subject::{Compared, Subject, inventory};
use crate::world::World;

/// Builds, asks, and notes what would go.
pub(crate) async fn compare(
    world: &mut World,
    subject: &Subject,
    compared: &mut Compared,
) -> Result<(), String> {
    let object = read(subject, compared)?;
    let spec = &object.spec;
    let engine = world.kustomize(subject).await?.engine;
    if spec.suspend {
        compared.section.is_suspended = true;
        let note = "it is suspended: nothing of this would happen before it is resumed";
        compared.section.notes.push(note.to_owned());
    }
    let folder = folder(world, subject, &object)?;
    compared.section.from = format!("./{folder}");
    let built = built::build(world, &object, &folder, compared.is_confidential).await?;
    compared.is_confidential = built.is_confidential;
    let Built { closed, notes, .. } = &built;
    compared.section.notes.extend(notes.iter().cloned());
    for Closed { id, file, why } in closed {
        compared.built.insert(id.clone());
        world.confidential.add(id.clone());
        let mut entry = Entry::new(id.to_string(), Action::NotCompared, why.clone());
        entry.file.clone_from(file);
        compared.section.objects.push(entry);
    }
    ask(world, (subject, &engine), &object, &built, compared).await?;
    let stale = apply::stale(compared, &inventory(&subject.object), closed);
    let reason = (!spec.prune).then_some("spec.prune is off");
    prune(world, (subject, &engine), &stale, reason, compared).await;
    Ok(())
}

/// Computes what would be deleted with a Kustomization.
pub(crate) async fn gone(
    world: &mut World,
    subject: &Subject,
    compared: &mut Compared,
) -> Result<(), String> {
    let object = read(subject, compared)?;
    let reason = why_objects_stay(&object);
    compared.section.notes.push("it would be deleted".to_owned());
    let stale = inventory(&subject.object).sorted();
    if let Some(reason) = reason {
        keep(&stale, reason, compared);
        return Ok(());
    }
    let engine = world.kustomize(subject).await?.engine;
    prune(world, (subject, &engine), &stale, None, compared).await;
    Ok(())
}

/// Why what it applied stays when it goes itself; None if that goes too.
fn why_objects_stay(object: &Kustomization) -> Option<&'static str> {
    let stays = match object.deletion_policy() {
        DeletionPolicy::MirrorPrune => !object.spec.prune,
        DeletionPolicy::Orphan => true,
        DeletionPolicy::Delete | DeletionPolicy::WaitForTermination => false,
    };
    match object.spec.suspend {
        true => Some(SUSPENDED),
        false => stays.then_some("the deletion policy leaves it"),
    }
}

/// Why what a Kustomization or HelmRelease applied stays when it goes.
pub(super) const SUSPENDED: &str = "what applied it is suspended, and leaves everything as it is";

pub(crate) fn read(subject: &Subject, compared: &Compared) -> Result<Kustomization, String> {
    serde_json::from_value(subject.object.clone())
        .map_err(|error| compared.hide_quotes("failed to read it", error))
}

pub(crate) fn folder(world: &World, subject: &Subject, object: &Kustomization) -> Result<String, String> {
    let path = object.spec.path.as_deref().unwrap_or_default();
    let folder = subject.folder.clone();
    let folder = folder.unwrap_or_else(|| flux_spec::build::path::clamp(path));
    match world.content.kind(&folder) {
        Ok(Some(FileKind::Directory)) => Ok(folder),
        _ => Err(format!(
            "kustomization path not found: ./{folder} in {}",
            world.content.place()
        )),
    }
}

async fn ask(
    world: &mut World,
    (subject, engine): (&Subject, &Engine),
    object: &Kustomization,
    built: &Built,
    compared: &mut Compared,
) -> Result<(), String> {
    let common = object.spec.common_metadata.clone().unwrap_or_default();
    let common = CommonMetadata {
        labels: common.labels,
        annotations: common.annotations,
    };
    let objects = built.objects.clone();
    let mut ready = apply::prepare(world, engine, &owner(subject), objects, &common, compared).await?;
    let rules = rules(object).map_err(|error| compared.hide_quotes("spec.ignore", error))?;
    ready.prepared = ready.prepared.ignoring(&rules);
    let how = (object.spec.force, Means::Apply);
    apply::preview(world, engine, &ready, how, compared).await;
    Ok(())
}

/// Reads the rules of `spec.ignore`.
fn rules(object: &Kustomization) -> Result<IgnoreRules, kube_apply::IgnoreError> {
    let rules = object.spec.ignore.iter().map(|rule| IgnoreRule {
        paths: rule.paths.clone(),
        target: rule.target.as_ref().map(flux_spec::selectors::object_selector),
    });
    IgnoreRules::compile(&rules.collect::<Vec<_>>())
}

/// Notes what becomes of objects that left; with a reason they stay.
async fn prune(
    world: &mut World,
    (subject, engine): (&Subject, &Engine),
    stale: &[(manifest::ObjectId, String)],
    reason: Option<&str>,
    compared: &mut Compared,
) {
    if let Some(reason) = reason {
        keep(stale, reason, compared);
        return;
    }
    for (id, fate) in engine.preview_prune(&owner(subject), stale).await {
        let entry = match fate {
            Ok(Fate::Missing) => continue,
            Ok(Fate::Deleted) => {
                apply::prune(world, id, compared).await;
                continue;
            }
            Ok(Fate::Kept(why)) => Entry::new(id.to_string(), Action::Kept, why.to_string()),
            Err(failure) => Entry::new(
                id.to_string(),
                Action::Failed,
                format!("it left the folder: {failure}"),
            ),
        };
        compared.section.objects.push(entry);
    }
}

/// Notes that objects stay.
fn keep(stale: &[(manifest::ObjectId, String)], reason: &str, compared: &mut Compared) {
    let kept = |id: &manifest::ObjectId| Entry::new(id.to_string(), Action::Kept, reason);
    compared
        .section
        .objects
        .extend(stale.iter().map(|(id, _)| kept(id)));
}

#[cfg(test)]
mod tests {
    use api::kustomize::KustomizationSpec;

    use super::*;

    #[test]
    fn what_is_suspended_takes_nothing_with_it() {
        for (policy, suspend, stays) in [
            (DeletionPolicy::Delete, false, false),
            (DeletionPolicy::Delete, true, true),
            (DeletionPolicy::Orphan, false, true),
        ] {
            let spec = KustomizationSpec {
                suspend,
                deletion_policy: Some(policy),
                ..KustomizationSpec::default()
            };
            let reason = why_objects_stay(&Kustomization::new("a", spec));
            assert_eq!(reason.is_some(), stays, "{policy:?} suspend={suspend}");
        }
    }
}
