//! From one Kustomization or HelmRelease to those that it applies, as far as the content has a say in them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use api::helm::HelmRelease;
use delivery_graph::object;
use manifest::ObjectId;
use serde_json::Value;

use crate::report::{Action, Section};
use crate::source::source_of;
use crate::subject::{Compared, Subject};
use crate::world::World;
use crate::{chart, kustomization, release};

/// Compares all of them, those that are applied after those that apply them.
pub async fn all(
    world: &mut World,
    roots: Vec<Subject>,
    recursive: bool,
    progress: impl Fn(&str),
) -> Vec<Section> {
    let mut line = Line {
        queue: roots.into(),
        ..Line::default()
    };
    let mut seen = BTreeSet::new();
    let mut sections = Vec::new();
    let mut built: BTreeMap<ObjectId, BTreeSet<ObjectId>> = BTreeMap::new();
    let mut passed_over = Vec::new();
    while let Some(subject) = line.next(&built).or_else(|| reached(world, &mut passed_over)) {
        if is_passed_over(world, &subject) {
            passed_over.push(subject);
            continue;
        }
        let id = subject.id();
        let is_first = seen.insert(id.clone());
        if !is_first && !subject.is_gone {
            continue;
        }
        if !is_first {
            // It was looked at as if it stayed, before what applies it was.
            built.remove(&id);
            sections.retain(|section: &Section| section.object != id.to_string());
        }
        progress(&format!("comparing {id}"));
        let mut compared = one(world, &subject).await;
        for subject in children(world, &id, &mut compared, recursive).into_iter().rev() {
            match subject.is_gone {
                true => line.gone.push_front(subject),
                false => line.queue.push_front(subject),
            }
        }
        built.insert(id, compared.built);
        sections.push(compared.section);
    }
    moved(&mut sections, &built);
    sections
}

/// Queue of subjects to compare.
#[derive(Default)]
struct Line {
    queue: VecDeque<Subject>,
    /// Objects that left the one that applied them: another one may apply them, so these come last.
    gone: VecDeque<Subject>,
    /// Subjects that the user named and that may be deleted.
    put_off: Vec<Subject>,
}

impl Line {
    fn next(&mut self, built: &BTreeMap<ObjectId, BTreeSet<ObjectId>>) -> Option<Subject> {
        while let Some(subject) = self.queue.pop_front() {
            let id = subject.id();
            let may_go = subject.applied_by.is_none() && self.gone.iter().any(|gone| gone.id() == id);
            if !may_go {
                return Some(subject);
            }
            self.put_off.push(subject);
        }
        while let Some(gone) = self.gone.pop_front() {
            let id = gone.id();
            if !built.values().any(|ids| ids.contains(&id)) {
                return Some(gone);
            }
            if let Some(index) = self.put_off.iter().position(|subject| subject.id() == id) {
                return Some(self.put_off.swap_remove(index));
            }
        }
        None
    }
}

async fn one(world: &mut World, subject: &Subject) -> Compared {
    let mut compared = Compared::new(subject, world.is_for_strangers);
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

/// Queues the children of an object.
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
                "{} is made of {source}, for which the {} does not stand: what it applies is not compared",
                object::id(&object),
                world.content.word()
            )),
            Concern::Content if recursive => next.push(Subject {
                applied_by: Some(id.clone()),
                ..Subject::root(object)
            }),
            Concern::Content => unfollowed += 1,
        }
    }
    if unfollowed > 0 && world.names_flags {
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

/// One that was passed over, and that is not any more: what was compared since changes its variables or values.
fn reached(world: &World, passed_over: &mut Vec<Subject>) -> Option<Subject> {
    let found = passed_over
        .iter()
        .position(|subject| !is_passed_over(world, subject));
    found.map(|at| passed_over.remove(at))
}

/// Returns whether a root stays as it is. It may still come again, as what another one applies.
fn is_passed_over(world: &World, subject: &Subject) -> bool {
    let object = &subject.object;
    let is_root = subject.applied_by.is_none() && !subject.is_gone;
    is_root
        && !world.content.reaches(object)
        && !world.plans_values_of(object)
        && !world.plans_variables_of(object)
}

/// How the content concerns a Kustomization or HelmRelease.
enum Concern {
    Content,
    /// It would be another one, and it is made of something else.
    Elsewhere(String),
    Nothing,
}

fn concern(world: &World, object: &Value, changes: bool) -> Concern {
    let source = source_of(object);
    let is_local = source
        .as_ref()
        .is_some_and(|source| world.content.stands_for(source));
    match object::text(object, "/kind") {
        _ if is_local && (changes || world.content.reaches(object) || world.plans_variables_of(object)) => {
            Concern::Content
        }
        // The chart may be had from the cluster, and values may be in the content.
        "HelmRelease" if changes || world.plans_values_of(object) || has_new_chart(world, object) => {
            Concern::Content
        }
        "Kustomization" if changes && !is_local => {
            Concern::Elsewhere(source.map_or_else(String::new, |source| source.to_string()))
        }
        _ => Concern::Nothing,
    }
}

/// Sorts parents before the objects that they apply, since a child is compared as its parent would have it.
pub fn parents_first(roots: Vec<Value>) -> Vec<Value> {
    let ids: Vec<_> = roots.iter().map(object::id).collect();
    let is_child = |object: &Value| {
        let label = |name: &str| {
            let labels = object.pointer("/metadata/labels");
            let found =
                labels.and_then(|labels| labels.get(format!("{}/{name}", api::meta::KUSTOMIZE_GROUP)));
            found.and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let (namespace, name) = (label("namespace"), label("name"));
        let own = object::id(object);
        let mut parents = ids.iter();
        parents.any(|id| {
            *id != own && id.kind == "Kustomization" && id.name == name && id.namespace == namespace
        })
    };
    let (children, mut first): (Vec<_>, Vec<_>) = roots.iter().cloned().partition(is_child);
    first.extend(children);
    first
}

/// Returns whether the source of a chart would be another one, and the chart can be fetched for that.
fn has_new_chart(world: &World, object: &Value) -> bool {
    let source = || {
        let release: HelmRelease = serde_json::from_value(object.clone()).ok()?;
        chart::chart_of(&release)
    };
    world.fetcher.is_some() && source().is_some_and(|source| world.changed_source(&source).is_some())
}

/// Marks an object that leaves one Kustomization and appears in another as handed over, not deleted. Helm
/// deletes what leaves a chart, wherever it is now.
fn moved(sections: &mut [Section], built: &BTreeMap<ObjectId, BTreeSet<ObjectId>>) {
    let are_kustomizations = |section: &&mut Section| section.object.starts_with("Kustomization/");
    for section in sections.iter_mut().filter(are_kustomizations) {
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
    use serde_json::json;

    use super::*;
    use crate::report::Entry;

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
        let mut released = Section::new("HelmRelease/shop/a".to_owned(), None);
        let object = id("ConfigMap", "moves").to_string();
        released.objects.push(Entry::new(object, Action::Pruned, ""));
        let mut sections = [section, released];
        moved(&mut sections, &built);
        assert_eq!(
            sections[1].objects[0].action,
            Action::Pruned,
            "Helm hands nothing over"
        );
        let actions: Vec<_> = sections[0].objects.iter().map(|entry| entry.action).collect();
        assert_eq!(actions, [Action::Pruned, Action::Kept]);
        assert_eq!(sections[0].objects[1].message, "it moves to Kustomization/shop/b");
    }

    fn subject(name: &str, is_gone: bool) -> Subject {
        let object = json!({"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
            "metadata": {"name": name, "namespace": "shop"}});
        Subject {
            is_gone,
            ..Subject::root(object)
        }
    }

    fn order(mut line: Line, built: &BTreeMap<ObjectId, BTreeSet<ObjectId>>) -> Vec<(String, bool)> {
        let next = || line.next(built);
        let all = std::iter::from_fn(next);
        all.map(|subject| (subject.id().name, subject.is_gone)).collect()
    }

    #[test]
    fn what_goes_comes_last_unless_another_one_applies_it() {
        let line = || Line {
            queue: [subject("a", false), subject("goes", false), subject("b", false)].into(),
            gone: [subject("moves", true), subject("goes", true)].into(),
            put_off: Vec::new(),
        };
        let names = |names: &[(&str, bool)]| -> Vec<_> {
            names
                .iter()
                .map(|(name, gone)| ((*name).to_owned(), *gone))
                .collect()
        };
        let of_b = |ids: &[&str]| {
            let ids = ids.iter().map(|name| subject(name, false).id());
            BTreeMap::from([(subject("b", false).id(), ids.collect())])
        };
        let found = order(line(), &of_b(&["moves"]));
        assert_eq!(found, names(&[("a", false), ("b", false), ("goes", true)]));
        let found = order(line(), &of_b(&["goes", "moves"]));
        assert_eq!(found, names(&[("a", false), ("b", false), ("goes", false)]));
    }

    #[test]
    fn who_applies_comes_before_who_is_applied() {
        let object = |name: &str, parent: &str| {
            json!({"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
                "metadata": {"name": name, "namespace": "flux-system", "labels": {
                    "kustomize.toolkit.fluxcd.io/name": parent,
                    "kustomize.toolkit.fluxcd.io/namespace": "flux-system"}}})
        };
        // A Kustomization may apply itself.
        let roots = vec![
            object("app", "root"),
            object("root", "root"),
            object("other", "gone"),
        ];
        let sorted = parents_first(roots);
        let names: Vec<_> = sorted.iter().map(object::name).collect();
        assert_eq!(names, ["root", "other", "app"]);
    }
}
