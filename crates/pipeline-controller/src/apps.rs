//! Applications that a pipeline selects by their labels.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::delivery::{AppKind, AppReference, Pipeline, PipelineStatus};
use kube::Resource;
use kube::core::{Selector, SelectorExt as _};

use crate::app::{App, Facts};
use crate::context::Context;
use crate::observe::{Owner, named};

/// Applications that one pipeline may promote.
const MAX_APPS: usize = 50;

/// Returns the pipeline with the applications that it selects in its status, which is not written yet; itself if it selects none.
pub(crate) async fn found(pipeline: &Arc<Pipeline>, context: &Context) -> Result<Arc<Pipeline>, String> {
    let mut pipeline = pipeline.clone();
    let apps = match pipeline.spec.apps.iter().any(|app| app.selector.is_some()) {
        true => selected(&pipeline, context).await?,
        false => Vec::new(),
    };
    let known = pipeline.status.as_ref().map_or(&[][..], |status| &status.apps);
    if known != apps {
        let pipeline = Arc::make_mut(&mut pipeline);
        pipeline.status.get_or_insert_with(PipelineStatus::default).apps = apps;
    }
    Ok(pipeline)
}

/// All applications of a pipeline: those with names, and those in the first environments that have the labels.
async fn selected(pipeline: &Pipeline, context: &Context) -> Result<Vec<AppReference>, String> {
    let (spec, owner) = (&pipeline.spec, Owner::new(pipeline));
    let own = pipeline.metadata.namespace.as_deref().unwrap_or_default();
    let environments = spec.environments.iter().enumerate();
    let first = environments.filter(|(at, _)| spec.needs(*at).is_empty());
    let targets = first.flat_map(|(_, environment)| &environment.targets);
    let here = targets.filter(|target| target.kube_config.is_none());
    let namespaces: BTreeSet<&str> = here
        .map(|target| target.namespace.as_deref().unwrap_or(own))
        .collect();
    if namespaces.is_empty() {
        return Err(
            "apps are selected by labels in a first environment of this cluster, and there is none"
                .to_owned(),
        );
    }
    let mut apps: Vec<AppReference> = Vec::new();
    for app in &spec.apps {
        let Some(selector) = &app.selector else {
            apps.push(app.clone());
            continue;
        };
        let selector = Selector::try_from(selector.of_kubernetes())
            .map_err(|error| format!("the selector of an app: {}", error_chain::chain(&error)))?;
        let mut names = BTreeSet::new();
        for namespace in &namespaces {
            // First the right: who may not look does not learn what is there.
            owner.check(app, namespace, context).await?;
            names.extend(names_of(app.kind, namespace, &selector, context));
        }
        if names.is_empty() {
            let namespaces: Vec<_> = namespaces.iter().copied().collect();
            let (kind, namespaces) = (app.kind.as_str(), namespaces.join(", "));
            return Err(format!("no {kind} in {namespaces} has the labels {selector}"));
        }
        apps.extend(names.into_iter().map(|name| AppReference { name, ..app.clone() }));
    }
    let mut seen = BTreeSet::new();
    apps.retain(|app| seen.insert((app.kind, app.name.clone())));
    match apps.len() > MAX_APPS {
        true => Err(format!(
            "{} apps have the labels, and a pipeline may have {MAX_APPS}",
            apps.len()
        )),
        false => Ok(apps),
    }
}

/// Returns why an application of a later environment is not what the pipeline is about: it lacks the labels. Otherwise who may label
/// something in a first environment could have anything of that name changed in the others.
pub(crate) fn stranger(app: &AppReference, facts: &Facts) -> Option<String> {
    let selector = Selector::try_from(app.selector.as_ref()?.of_kubernetes()).ok()?;
    let is_meant = selector.matches(&facts.labels);
    (!is_meant).then(|| format!("{} lacks the labels {selector}", named(app)))
}

fn names_of(kind: AppKind, namespace: &str, selector: &Selector, context: &Context) -> Vec<String> {
    match kind {
        AppKind::HelmRelease => matching(&context.releases, namespace, selector),
        AppKind::Kustomization => matching(&context.kustomizations, namespace, selector),
        AppKind::OCIRepository => matching(&context.artifacts, namespace, selector),
        AppKind::GitRepository => matching(&context.repositories, namespace, selector),
    }
}

fn matching<K>(
    cache: &controller_kit::runtime::Cache<App<K>>,
    namespace: &str,
    selector: &Selector,
) -> Vec<String>
where
    K: Resource<DynamicType = ()> + 'static,
{
    let apps = cache.store().state();
    let none = BTreeMap::new();
    let apps = apps.iter().filter(|app| {
        app.meta().namespace.as_deref() == Some(namespace) && selector.matches(app.labels().unwrap_or(&none))
    });
    apps.filter_map(|app| app.meta().name.clone()).collect()
}
