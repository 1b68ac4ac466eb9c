//! Installs our own CustomResourceDefinitions, as `charts/windlass/files/crds` ships them.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, Client};

use crate::tools::repository_root;
use crate::wait::wait_for;

const OURS: &str = "charts/windlass/files/crds";
/// Of the group that comes with others, and always installed.
const ALWAYS: [&str; 2] = ["_freezes.", "_verificationpolicies."];
const WEAVE: &str = "charts/windlass/files/crds-weave";
const FLUX_OPERATOR: &str = "charts/windlass/files/crds-flux-operator";
/// Those of image automation, which the chart installs by option, begin so.
const IMAGES: [&str; 2] = ["image.toolkit.fluxcd.io_", "delivery.windlass.dev_"];

/// Applies the definitions that the chart installs by default and waits until the API server serves them.
pub async fn install_crds(client: &Client) -> Result<()> {
    let is_default = |name: &str| {
        ALWAYS.iter().any(|kind| name.contains(kind)) || !IMAGES.iter().any(|group| name.starts_with(group))
    };
    install(client, &repository_root().join(OURS), is_default).await
}

/// Applies every definition of the chart and waits until the API server serves them.
pub async fn install_all_crds(client: &Client) -> Result<()> {
    install_crds_from(client, &repository_root().join(OURS)).await
}

/// Applies the definitions of Weave GitOps, which the chart installs by option, and waits until the API server serves them.
pub async fn install_weave_crds(client: &Client) -> Result<()> {
    install_crds_from(client, &repository_root().join(WEAVE)).await
}

/// Applies the definitions of flux-operator's kinds that are served, which the chart installs by option.
pub async fn install_flux_operator_crds(client: &Client) -> Result<()> {
    install_crds_from(client, &repository_root().join(FLUX_OPERATOR)).await
}

/// Applies every `*.yaml` of `folder`, one definition each, and waits until the API server serves them.
pub async fn install_crds_from(client: &Client, folder: &Path) -> Result<()> {
    install(client, folder, |_| true).await
}

async fn install(client: &Client, folder: &Path, is_wanted: impl Fn(&str) -> bool) -> Result<()> {
    let mut names = Vec::new();
    for text in read_definitions(folder, is_wanted)? {
        names.push(apply(client, text).await?);
    }
    if names.is_empty() {
        bail!("{} holds no *.yaml file: run `make generate`", folder.display());
    }
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    for name in &names {
        wait_for(&definitions, name, is_established, Duration::from_secs(60)).await?;
    }
    Ok(())
}

fn read_definitions(folder: &Path, is_wanted: impl Fn(&str) -> bool) -> Result<Vec<String>> {
    let failed = || format!("failed to read the definitions in {}", folder.display());
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).with_context(failed)? {
        paths.push(entry.with_context(failed)?.path());
    }
    let name = |path: &Path| path.file_name().and_then(|name| name.to_str()).map(str::to_owned);
    paths.retain(|path| name(path).is_some_and(|name| name.ends_with(".yaml") && is_wanted(&name)));
    paths.sort();
    paths
        .iter()
        .map(|path| fs::read_to_string(path).with_context(failed))
        .collect()
}

/// Server-side apply takes YAML as it is; only the name must be known for the address.
async fn apply(client: &Client, text: String) -> Result<String> {
    let name = name_of(&text).context("a definition has no name")?.to_owned();
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let request = http::Request::patch(format!("{path}/{name}?fieldManager=testkit&force=true"))
        .header("content-type", "application/apply-patch+yaml")
        .body(text.into_bytes())?;
    client
        .request_text(request)
        .await
        .with_context(|| format!("failed to apply the definition {name}"))?;
    Ok(name)
}

/// The `name` directly below the top-level `metadata`.
fn name_of(text: &str) -> Option<&str> {
    let metadata = text
        .lines()
        .skip_while(|line| line.trim_end() != "metadata:")
        .skip(1);
    let mut fields = metadata.take_while(|line| line.starts_with(' '));
    let name = fields.find_map(|line| line.strip_prefix("  name:"))?;
    Some(name.trim().trim_matches('"'))
}

fn is_established(definition: &CustomResourceDefinition) -> bool {
    let conditions = definition
        .status
        .as_ref()
        .and_then(|status| status.conditions.as_deref())
        .unwrap_or_default();
    conditions
        .iter()
        .any(|condition| condition.type_ == "Established" && condition.status == "True")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_is_the_one_of_the_metadata() {
        let text = "---\nkind: X\nmetadata:\n  annotations:\n    name: no\n  name: a.b.c\nspec:\n  names:\n    name: no\n";
        assert_eq!(name_of(text), Some("a.b.c"));
        assert_eq!(name_of("metadata:\nspec:\n  name: no\n"), None);
    }
}
