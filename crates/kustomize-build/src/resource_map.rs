//! The resources of a build, in their order (kustomize's ResMap).

use std::collections::HashSet;

use manifest::GroupVersionKind;

use crate::error::{Error, ErrorKind, Result};
use crate::id::ResourceId;
use crate::nodes::Nodes;
use crate::resource::show as show_object;
use crate::resource::{Behavior, Resource};
use crate::{generate, resource};

/// A list of resources with different ids.
#[derive(Clone, Debug, Default)]
pub(crate) struct ResourceMap {
    list: Vec<Resource>,
    /// Ids of the list; None when they may have changed.
    ids: Option<HashSet<Key>>,
}

/// An id for comparison: an empty namespace is `default`.
type Key = (GroupVersionKind, String, String);

fn key(id: &ResourceId) -> Key {
    (
        id.gvk.clone(),
        id.name.clone(),
        id.effective_namespace().to_owned(),
    )
}

impl ResourceMap {
    /// Makes a map of resources whose ids must differ.
    pub(crate) fn from_list(nodes: &Nodes, list: Vec<Resource>) -> Result<Self> {
        let mut map = Self::default();
        map.append_all(nodes, list)?;
        Ok(map)
    }

    pub(crate) fn list(&self) -> &[Resource] {
        &self.list
    }

    /// Borrows the resources for change, their ids too.
    pub(crate) fn list_mut(&mut self) -> &mut Vec<Resource> {
        self.ids = None;
        &mut self.list
    }

    pub(crate) fn into_list(self) -> Vec<Resource> {
        self.list
    }

    /// Adds a resource; its id must be new.
    pub(crate) fn append(&mut self, nodes: &Nodes, added: Resource) -> Result<()> {
        let id = added.id(nodes);
        let ids = self
            .ids
            .get_or_insert_with(|| self.list.iter().map(|r| key(&r.id(nodes))).collect());
        if !ids.insert(key(&id)) {
            let message = format!("may not add resource with an already registered id: {id}");
            let error = Error::new(ErrorKind::Conflict, message);
            return Err(match &added.source {
                Some(source) => error.in_file(&source.file, source.line),
                None => error,
            });
        }
        self.list.push(added);
        Ok(())
    }

    /// Adds resources; their ids must be new.
    pub(crate) fn append_all(&mut self, nodes: &Nodes, added: Vec<Resource>) -> Result<()> {
        added
            .into_iter()
            .try_for_each(|resource| self.append(nodes, resource))
    }

    /// Adds generated resources, which may replace or be merged into those that are there.
    pub(crate) fn absorb_all(&mut self, nodes: &mut Nodes, added: Vec<Resource>) -> Result<()> {
        for resource in added {
            self.absorb(nodes, resource)?;
        }
        Ok(())
    }

    fn absorb(&mut self, nodes: &mut Nodes, mut added: Resource) -> Result<()> {
        let id = added.id(nodes);
        let behavior = added.history.behavior.unwrap_or_default();
        let matches = self.matching_any_id(nodes, &id.name, |known| known.is_same(&id));
        match matches[..] {
            [] if matches!(behavior, Behavior::Merge | Behavior::Replace) => {
                let shown = show(&id);
                Err(Error::new(
                    ErrorKind::Conflict,
                    format!("id {shown} does not exist; cannot merge or replace"),
                ))
            }
            [] => self.append(nodes, added),
            [index] => {
                let old = &self.list[index];
                match behavior {
                    Behavior::Replace => generate::take_metadata_of(nodes, &mut added, old)?,
                    Behavior::Merge => generate::merge_into_old(nodes, &mut added, old)?,
                    Behavior::Unspecified | Behavior::Create => {
                        let (shown, behavior) = (show(&id), behavior.as_str());
                        let message = format!(
                            "id {shown} exists; can not use behavior: '{behavior}', behavior must be merge or replace"
                        );
                        return Err(Error::new(ErrorKind::Conflict, message));
                    }
                }
                self.list_mut()[index] = added;
                Ok(())
            }
            _ => {
                let objects = matches.iter().map(|index| show_object(nodes, &self.list[*index]));
                let objects = objects.collect::<Vec<_>>().join(" ");
                let message = format!("found multiple objects [{objects}] that could accept merge of {id}");
                Err(Error::new(ErrorKind::Conflict, message))
            }
        }
    }

    /// Finds resources by an id of a given name that they have or had.
    pub(crate) fn matching_any_id(
        &self,
        nodes: &Nodes,
        name: &str,
        matches: impl Fn(&ResourceId) -> bool,
    ) -> Vec<usize> {
        let matches = |id: &ResourceId| id.name == name && matches(id);
        let found = |(index, resource): (usize, &Resource)| {
            let hit = resource.has_or_had_name(nodes, name)
                && !resource.is_empty(nodes)
                && (resource.previous_ids(nodes).iter().any(&matches) || matches(&resource.id(nodes)));
            hit.then_some(index)
        };
        self.list.iter().enumerate().filter_map(found).collect()
    }

    /// Finds the one resource that has or had an id.
    pub(crate) fn by_id(&self, nodes: &Nodes, id: &ResourceId) -> Result<usize> {
        let found = self.matching_any_id(nodes, &id.name, |known| id.is_same(known));
        let problem = match found[..] {
            [index] => return Ok(index),
            [] => "no matches",
            _ => "multiple matches",
        };
        Err(Error::patch(format!(
            "{problem} for Id {id}; failed to find unique target for patch {id}"
        )))
    }

    /// Drops resources of which nothing is left.
    pub(crate) fn drop_empty(&mut self, nodes: &Nodes) {
        if self.list.iter().any(|resource| resource.is_empty(nodes)) {
            self.list_mut().retain(|resource| !resource.is_empty(nodes));
        }
    }

    /// Fails when two resources have one id.
    pub(crate) fn refuse_duplicates(&mut self, nodes: &Nodes) -> Result<()> {
        let list = std::mem::take(self.list_mut());
        self.append_all(nodes, list)
    }

    /// Removes what `config.kubernetes.io/local-config` marks as not for the cluster; refuses what has become no object.
    pub(crate) fn drop_local(&mut self, nodes: &mut Nodes) -> Result<()> {
        const LOCAL: &str = "config.kubernetes.io/local-config";
        let mut kept = Vec::with_capacity(self.list.len());
        for mut resource in std::mem::take(self.list_mut()) {
            let Some(root) = resource.root.filter(|_| !resource.is_empty(nodes)) else {
                continue;
            };
            if resource::check(nodes, root).is_err() {
                // Said again, with the annotations that kustomize has on the object and shows.
                resource.with_history_in_annotations(nodes, |nodes, _| resource::check(nodes, root))?;
            }
            let annotations = resource::annotations(nodes, root);
            if annotations.get(LOCAL).is_none_or(|value| value == "false") {
                kept.push(resource);
            }
        }
        self.list = kept;
        Ok(())
    }
}

/// Shows an id as Go's `%#v` shows kustomize's struct.
fn show(id: &ResourceId) -> String {
    format!(
        "resid.ResId{{Gvk:resid.Gvk{{Group:{:?}, Version:{:?}, Kind:{:?}, isClusterScoped:{}}}, Name:{:?}, \
         Namespace:{:?}}}",
        id.gvk.group, id.gvk.version, id.gvk.kind, id.cluster_scoped, id.name, id.namespace
    )
}
