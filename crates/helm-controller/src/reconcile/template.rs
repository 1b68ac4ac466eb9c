//! Makes, changes and deletes the HelmChart that a spec describes. It is the controller's doing, not the tenant's: the
//! reference to the source has been checked.

use api::helm::HelmRelease;
use api::source::HelmChart;
use controller_kit::ObjectKey;
use controller_kit::events::Severity;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};

use super::record::Recorder;
use crate::context::Context;
use crate::error::Error;
use crate::flags::NAME;

/// Makes or changes a HelmChart by server-side apply, as Flux does.
pub async fn apply(context: &Context, recorder: &Recorder<'_>, chart: &HelmChart) -> Result<(), Error> {
    let key = ObjectKey::from_object(chart);
    let api: Api<HelmChart> = Api::namespaced(context.base.client.clone(), &key.namespace);
    let parameters = PatchParams::apply(NAME).force();
    // The watch may show what is made here before the answer comes.
    let is_known = context.sources.charts.get(&key.object_ref()).is_some();
    let applied = api.patch(&key.name, &parameters, &Patch::Apply(chart)).await;
    let applied = applied.map_err(|error| {
        let error = Error::ApplyChart(Box::new(error));
        trace(recorder, "HelmChartSyncErr", &error.message());
        error
    })?;
    let is_new = applied.metadata.generation == Some(1) && !is_known;
    let source = &chart.spec.source_ref;
    let (action, reason) = match is_new {
        true => ("Created", "HelmChartCreated"),
        false => ("Configured", "HelmChartConfigured"),
    };
    let message = format!(
        "{action} HelmChart/{key} with SourceRef '{:?}/{}/{}'",
        source.kind, key.namespace, source.name
    );
    tracing::info!("{message}");
    trace(recorder, reason, &message);
    Ok(())
}

/// Deletes a HelmChart of an earlier spec.
pub async fn remove(context: &Context, recorder: &Recorder<'_>, chart: &ObjectKey) -> Result<(), Error> {
    let api: Api<HelmChart> = Api::namespaced(context.base.client.clone(), &chart.namespace);
    match api.delete(&chart.name, &DeleteParams::default()).await {
        Ok(_) => {
            let message = format!("deleted HelmChart '{chart}'");
            tracing::info!("{message}");
            trace(recorder, "HelmChartDeleted", &message);
            Ok(())
        }
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        Err(error) => Err(Error::DeleteChart {
            chart: chart.to_string(),
            source: Box::new(error),
        }),
    }
}

/// The HelmChart of an object that is being deleted, if it is ours.
pub fn last(context: &Context, object: &HelmRelease) -> Option<ObjectKey> {
    let named = object
        .status
        .as_ref()
        .and_then(|status| status.helm_chart.as_deref());
    let named = named.and_then(|named| named.split_once('/'));
    let named = named.map(|(namespace, name)| ObjectKey::new(namespace, name));
    let key = named.or_else(|| crate::chart_template::key(object))?;
    let chart = context.sources.charts.get(&key.object_ref())?;
    let is_going = chart.metadata.deletion_timestamp.is_some();
    (!is_going && crate::chart_template::is_of(&chart, object)).then_some(key)
}

fn trace(recorder: &Recorder<'_>, reason: &str, message: &str) {
    recorder.event(
        Severity::Trace,
        reason,
        message,
        std::collections::BTreeMap::new(),
    );
}
