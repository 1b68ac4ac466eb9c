//! One pass over one Kustomization: what its steps share.

use std::sync::Arc;

use api::kustomize::Kustomization;
use controller_kit::ObjectKey;
use kube_apply::Owner;

use super::observe::Observed;
use super::record::Recorder;
use crate::context::Context;
use crate::memory::Entry;

/// One pass over one Kustomization.
pub(super) struct Pass<'a> {
    /// Context that all passes share.
    pub context: &'a Arc<Context>,
    /// Key of the object.
    pub key: &'a ObjectKey,
    /// State that it was decided from.
    pub observed: Observed,
    /// Records what becomes of the object.
    pub recorder: Recorder<'a>,
}

impl<'a> Pass<'a> {
    /// Begins with what was observed.
    pub fn new(context: &'a Arc<Context>, key: &'a ObjectKey, observed: Observed) -> Self {
        let recorder = Recorder::new(context, Arc::clone(&observed.object));
        Self {
            context,
            key,
            observed,
            recorder,
        }
    }

    /// Returns the object as it was observed.
    pub fn object(&self) -> &Kustomization {
        &self.observed.object
    }

    /// Reads or changes what is remembered of the object.
    pub fn remembered<R>(&self, change: impl FnOnce(&mut Entry) -> R) -> R {
        self.context.memory.with(self.key, change)
    }

    /// Returns the name that the objects it applies are labelled with.
    pub fn owner(&self) -> Owner {
        Owner {
            namespace: self.key.namespace.clone(),
            name: self.key.name.clone(),
        }
    }
}
