//! The checks of a pull request's files, as its Preview wants them.

use std::sync::Arc;

use api::delivery::{Preview, PreviewChecks};
use cluster_access::targets::Placement;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt as _;
use kube::api::Api;
use merge_preview::{Checks, Merged};
use repository_check::{Rule, Settings};
use tokio_util::sync::CancellationToken;

use crate::context::Context;

/// Checks the files, if the Preview wants that.
pub(super) async fn check(
    object: &Preview,
    merged: &Arc<Merged>,
    context: &Context,
) -> Result<Option<Checks>, String> {
    let Some(checks) = &object.spec.checks else {
        return Ok(None);
    };
    let settings = settings(object, checks, context).await?;
    let (merged, is_strict) = (merged.clone(), checks.strict);
    let given_up = CancellationToken::new();
    // Who waits for it no more, since the time is over, has it end as well.
    let _waiting = given_up.clone().drop_guard();
    let checking = tokio::task::spawn_blocking(move || {
        Checks::new(&merged, &settings, is_strict, &|| given_up.is_cancelled())
    });
    checking.await.map(Some).map_err(|error| error.to_string())
}

async fn settings(object: &Preview, checks: &PreviewChecks, context: &Context) -> Result<Settings, String> {
    let version = checks.kubernetes_version.as_deref();
    let kubernetes = version.and_then(|version| version.strip_prefix("1.")?.parse().ok());
    if version.is_some() && kubernetes.is_none() {
        return Err(".spec.checks.kubernetesVersion must be written as 1.37".to_owned());
    }
    let rules = match &checks.rules_ref {
        Some(reference) => rules(object, &reference.name, context).await,
        None => Ok(Vec::new()),
    };
    Ok(Settings {
        kubernetes,
        rules: rules.map_err(|why| format!(".spec.checks.rulesRef: {why}"))?,
    })
}

/// The rules of a ConfigMap, which is read as the account of the Preview.
async fn rules(object: &Preview, name: &str, context: &Context) -> Result<Vec<Rule>, String> {
    let namespace = object.namespace().unwrap_or_default();
    let placement = Placement {
        namespace: &namespace,
        service_account: Some(&object.spec.service_account_name),
        kube_config: None,
    };
    let target = context.remotes.target(placement).await;
    let client = target.map_err(|error| error_chain::chain(&error))?.client.clone();
    let api: Api<ConfigMap> = Api::namespaced(client, &namespace);
    let found = api.get(name).await;
    let found =
        found.map_err(|error| format!("failed to get ConfigMap '{name}': {}", error_chain::chain(&error)))?;
    let entries = found.data.unwrap_or_default();
    entries
        .into_iter()
        .map(|(entry, text)| {
            Rule::new(entry, &text).map_err(|problem| format!("ConfigMap '{name}': {problem}"))
        })
        .collect()
}
