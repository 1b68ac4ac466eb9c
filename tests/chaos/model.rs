//! Model of the Git repository: objects in the folders of several Kustomizations, and random changes of it.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::{Value, json};
use testkit::git::{Change, Repository};

use crate::random::Random;

/// The namespace that the test makes.
pub const OWN: &str = "chaos";
/// The namespace that Git makes, in which others have something too.
pub const SHARED: &str = "chaos-shared";

/// The Kustomizations, with those that each depends on.
pub const KUSTOMIZATIONS: [(&str, &[&str]); 4] = [
    ("base", &[]),
    ("middle", &["base"]),
    ("top", &["middle"]),
    ("side", &[]),
];

/// Objects per folder. A folder never loses so many at once that it would look like an accident.
const LEAST: usize = 5;
const MOST: usize = 14;

/// Identity of an object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Id {
    pub kind: &'static str,
    pub namespace: &'static str,
    pub name: String,
}

impl Id {
    /// As inventories have it.
    pub fn in_inventory(&self) -> String {
        let group = if self.kind == "Deployment" { "apps" } else { "" };
        format!("{}_{}_{group}_{}", self.namespace, self.name, self.kind)
    }

    fn file(&self) -> String {
        format!("{}-{}.yaml", self.kind.to_lowercase(), self.name)
    }
}

/// Current state of Git.
#[derive(Debug, Clone, Default)]
pub struct Model {
    /// In which folder each object is, and with which value.
    pub objects: BTreeMap<Id, (&'static str, u64)>,
    /// The folder that has a manifest which no one can apply.
    broken: Option<&'static str>,
    next: u64,
}

impl Model {
    /// The first revision.
    pub fn new(random: &mut Random) -> Self {
        let mut model = Self::default();
        for (folder, _) in KUSTOMIZATIONS {
            for _ in 0..LEAST + 2 {
                model.add(folder, random);
            }
            let deployment = Id {
                kind: "Deployment",
                namespace: OWN,
                name: format!("web-{folder}"),
            };
            model.objects.insert(deployment, (folder, 0));
        }
        model
    }

    /// Everything as files.
    pub fn files(&self) -> Vec<Change> {
        let shared = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SHARED,
            "annotations": {"kustomize.toolkit.fluxcd.io/prune": "disabled"}}});
        let objects = self
            .objects
            .iter()
            .map(|(id, (folder, value))| write(folder, id, *value));
        let namespace = Change::write("base/namespace.yaml", shared.to_string());
        objects.chain([namespace]).collect()
    }

    /// Commits one to five random changes, and says which. The last commit has nothing that cannot be applied.
    pub fn change(&mut self, repository: &Repository, random: &mut Random, last: bool) -> Result<String> {
        let (mut changes, mut told) = (Vec::new(), Vec::new());
        if let Some(folder) = self.broken.take() {
            changes.push(Change::delete(&format!("{folder}/broken.yaml")));
            told.push(format!("mend {folder}"));
        } else if !last && random.below(8) == 0 {
            let folder = any_folder(random);
            let broken = object(
                &Id {
                    kind: "ConfigMap",
                    namespace: OWN,
                    name: "Not_Valid".into(),
                },
                0,
            );
            changes.push(Change::write(
                &format!("{folder}/broken.yaml"),
                broken.to_string(),
            ));
            self.broken = Some(folder);
            told.push(format!("break {folder}"));
        }
        for _ in 0..=random.below(5) {
            told.push(self.one_change(random, &mut changes));
        }
        repository.commit("main", "chaos", &changes)?;
        Ok(told.join(", "))
    }

    fn one_change(&mut self, random: &mut Random, changes: &mut Vec<Change>) -> String {
        let folder = any_folder(random);
        let here: Vec<_> = self
            .objects
            .iter()
            .filter(|(_, (at, _))| *at == folder)
            .map(|(id, _)| id.clone())
            .collect();
        let may_leave: Vec<_> = here
            .iter()
            .filter(|id| id.kind != "Deployment")
            .cloned()
            .collect();
        let leaving = random
            .pick(&may_leave)
            .cloned()
            .filter(|_| may_leave.len() > LEAST);
        match (random.below(4), leaving) {
            (0, Some(id)) => {
                self.objects.remove(&id);
                changes.push(Change::delete(&format!("{folder}/{}", id.file())));
                format!("remove {} from {folder}", id.name)
            }
            (1, Some(id)) => self.move_to(any_folder(random), folder, id, changes),
            (2, _) if here.len() < MOST => {
                let id = self.add(folder, random);
                changes.push(write(folder, &id, self.objects[&id].1));
                format!("add {} to {folder}", id.name)
            }
            _ => self.set(random.pick(&here).cloned(), changes),
        }
    }

    fn move_to(
        &mut self,
        target: &'static str,
        folder: &'static str,
        id: Id,
        changes: &mut Vec<Change>,
    ) -> String {
        if target == folder {
            return self.set(Some(id), changes);
        }
        let told = format!("move {} from {folder} to {target}", id.name);
        let value = self.objects.get(&id).map_or(0, |(_, value)| *value);
        changes.push(Change::delete(&format!("{folder}/{}", id.file())));
        changes.push(write(target, &id, value));
        self.objects.insert(id, (target, value));
        told
    }

    fn set(&mut self, id: Option<Id>, changes: &mut Vec<Change>) -> String {
        self.next += 1;
        let number = self.next;
        let Some((id, (folder, value))) = id.and_then(|id| Some((id.clone(), self.objects.get_mut(&id)?)))
        else {
            return "nothing".to_owned();
        };
        *value = number;
        changes.push(write(folder, &id, number));
        format!("change {} in {folder}", id.name)
    }

    fn add(&mut self, folder: &'static str, random: &mut Random) -> Id {
        self.next += 1;
        let kind = if random.below(4) == 0 {
            "ServiceAccount"
        } else {
            "ConfigMap"
        };
        let id = Id {
            kind,
            namespace: if random.below(3) == 0 { SHARED } else { OWN },
            name: format!("object-{}", self.next),
        };
        self.objects.insert(id.clone(), (folder, self.next));
        id
    }

    /// Whether there is something that no one can apply.
    pub fn is_broken(&self) -> bool {
        self.broken.is_some()
    }

    /// Any object that Git has.
    pub fn any(&self, random: &mut Random) -> Option<Id> {
        let ids: Vec<_> = self.objects.keys().cloned().collect();
        random.pick(&ids).cloned()
    }
}

fn any_folder(random: &mut Random) -> &'static str {
    random.pick(&KUSTOMIZATIONS).map_or("base", |(folder, _)| *folder)
}

fn write(folder: &str, id: &Id, value: u64) -> Change {
    Change::write(&format!("{folder}/{}", id.file()), object(id, value).to_string())
}

/// The manifest; its value is in an annotation, which every kind has.
fn object(id: &Id, value: u64) -> Value {
    let metadata =
        json!({"name": id.name, "namespace": id.namespace, "annotations": {"value": value.to_string()}});
    match id.kind {
        "Deployment" => {
            let labels = json!({"app": id.name});
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": {
                "replicas": 1, "selector": {"matchLabels": labels}, "template": {
                    "metadata": {"labels": labels, "annotations": {"value": value.to_string()}},
                    "spec": {"terminationGracePeriodSeconds": 0,
                        "containers": [{"name": "app", "image": "example.com/app:1"}]}}}})
        }
        kind => json!({"apiVersion": "v1", "kind": kind, "metadata": metadata}),
    }
}
