//! The images of a release, held against the policies of the cluster before anything of it is recorded or applied.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::BoxFuture;
use manifest::Object;
use verification_policy::images::Judge;

/// Holds what a HelmRelease renders against the policies.
pub struct ImageAdmission {
    images: Arc<Judge>,
    /// Namespace of the HelmRelease.
    from: String,
    warnings: Mutex<Vec<String>>,
}

impl ImageAdmission {
    /// Of a HelmRelease in a namespace; None if no policy applies to it.
    pub fn of(images: &Arc<Judge>, from: &str) -> Option<Arc<Self>> {
        images.may_apply(from).then(|| {
            Arc::new(Self {
                images: Arc::clone(images),
                from: from.to_owned(),
                warnings: Mutex::default(),
            })
        })
    }

    /// What was let through though it does not meet a policy, one line each.
    pub fn warnings(&self) -> Vec<String> {
        std::mem::take(&mut *self.warnings.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl helm_action::Admission for ImageAdmission {
    fn admit<'a>(
        &'a self,
        namespace: &'a str,
        objects: &'a mut [Object],
    ) -> BoxFuture<'a, Result<BTreeSet<usize>, String>> {
        Box::pin(async move {
            let judged = self.images.judge(&self.from, namespace, &*objects).await;
            let mut judged = judged.map_err(|error| error.to_string())?;
            let warnings = std::mem::take(&mut judged.warnings);
            *self.warnings.lock().unwrap_or_else(PoisonError::into_inner) = warnings;
            let places = objects.iter_mut().enumerate();
            let changed = places.filter_map(|(place, object)| judged.pin(object).then_some(place));
            Ok(changed.collect())
        })
    }
}
