//! The state of every object, `gotk_resource_info`: what others run kube-state-metrics for.
//!
//! Stores are read at each scrape, so that there is nothing to keep up to date, and nothing is left of objects that are gone.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use api::facts::{Facts, HasFacts};
use kube::ResourceExt as _;
use kube::runtime::reflector::Store;
use prometheus_client::collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::MetricType;

/// An object as a scrape tells it.
struct Told {
    namespace: String,
    name: String,
    group: String,
    version: String,
    kind: String,
    facts: Facts,
}

type Reader = Box<dyn Fn(&mut Vec<Told>) + Send + Sync>;

/// The stores of all kinds that a controller reconciles. Clones share them.
#[derive(Clone, Default)]
pub(super) struct Objects(Arc<Mutex<Vec<Reader>>>);

impl fmt::Debug for Objects {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("objects")
    }
}

impl Objects {
    /// Tells of every object of a store that `is_ours`, from now on.
    pub(super) fn add<K>(&self, store: Store<K>, is_ours: impl Fn(&K) -> bool + Send + Sync + 'static)
    where
        K: HasFacts + Clone + Send + Sync + 'static,
    {
        let read = move |told: &mut Vec<Told>| {
            for object in store.state() {
                if is_ours(&object) {
                    told.push(Told {
                        namespace: object.namespace().unwrap_or_default(),
                        name: object.name_any(),
                        group: K::group(&()).into_owned(),
                        version: K::version(&()).into_owned(),
                        kind: K::kind(&()).into_owned(),
                        facts: object.facts(),
                    });
                }
            }
        };
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(Box::new(read));
    }
}

impl collector::Collector for Objects {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let mut told = Vec::new();
        for read in self.0.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            read(&mut told);
        }
        if told.is_empty() {
            return Ok(());
        }
        // The order of a store changes; that of a page should not.
        told.sort_by(|a, b| (&a.kind, &a.namespace, &a.name).cmp(&(&b.kind, &b.namespace, &b.name)));
        let mut family = encoder.encode_descriptor(
            "gotk_resource",
            "The current state of an object",
            None,
            MetricType::Info,
        )?;
        for object in told {
            let suspended = if object.facts.suspended { "true" } else { "false" };
            let mut labels = vec![
                ("customresource_group", object.group.as_str()),
                ("customresource_version", &object.version),
                ("customresource_kind", &object.kind),
                ("exported_namespace", &object.namespace),
                ("name", &object.name),
                ("suspended", suspended),
            ];
            if !object.facts.ready.is_empty() {
                labels.push(("ready", &object.facts.ready));
            }
            let details = object.facts.details.iter();
            labels.extend(
                details
                    .filter(|(_, value)| !value.is_empty())
                    .map(|(label, value)| (*label, value.as_str())),
            );
            family.encode_info(&labels)?;
        }
        Ok(())
    }
}
