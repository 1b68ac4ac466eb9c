//! Makes a tree of a few kustomizations from a seed.
//!
//! Names, keys and values come from small sets, so that objects refer to each other and collide. One tree in seven gets
//! something wrong, so that refusals are compared too.

mod field;
mod generator;
mod kind;
mod patches;
mod place;
mod plugin;
mod replacements;
mod word;
mod wrong;

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::random::Random;
use crate::tree::{File, Tree};

/// An object that a kustomization can refer to.
#[derive(Clone, Debug)]
pub struct Known {
    pub api_version: String,
    pub kind: String,
    pub name: String,
    pub namespace: Option<String>,
}

/// The kustomization that is being made, and all that is there already.
pub struct Draft {
    pub random: Random,
    pub folder: String,
    pub files: BTreeMap<String, File>,
    /// The objects of this folder and of those before it.
    pub known: Vec<Known>,
}

impl Draft {
    /// Puts a file beside the kustomization, and gives its name.
    pub fn file(&mut self, name: &str, file: File) -> String {
        self.files.insert(format!("{}/{name}", self.folder), file);
        name.to_owned()
    }

    /// Gives an object that is there, or one that is not.
    pub fn object(&mut self) -> Known {
        if self.known.is_empty() || self.random.chance(8) {
            return Known {
                api_version: "apps/v1".to_owned(),
                kind: "Deployment".to_owned(),
                name: word::name(&mut self.random).to_owned(),
                namespace: None,
            };
        }
        self.known[self.random.below(self.known.len())].clone()
    }
}

/// Makes the tree of a seed.
pub fn tree(seed: u64) -> Tree {
    let mut draft = Draft {
        random: Random::new(seed),
        folder: String::new(),
        files: BTreeMap::new(),
        known: Vec::new(),
    };
    if draft.random.chance(30) {
        return of_patches_and_replacements(draft, seed);
    }
    let count = [1, 1, 2, 2, 2, 3, 4][draft.random.below(7)];
    let mut bases: Vec<(String, bool)> = Vec::new();
    for position in 0..count {
        let last = position + 1 == count;
        let component = !last && draft.random.chance(25);
        draft.folder = ["base", "other", "middle", "top"][position].to_owned();
        let kustomization = kustomization(&mut draft, &mut bases, component);
        draft.file("kustomization.yaml", File::Yaml(vec![kustomization]));
        bases.push((draft.folder.clone(), component));
    }
    let mut tree = Tree {
        seed,
        folder: draft.folder,
        files: draft.files,
    };
    if draft.random.chance(15) {
        wrong::spoil(&mut draft.random, &mut tree);
    }
    tree
}

/// Makes one folder whose patches and replacements are about its own objects.
fn of_patches_and_replacements(mut draft: Draft, seed: u64) -> Tree {
    draft.folder = "base".to_owned();
    let mut documents = Vec::new();
    let count = 1 + draft.random.below(3);
    while documents.len() < count {
        documents.push(kind::any(&mut draft.random));
    }
    let mut fields = Map::new();
    fields.insert("resources".to_owned(), json!(["objects.yaml"]));
    if draft.random.chance(25) {
        fields.insert("namePrefix".to_owned(), json!("p-"));
    }
    if draft.random.chance(60) {
        let patches = patches::patches(&mut draft.random, &documents);
        fields.insert("patches".to_owned(), patches);
    } else {
        documents.push(replacements::config_map(&mut draft.random));
        let replacements = replacements::replacements(&mut draft.random, &documents);
        fields.insert("replacements".to_owned(), replacements);
    }
    draft.file("objects.yaml", File::Yaml(documents));
    draft.file("kustomization.yaml", File::Yaml(vec![Value::Object(fields)]));
    Tree {
        seed,
        folder: draft.folder,
        files: draft.files,
    }
}

fn kustomization(draft: &mut Draft, bases: &mut Vec<(String, bool)>, component: bool) -> Value {
    let mut fields = Map::new();
    if component {
        fields.insert("apiVersion".to_owned(), json!("kustomize.config.k8s.io/v1alpha1"));
        fields.insert("kind".to_owned(), json!("Component"));
    }
    let (mut resources, mut components) = (Vec::new(), Vec::new());
    for (folder, component) in bases.iter() {
        match component {
            true => components.push(json!(format!("../{folder}"))),
            false => resources.push(json!(format!("../{folder}"))),
        }
    }
    // A base that is used is rarely used again.
    if draft.random.chance(90) {
        bases.clear();
    }
    if resources.is_empty() || draft.random.chance(50) {
        let documents = objects(draft);
        resources.push(json!(draft.file("objects.yaml", File::Yaml(documents))));
    }
    for (name, value) in [("resources", resources), ("components", components)] {
        if !value.is_empty() {
            fields.insert(name.to_owned(), value.into());
        }
    }
    for _ in 0..draft.random.below(6) {
        let (name, value) = field::any(draft);
        fields.insert(name.to_owned(), value);
    }
    Value::Object(fields)
}

fn objects(draft: &mut Draft) -> Vec<Value> {
    let count = 1 + draft.random.below(6);
    let mut documents = Vec::new();
    for _ in 0..count {
        let object = kind::any(&mut draft.random);
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        let known = Known {
            api_version: text("/apiVersion").unwrap_or_default(),
            kind: text("/kind").unwrap_or_default(),
            name: text("/metadata/name").unwrap_or_default(),
            namespace: text("/metadata/namespace"),
        };
        let again = draft
            .known
            .iter()
            .any(|other| other.kind == known.kind && other.name == known.name);
        if again && draft.random.chance(95) {
            continue; // few trees may be refused for it
        }
        draft.known.push(known);
        documents.push(object);
    }
    if draft.random.chance(5) {
        return vec![json!({"apiVersion": "v1", "kind": "List", "items": documents})];
    }
    documents
}
