//! Everything that a decision depends on, read into one value: the object, the source of its chart, its dependencies, and
//! what is remembered of earlier runs. Reads caches only; no request is made here.

use std::sync::Arc;

use api::helm::{ChartArtifactKind, HelmRelease};
use api::meta::RECONCILE_REQUEST_ANNOTATION;
use api::source::HelmChart;
use controller_kit::runtime::Cache;
use controller_kit::{ObjectKey, access_from};
use jiff::Timestamp;
use reconcile_kit::dependencies::{self, Dependency};
use reconcile_kit::freezes::Frozen;

use crate::chart_template;
use crate::context::Context;
use crate::memory::Attempt;
use crate::source::{self, Reference, Source};
use crate::sources::Sources;

/// State of the world as a reconcile observes it.
#[derive(Debug, Clone)]
pub struct Observed {
    /// The object, with the status that we wrote last.
    pub object: Arc<HelmRelease>,
    /// The object that gives the chart; None if the spec names none, or two.
    pub reference: Option<Reference>,
    /// State of the source.
    pub source: Source,
    /// Required change of the HelmChart of the spec's template.
    pub template: Template,
    /// The objects that must be ready first, in the order of the spec.
    pub dependencies: Vec<Dependency>,
    /// The value of the annotation that asks for a reconcile.
    pub requested_at: Option<String>,
    /// The newest run.
    pub attempt: Option<Attempt>,
    /// Objects of the release were changed or deleted by someone else.
    pub drifted: bool,
    /// When objects are corrected that someone else changes again and again.
    pub correct_at: Option<Timestamp>,
    /// A ConfigMap or Secret that the spec refers to was touched.
    pub inputs_touched: bool,
    /// Someone else wrote or deleted a record of the release.
    pub release_touched: bool,
    /// What Freezes say of it.
    pub frozen: Frozen,
    /// Something waits for the end of a Freeze.
    pub waits: bool,
}

/// Required change of the HelmChart of a template.
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
        /// Its owner.
        by: ObjectKey,
    },
}

/// Reads everything about one HelmRelease; None if it is gone, or in another shard.
///
/// With `--no-cross-namespace-refs`, an expression sees of objects in other namespaces only identity and conditions.
pub fn observe(context: &Context, key: &ObjectKey) -> Option<Observed> {
    let (objects, sources, memory) = (&context.base.objects, &context.sources, &context.memory);
    let locked = context.policy.no_cross_namespace_refs;
    let object = context.base.object(key)?;
    let has_one = object.spec.chart.is_some() != object.spec.chart_ref.is_some();
    let reference = source::reference(&object).filter(|_| has_one);
    let source = reference.as_ref().map_or(Source::Missing, |reference| {
        let kind = format!("{:?}", reference.kind);
        let images = &context.images;
        match images.refuses_elsewhere(&key.namespace, &kind, &reference.key.namespace) {
            Some(refusal) => Source::Denied(access_from::Denied::Forbidden(refusal)),
            None => source_of(sources, reference, &key.namespace),
        }
    });
    let latest = object.status.as_ref().and_then(|status| status.history.first());
    let latest = latest.map(|latest| (latest.version, latest.status.as_str()));
    let now = Timestamp::now();
    let (attempt, drifted, correct_at, inputs_touched, release_touched, waits) = memory.with(key, |entry| {
        let correct_at = entry.fights.due;
        (
            entry.attempt.clone(),
            entry.drifted || correct_at.is_some_and(|due| due <= now),
            correct_at,
            entry.inputs_touched,
            entry.seen.differs(latest),
            entry.waits,
        )
    });
    Some(Observed {
        template: template(objects, sources, &object),
        dependencies: dependencies::observe(objects.store(), &*object, locked, |_| ()),
        requested_at: annotation(&object, RECONCILE_REQUEST_ANNOTATION),
        reference,
        source,
        attempt,
        drifted,
        correct_at,
        inputs_touched,
        release_touched,
        frozen: context.freezes.of(&*object, now),
        waits,
        object,
    })
}

fn source_of(sources: &Sources, reference: &Reference, from: &str) -> Source {
    let Reference { kind, key } = reference;
    let found = match kind {
        ChartArtifactKind::HelmChart => {
            let chart = sources.charts.get(&key.object_ref());
            chart.map(|chart| source::of_chart(&chart, from))
        }
        ChartArtifactKind::OCIRepository => {
            let repository = sources.oci_repositories.get(&key.object_ref());
            repository.map(|repository| source::of_oci(&repository, from))
        }
        ChartArtifactKind::ExternalArtifact => {
            let external = sources.external_artifacts.get(&key.object_ref());
            external.map(|external| source::of_artifact(&*external, *kind, from))
        }
    };
    found.unwrap_or(Source::Missing)
}

/// Compares the HelmChart in the cluster with what the spec describes.
fn template(objects: &Cache<HelmRelease>, sources: &Sources, object: &HelmRelease) -> Template {
    if let Some(outdated) = chart_template::outdated(object) {
        let chart = sources.charts.get(&outdated.object_ref());
        // What someone else made under that name is not ours to delete.
        let is_ours = chart.is_some_and(|chart| chart_template::is_of(&chart, object));
        return Template::Remove(is_ours.then_some(outdated));
    }
    let (Some(desired), Some(key)) = (chart_template::desired(object), chart_template::key(object)) else {
        return Template::Current;
    };
    let Some(chart) = sources.charts.get(&key.object_ref()) else {
        return Template::Apply(Box::new(desired));
    };
    if chart_template::is_current(&chart, &desired) {
        return Template::Current;
    }
    if let Some(other) = chart_template::owner(&chart)
        && other != ObjectKey::from_object(object)
        && let Some(rival) = objects.get(&other.object_ref())
        && chart_template::key(&rival).as_ref() == Some(&key)
    {
        return Template::Taken {
            chart: key,
            by: other,
        };
    }
    Template::Apply(Box::new(desired))
}

fn annotation(object: &HelmRelease, key: &str) -> Option<String> {
    object.metadata.annotations.as_ref()?.get(key).cloned()
}
