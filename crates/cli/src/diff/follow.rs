//! From one Kustomization or HelmRelease to those that it applies, as far as the checkout has a say in them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use manifest::ObjectId;
use serde_json::Value;

use super::report::{Action, Section};
use super::sources::source_of;
use super::subject::{Compared, Subject};
use super::world::World;
use super::{kustomization, release};
use crate::cluster::object;
use crate::progress::Progress;

/// Compares all of them, those that are applied after those that apply them.
pub(crate) async fn all(
    world: &mut World,
    roots: Vec<Subject>,
    recursive: bool,
    progress: &Progress,
) -> Vec<Section> {
    let mut queue: VecDeque<Subject> = roots.into();
    let mut seen = BTreeSet::new();
    let mut sections = Vec::new();
    let mut built: BTreeMap<ObjectId, BTreeSet<ObjectId>> = BTreeMap::new();
    while let Some(subject) = queue.pop_front() {
        let id = subject.id();
        if !seen.insert(id.clone()) {
            continue;
        }
        progress.tell(&format!("comparing {id}"));
        let mut compared = one(world, &subject).await;
        let next = children(world, &id, &mut compared, recursive);
        for subject in next.into_iter().rev() {
            queue.push_front(subject);
        }
        built.insert(id, compared.built);
        sections.push(compared.section);
    }
    moved(&mut sections, &built);
    sections
}

async fn one(world: &mut World, subject: &Subject) -> Compared {
    let mut compared = Compared::new(subject);
    // What applies it may have put what came from Secrets anywhere into it.
    compared.is_confidential = world.confidential.contains(&subject.id());
    let is_release = object::text(&subject.object, "/kind") == "HelmRelease";
    let outcome = match (is_release, subject.is_gone) {
        (false, false) => kustomization::compare(world, subject, &mut compared).await,
        (false, true) => kustomization::gone(world, subject, &mut compared).await,
        (true, false) => release::compare(world, subject, &mut compared).await,
        (true, true) => release::gone(world, subject, &mut compared).await,
    };
    compared.section.error = outcome.err();
    compared
}

/// What of an object is looked at next.
fn children(world: &World, id: &ObjectId, compared: &mut Compared, recursive: bool) -> Vec<Subject> {
    let mut next = Vec::new();
    let mut unfollowed = 0;
    for (object, changes) in std::mem::take(&mut compared.applied) {
        let is_itself = object::id(&object) == *id;
        let concern = concern(world, &object, changes);
        match concern {
            _ if is_itself => {}
            Concern::Nothing => {}
            Concern::Elsewhere(source) => compared.section.notes.push(format!(
                "{} is made of {source}, for which the checkout does not stand: what it applies is not compared",
                object::id(&object)
            )),
            Concern::Checkout if recursive => next.push(Subject {
                applied_by: Some(id.clone()),
                ..Subject::root(object)
            }),
            Concern::Checkout => unfollowed += 1,
        }
    }
    if unfollowed > 0 {
        compared.section.notes.push(format!(
            "{unfollowed} of what it applies apply objects themselves; --recursive looks at those"
        ));
    }
    // What goes takes its objects with it, whether anybody asked for more or not.
    next.extend(compared.gone.drain(..).map(|object| Subject {
        applied_by: Some(id.clone()),
        is_gone: true,
        ..Subject::root(object)
    }));
    next
}

/// What a checkout has to do with a Kustomization or HelmRelease.
enum Concern {
    Checkout,
    /// It would be another one, and its content is not in the checkout.
    Elsewhere(String),
    Nothing,
}

fn concern(world: &World, object: &Value, changes: bool) -> Concern {
    let source = source_of(object);
    let is_local = source
        .as_ref()
        .is_some_and(|source| world.sources.contains(source));
    match object::text(object, "/kind") {
        _ if is_local => Concern::Checkout,
        // The chart may be had from the cluster, and values may be in the checkout.
        "HelmRelease" if changes || world.plans_values_of(object) => Concern::Checkout,
        "Kustomization" if changes => {
            Concern::Elsewhere(source.map_or_else(String::new, |source| source.to_string()))
        }
        _ => Concern::Nothing,
    }
}

/// What leaves one and is in another one is handed over, and not deleted.
fn moved(sections: &mut [Section], built: &BTreeMap<ObjectId, BTreeSet<ObjectId>>) {
    for section in sections {
        let pruned = section
            .objects
            .iter_mut()
            .filter(|entry| entry.action == Action::Pruned);
        for entry in pruned {
            let taker = built
                .iter()
                .find(|(_, ids)| ids.iter().any(|id| id.to_string() == entry.object));
            if let Some((taker, _)) = taker {
                entry.action = Action::Kept;
                entry.message = format!("it moves to {taker}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::report::Entry;

    #[test]
    fn what_moves_is_not_pruned() {
        let id = |kind: &str, name: &str| ObjectId {
            group: String::new(),
            kind: kind.to_owned(),
            namespace: "shop".to_owned(),
            name: name.to_owned(),
        };
        let mut section = Section::new("Kustomization/shop/a".to_owned(), None);
        for name in ["goes", "moves"] {
            let object = id("ConfigMap", name).to_string();
            section.objects.push(Entry::new(object, Action::Pruned, ""));
        }
        let built = BTreeMap::from([(
            id("Kustomization", "b"),
            BTreeSet::from([id("ConfigMap", "moves")]),
        )]);
        let mut sections = [section];
        moved(&mut sections, &built);
        let actions: Vec<_> = sections[0].objects.iter().map(|entry| entry.action).collect();
        assert_eq!(actions, [Action::Pruned, Action::Kept]);
        assert_eq!(sections[0].objects[1].message, "it moves to Kustomization/shop/b");
    }
}
