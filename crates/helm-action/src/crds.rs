//! The CRDs of a chart's crds/, by the user's policy, before the chart is rendered: other objects, and templates that ask
//! what the cluster serves, need them.
//!
//! They belong to no release: nothing of them is recorded, and nothing deletes them. Words are Flux's.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt, StreamExt as _};
use helm_render::{Crd, Renderer};
use kube_apply::{ApplyOne, mapper};
use manifest::ObjectId;
use serde_json::{Map, Value};

use crate::resources::{self, Resource};
use crate::{Content, Context, CrdPolicy, Error, ErrorKind, wait};

/// How long they may take to be established.
const PATIENCE: Duration = Duration::from_secs(60);

/// Applies the CRDs of a chart, waits until they are established, and makes their kinds known.
pub(crate) async fn apply(
    context: &Context<'_>,
    content: &Content,
    values: &Map<String, Value>,
    server_side: bool,
) -> Result<(), Error> {
    if content.chart.chart().crd_files().is_empty() {
        return Ok(());
    }
    if content.crds == CrdPolicy::Skip {
        context
            .log
            .line("skipping CustomResourceDefinition apply: policy is set to Skip");
        return Ok(());
    }
    apply_all(context, content, values, server_side)
        .await
        .map_err(|error| {
            error
                .of_kind(ErrorKind::Crds)
                .within("failed to apply CustomResourceDefinitions")
        })
}

async fn apply_all(
    context: &Context<'_>,
    content: &Content,
    values: &Map<String, Value>,
    server_side: bool,
) -> Result<(), Error> {
    let definitions = read(context, content, values).await?;
    let width = context.cluster.engine.settings().concurrency.max(1);
    let writes = definitions
        .iter()
        .map(|definition| write(context, definition, content.crds, server_side));
    // Boxed, so that a caller of any lifetime may send them to another thread.
    let writes: Vec<_> = writes.map(FutureExt::boxed).collect();
    let mut writes = futures::stream::iter(writes).buffered(width);
    let mut answers: HashMap<ObjectId, Value> = HashMap::new();
    while let Some(written) = writes.next().await {
        answers.extend(written?);
    }
    drop(writes);
    let written: Vec<Resource> = definitions
        .into_iter()
        .filter(|definition| answers.contains_key(&definition.id()))
        .collect();
    if written.is_empty() {
        return Ok(());
    }
    wait::until_established(context, &written, answers, PATIENCE)
        .await
        .map_err(|error| error.within("failed to wait for CustomResourceDefinition(s)"))?;
    for definition in written
        .iter()
        .filter_map(|written| mapper::definition(&written.object))
    {
        context.cluster.engine.mapper().learn(&definition);
    }
    let count = written.len();
    context.log.line(format!(
        "successfully applied {count} CustomResourceDefinition(s)"
    ));
    Ok(())
}

/// Reads the CRDs of the charts that take part. What else stands in crds/ is told, and left out.
async fn read(
    context: &Context<'_>,
    content: &Content,
    values: &Map<String, Value>,
) -> Result<Vec<Resource>, Error> {
    let mut found = Vec::new();
    for file in files(&content.chart, values).await? {
        let read = resources::read(context.cluster, &file.content, "default").await;
        let read = read.map_err(|error| {
            let path = &file.path;
            error.within(format!("failed to parse CustomResourceDefinitions from {path}"))
        })?;
        for mut resource in read {
            let gvk = resource.gvk();
            if gvk.group != "apiextensions.k8s.io" || gvk.kind != "CustomResourceDefinition" {
                context.log.line(format!(
                    "warning: ignoring non-CRD resource {} found in the chart's crds/ directory",
                    resource.id()
                ));
                continue;
            }
            for (label, value) in &content.origin_labels {
                resource.object.set_label(label, value);
            }
            found.push(resource);
        }
    }
    Ok(found)
}

/// The files of `crds/` of a chart and of those below it that take part with these values.
///
/// # Errors
/// When the values do not fit the chart.
pub async fn files(chart: &Arc<Renderer>, values: &Map<String, Value>) -> Result<Vec<Crd>, Error> {
    let (chart, values) = (Arc::clone(chart), values.clone());
    let release = helm_render::Release::new("", "");
    let files = tokio::task::spawn_blocking(move || chart.crds(&values, &helm_render::Options::new(release)));
    files
        .await
        .map_err(|error| Error::new(ErrorKind::Render, error.to_string()))?
        .map_err(|error| Error::new(ErrorKind::Render, error.to_string()))
}

/// Writes one; None if it was there and is to stay as it is.
async fn write(
    context: &Context<'_>,
    definition: &Resource,
    policy: CrdPolicy,
    server_side: bool,
) -> Result<Option<(ObjectId, Value)>, Error> {
    let engine = &context.cluster.engine;
    let name = &definition.at.name;
    let failed = |doing: &str| {
        let doing = format!("failed to {doing} CustomResourceDefinition {name}");
        move |failure: kube_apply::Failure| Error::new(ErrorKind::Crds, format!("{doing}: {failure}"))
    };
    let is_replaced = policy == CrdPolicy::CreateReplace;
    let live = if is_replaced && server_side {
        None
    } else {
        engine
            .read_metadata_one(&definition.at)
            .await
            .map_err(failed("get"))?
    };
    let answer = match live {
        Some(_) if !is_replaced => {
            context.log.line(format!(
                "CustomResourceDefinition {name} is already present. Skipping."
            ));
            return Ok(None);
        }
        Some(live) => {
            let mut object = definition.object.clone();
            let version = live.pointer("/metadata/resourceVersion").cloned();
            if let Some(Value::Object(metadata)) = object.value_mut().get_mut("metadata") {
                metadata.extend(version.map(|version| ("resourceVersion".to_owned(), version)));
            }
            let replaced = engine.replace_one(&definition.at, &object, None).await;
            replaced.map_err(failed("update"))?
        }
        None if server_side => {
            let how = ApplyOne {
                strict: true,
                take_over: &["helm"],
                owner: None,
            };
            let applied = engine.apply_one(&definition.at, &definition.object, &how).await;
            applied.map_err(failed(if is_replaced { "update" } else { "create" }))?
        }
        None => {
            let created = engine.create_one(&definition.at, &definition.object, None).await;
            created.map_err(failed("create"))?
        }
    };
    Ok(Some((definition.id(), answer)))
}
