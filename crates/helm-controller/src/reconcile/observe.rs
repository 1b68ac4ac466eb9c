//! Everything that a decision depends on, read into one value: the object, the source of its chart, its dependencies, and
//! what is remembered of earlier runs. Reads caches only; no request is made here.

use std::sync::Arc;

use api::helm::{ChartArtifactKind, HelmRelease};
use api::meta::{
    DependencyReference, HasConditions, RECONCILE_REQUEST_ANNOTATION, StatusObject, condition_types,
};
use api::source::{ExternalArtifact, HelmChart, OCIRepository};
use cel_expression::Expression;
use cluster_access::targets::Placement;
use controller_kit::ObjectKey;
use controller_kit::dependencies::{cycle, glimpse, told};
use controller_kit::runtime::Cache;
use kube::core::object::HasStatus as _;
use kube::runtime::reflector::{ObjectRef, Store};
use serde_json::json;

use crate::chart_template;
use crate::memory::{Attempt, Memory};
use crate::source::{self, Reference, Source};

/// What a reconcile sees of the world.
#[derive(Debug, Clone)]
pub struct Observed {
    /// The object, with the status that we wrote last.
    pub object: Arc<HelmRelease>,
    /// The object that gives the chart; None if the spec names none, or two.
    pub reference: Option<Reference>,
    /// What is known of it.
    pub source: Source,
    /// What is to be done about the HelmChart of the spec's template.
    pub template: Template,
    /// The objects that must be ready first, in the order of the spec.
    pub dependencies: Vec<Dependency>,
    /// The value of the annotation that asks for a reconcile.
    pub requested_at: Option<String>,
    /// The newest run.
    pub attempt: Option<Attempt>,
    /// Objects of the release were changed or deleted by somebody else.
    pub drifted: bool,
    /// A ConfigMap or Secret that the spec refers to was touched.
    pub inputs_touched: bool,
    /// Somebody else wrote or deleted a record of the release.
    pub release_touched: bool,
}

/// What is to be done about the HelmChart of a template.
#[derive(Debug, Clone, PartialEq)]
pub enum Template {
    /// Nothing: it is as it should be, or there is none.
    Current,
    /// It is to be made, or changed.
    Apply(Box<HelmChart>),
    /// This one, which is of an earlier spec, is to be deleted; None if it is gone already.
    Remove(Option<ObjectKey>),
    /// Another object has one of the same name.
    Taken {
        /// The HelmChart.
        chart: ObjectKey,
        /// Whose it is.
        by: ObjectKey,
    },
}

/// One entry of `spec.dependsOn`.
#[derive(Debug, Clone, PartialEq)]
pub struct Dependency {
    /// As messages name it: `flux-system/base`.
    pub name: String,
    /// None if there is no such object.
    pub found: Option<DependencyState>,
}

/// The state of a dependency.
#[derive(Debug, Clone, PartialEq)]
pub struct DependencyState {
    /// Ready, for its newest generation.
    pub ready: bool,
    /// What `readyExpr` says, if there is one.
    pub expression: Option<Result<bool, cel_expression::Error>>,
    /// Says so if it waits for us in turn.
    pub cycle: Option<String>,
}

/// The caches that watches fill.
#[derive(Clone)]
pub struct Caches {
    /// All HelmReleases in scope, of all shards: one may depend on another's. With our own newest writes.
    pub releases: Cache<HelmRelease>,
    /// All HelmCharts.
    pub charts: Store<HelmChart>,
    /// All OCIRepositories.
    pub oci_repositories: Store<OCIRepository>,
    /// All ExternalArtifacts.
    pub external_artifacts: Store<ExternalArtifact>,
}

/// Reads everything about one HelmRelease; None if it is gone.
///
/// With `locked`, an expression sees of objects in other namespaces only what [`glimpse`](controller_kit::dependencies::glimpse)
/// shows.
pub fn observe(caches: &Caches, memory: &Memory, key: &ObjectKey, locked: bool) -> Option<Observed> {
    let object = caches.releases.get(&key.object_ref())?;
    let has_one = object.spec.chart.is_some() != object.spec.chart_ref.is_some();
    let reference = source::reference(&object).filter(|_| has_one);
    let source = reference.as_ref().map_or(Source::Missing, |reference| {
        source_of(caches, reference, &key.namespace)
    });
    let latest = object.status.as_ref().and_then(|status| status.history.first());
    let latest = latest.map(|latest| (latest.version, latest.status.as_str()));
    let (attempt, drifted, inputs_touched, release_touched) = memory.with(key, |entry| {
        (
            entry.attempt.clone(),
            entry.drifted,
            entry.inputs_touched,
            entry.seen.differs(latest),
        )
    });
    Some(Observed {
        template: template(caches, &object),
        dependencies: dependencies(caches.releases.store(), &object, locked),
        requested_at: annotation(&object, RECONCILE_REQUEST_ANNOTATION),
        reference,
        source,
        attempt,
        drifted,
        inputs_touched,
        release_touched,
        object,
    })
}

fn source_of(caches: &Caches, reference: &Reference, from: &str) -> Source {
    let Reference { kind, key } = reference;
    let found = match kind {
        ChartArtifactKind::HelmChart => {
            let chart = caches.charts.get(&key.object_ref());
            chart.map(|chart| source::of_chart(&chart, from))
        }
        ChartArtifactKind::OCIRepository => {
            let repository = caches.oci_repositories.get(&key.object_ref());
            repository.map(|repository| source::of_oci(&repository, from))
        }
        ChartArtifactKind::ExternalArtifact => {
            let external = caches.external_artifacts.get(&key.object_ref());
            external.map(|external| source::of_artifact(&*external, *kind, from))
        }
    };
    found.unwrap_or(Source::Missing)
}

/// Compares the HelmChart in the cluster with what the spec describes.
fn template(caches: &Caches, object: &HelmRelease) -> Template {
    if let Some(outdated) = chart_template::outdated(object) {
        let chart = caches.charts.get(&outdated.object_ref());
        // What somebody else made under that name is not ours to delete.
        let is_ours = chart.is_some_and(|chart| chart_template::is_of(&chart, object));
        return Template::Remove(is_ours.then_some(outdated));
    }
    let (Some(desired), Some(key)) = (chart_template::desired(object), chart_template::key(object)) else {
        return Template::Current;
    };
    let Some(chart) = caches.charts.get(&key.object_ref()) else {
        return Template::Apply(Box::new(desired));
    };
    if chart_template::is_current(&chart, &desired) {
        return Template::Current;
    }
    if let Some(other) = chart_template::owner(&chart)
        && other != ObjectKey::of(object)
        && let Some(rival) = caches.releases.get(&other.object_ref())
        && chart_template::key(&rival).as_ref() == Some(&key)
    {
        return Template::Taken {
            chart: key,
            by: other,
        };
    }
    Template::Apply(Box::new(desired))
}

/// What of an object says where its release is made, and as whom.
pub fn placement(object: &HelmRelease) -> Placement<'_> {
    Placement {
        namespace: object.metadata.namespace.as_deref().unwrap_or_default(),
        service_account: object.spec.service_account_name.as_deref(),
        kube_config: object.spec.kube_config.as_ref(),
    }
}

/// Returns the namespace that a dependency is in.
pub fn dependency_namespace<'a>(object: &'a HelmRelease, named: Option<&'a str>) -> &'a str {
    match named {
        Some(namespace) if !namespace.is_empty() => namespace,
        _ => object.metadata.namespace.as_deref().unwrap_or_default(),
    }
}

fn annotation(object: &HelmRelease, key: &str) -> Option<String> {
    object.metadata.annotations.as_ref()?.get(key).cloned()
}

fn dependencies(store: &Store<HelmRelease>, object: &HelmRelease, locked: bool) -> Vec<Dependency> {
    let mut own = None;
    let mut expression = |reference: &DependencyReference, other: &HelmRelease| {
        let text = reference.ready_expr.as_deref().filter(|text| !text.is_empty())?;
        let own = own.get_or_insert_with(|| serde_json::to_value(object).unwrap_or_default());
        let dep = serde_json::to_value(other).unwrap_or_default();
        let is_foreign = other.metadata.namespace != object.metadata.namespace;
        let dep = if locked && is_foreign { glimpse(&dep) } else { dep };
        let variables = json!({"self": own, "dep": dep});
        let parsed = Expression::parse_with_variables(text, &["dep", "self"]);
        Some(parsed.and_then(|parsed| parsed.evaluate_boolean(&variables)))
    };
    let of = |key: &ObjectKey| -> Vec<ObjectKey> {
        let Some(object) = store.get(&key.object_ref()) else {
            return Vec::new();
        };
        let key = |reference: &DependencyReference| {
            let namespace = dependency_namespace(&object, reference.namespace.as_deref());
            ObjectKey::new(namespace, &reference.name)
        };
        object.spec.depends_on.iter().map(key).collect()
    };
    let cycle = |other: &HelmRelease| cycle(&ObjectKey::of(object), &ObjectKey::of(other), of);
    let entries = object.spec.depends_on.iter().map(|reference| {
        let namespace = dependency_namespace(object, reference.namespace.as_deref());
        let found = store.get(&ObjectRef::new(&reference.name).within(namespace));
        Dependency {
            name: format!("{namespace}/{}", reference.name),
            found: found.map(|other| DependencyState {
                ready: is_ready(&other),
                cycle: if is_ready(&other) {
                    None
                } else {
                    cycle(&other).map(|way| told(&way))
                },
                expression: expression(reference, &other),
            }),
        }
    });
    entries.collect()
}

/// Ready, for the newest generation.
pub fn is_ready(object: &HelmRelease) -> bool {
    let is_current =
        object.status().and_then(HasConditions::observed_generation) == object.metadata.generation;
    let ready = object.condition(condition_types::READY);
    is_current && ready.is_some_and(|ready| ready.status == "True")
}
