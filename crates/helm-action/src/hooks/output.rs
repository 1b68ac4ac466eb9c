//! Output of a hook's Pods for the log of an action. Read only if the hook asks for it, since it may contain
//! anything.

use helm_release::Record;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams, LogParams};

use super::order::{self, Output};
use crate::Context;

/// Pods of a Job that are looked at.
const PODS: u32 = 5;
/// Containers of all of them.
const CONTAINERS: usize = 10;
/// The last lines of each container: more than a log keeps.
const LINES: i64 = 10;
/// Bytes of them.
const BYTES: i64 = 16 << 10;

/// Logs what a hook printed, if that is its policy. That it cannot be read changes nothing.
pub(super) async fn log(context: &Context<'_>, record: &Record, place: usize, now: Output) {
    let hook = &record.release.hooks[place];
    if !order::is_logged(hook, now) {
        return;
    }
    let params = ListParams::default().limit(PODS);
    let params = match hook.kind.as_str() {
        "Job" => params.labels(&format!("job-name={}", hook.name)),
        "Pod" => params.fields(&format!("metadata.name={}", hook.name)),
        _ => return,
    };
    let namespace = namespace(&hook.manifest).unwrap_or_else(|| record.release.namespace.clone());
    let pods = Api::namespaced(context.cluster.client.clone(), &namespace);
    if let Err(error) = log_pods(context, &pods, &params).await {
        context
            .log
            .line(format!("error outputting logs for hook failure: {error}"));
    }
}

/// The namespace that a hook says it is in.
fn namespace(manifest: &str) -> Option<String> {
    let objects = manifest::read_objects(manifest, "hook").ok()?;
    let namespace = objects.first()?.namespace();
    (!namespace.is_empty()).then(|| namespace.to_owned())
}

async fn log_pods(context: &Context<'_>, pods: &Api<Pod>, params: &ListParams) -> kube::Result<()> {
    let mut left = CONTAINERS;
    for pod in pods.list(params).await?.items {
        let name = pod.metadata.name.unwrap_or_default();
        let containers = pod.spec.map(|spec| spec.containers).unwrap_or_default();
        for container in containers.into_iter().take(left) {
            left -= 1;
            let params = LogParams {
                container: Some(container.name.clone()),
                tail_lines: Some(LINES),
                limit_bytes: Some(BYTES),
                ..LogParams::default()
            };
            let text = pods.logs(&name, &params).await?;
            for line in text.lines() {
                context.log.line(format!("{name}/{}: {line}", container.name));
            }
        }
    }
    Ok(())
}
