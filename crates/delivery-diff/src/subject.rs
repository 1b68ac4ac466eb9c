//! A Kustomization or HelmRelease that is compared, and what comes of it.

use std::collections::BTreeSet;
use std::fmt::Display;

use delivery_graph::kind;
use delivery_graph::object::{self, list, text};
use kube_apply::{Expected, Inventory, Preview};
use manifest::ObjectId;
use serde_json::Value;

use crate::report::{Section, WITHHELD};

/// A Kustomization or HelmRelease to be compared.
pub struct Subject {
    /// The object as it would be, with the status that it has.
    pub object: Value,
    /// The folder of the content in place of `spec.path`.
    pub folder: Option<String>,
    /// The object that applies it, if the comparison came that way.
    pub applied_by: Option<ObjectId>,
    /// True if it would be deleted.
    pub is_gone: bool,
}

/// Result of a comparison.
pub struct Compared {
    pub section: Section,
    /// The Kustomizations and HelmReleases among what it applies, each with whether it would be another one.
    pub applied: Vec<(Value, bool)>,
    /// Those that would go.
    pub gone: Vec<Value>,
    /// All that it would apply: what goes elsewhere is not lost.
    pub built: BTreeSet<ObjectId>,
    /// True if values that came from Secrets may be anywhere in it.
    pub is_confidential: bool,
    /// The objects of which fields are shown; all without.
    shown: Option<Inventory>,
}

impl Subject {
    /// An object that the comparison begins with.
    pub fn root(object: Value) -> Self {
        Self {
            object,
            folder: None,
            applied_by: None,
            is_gone: false,
        }
    }

    /// Which it is.
    pub fn id(&self) -> ObjectId {
        object::id(&self.object)
    }
}

impl Compared {
    pub fn new(subject: &Subject, is_for_strangers: bool) -> Self {
        let applied_by = subject.applied_by.as_ref().map(ToString::to_string);
        Self {
            section: Section::new(subject.id().to_string(), applied_by),
            applied: Vec::new(),
            gone: Vec::new(),
            built: BTreeSet::new(),
            is_confidential: false,
            shown: is_for_strangers.then(|| inventory(&subject.object)),
        }
    }

    /// Says what went wrong, without words that may quote what came from a Secret.
    pub fn hide_quotes(&self, what: &str, words: impl Display) -> String {
        match self.is_confidential {
            true => format!("{what}: {WITHHELD}"),
            false => format!("{what}: {words}"),
        }
    }

    /// Notes an object, and what of it is to be followed.
    pub fn add(&mut self, preview: Preview) {
        self.built.insert(preview.id.clone());
        if is_deliverer(&preview.id) {
            let child = match &preview.expected {
                Ok(Expected::Created(after)) => Some((after.clone(), true)),
                Ok(Expected::Changed { before, after, .. } | Expected::Recreated { before, after, .. }) => {
                    Some((with_status(after, before), true))
                }
                Ok(Expected::Unchanged(live)) => Some((live.clone(), false)),
                _ => None,
            };
            self.applied.extend(child);
        }
        let is_shown = self
            .shown
            .as_ref()
            .is_none_or(|inventory| inventory.contains(&preview.id));
        self.section.add(preview, is_shown);
    }
}

/// A dry run of what is recreated has no status, and what was applied before goes by that.
fn with_status(after: &Value, before: &Value) -> Value {
    let mut object = after.clone();
    if let Some(status) = before.get("status") {
        object["status"] = status.clone();
    }
    object
}

/// Returns whether it applies objects by itself.
pub fn is_deliverer(id: &ObjectId) -> bool {
    matches!(id.kind.as_str(), "Kustomization" | "HelmRelease") && kind::kind_of(id).is_some()
}

/// Objects in the inventory of an object's status.
pub fn inventory(object: &Value) -> Inventory {
    let entries = list(object, "/status/inventory/entries").iter();
    let parsed = entries.filter_map(|entry| {
        let id = ObjectId::parse_inventory_id(text(entry, "/id")).ok()?;
        Some((id, text(entry, "/v").to_owned()))
    });
    parsed.collect()
}
