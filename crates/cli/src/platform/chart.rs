//! The chart that is in the program: its files as static bytes, parsed only by a command that needs it.
//!
//! The list is written out, so that no build script is needed; a test compares it with the folder.

use std::sync::Arc;

use helm_chart::set_values::{merge, read_local};
use helm_chart::{File, Helm};
use helm_render::Renderer;
use serde_json::{Map, Value};

use crate::cluster::Failure;

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_bytes!(concat!("../../../../charts/windlass/", $name)).as_slice())),*]
    };
}

/// Names below the chart's folder, and contents.
#[rustfmt::skip] // one file a line
static FILES: &[(&str, &[u8])] = files![
    "Chart.yaml",
    "README.md",
    "files/crds-flux-operator/fluxcd.controlplane.io_resourcesetinputproviders.yaml",
    "files/crds-flux-operator/fluxcd.controlplane.io_resourcesets.yaml",
    "files/crds-weave/gitops.weave.works_gitopsclusters.yaml",
    "files/crds-weave/pipelines.weave.works_pipelines.yaml",
    "files/crds/delivery.windlass.dev_changepolicies.yaml",
    "files/crds/delivery.windlass.dev_changerequests.yaml",
    "files/crds/delivery.windlass.dev_environmentpolicies.yaml",
    "files/crds/delivery.windlass.dev_freezes.yaml",
    "files/crds/delivery.windlass.dev_pipelines.yaml",
    "files/crds/delivery.windlass.dev_previews.yaml",
    "files/crds/delivery.windlass.dev_verificationpolicies.yaml",
    "files/crds/helm.toolkit.fluxcd.io_helmreleases.yaml",
    "files/crds/image.toolkit.fluxcd.io_imagepolicies.yaml",
    "files/crds/image.toolkit.fluxcd.io_imagerepositories.yaml",
    "files/crds/image.toolkit.fluxcd.io_imageupdateautomations.yaml",
    "files/crds/kustomize.toolkit.fluxcd.io_kustomizations.yaml",
    "files/crds/notification.toolkit.fluxcd.io_alerts.yaml",
    "files/crds/notification.toolkit.fluxcd.io_providers.yaml",
    "files/crds/notification.toolkit.fluxcd.io_receivers.yaml",
    "files/crds/source.extensions.fluxcd.io_artifactgenerators.yaml",
    "files/crds/source.toolkit.fluxcd.io_buckets.yaml",
    "files/crds/source.toolkit.fluxcd.io_externalartifacts.yaml",
    "files/crds/source.toolkit.fluxcd.io_gitrepositories.yaml",
    "files/crds/source.toolkit.fluxcd.io_helmcharts.yaml",
    "files/crds/source.toolkit.fluxcd.io_helmrepositories.yaml",
    "files/crds/source.toolkit.fluxcd.io_ocirepositories.yaml",
    "files/monitoring/dashboards/artifacts.json",
    "files/monitoring/dashboards/controllers.json",
    "files/monitoring/dashboards/delivery.json",
    "files/monitoring/dashboards/dora.json",
    "files/monitoring/dashboards/images.json",
    "files/monitoring/rules.yaml",
    "templates/NOTES.txt",
    "templates/_checks.tpl",
    "templates/_deployment.tpl",
    "templates/_names.tpl",
    "templates/_roles.tpl",
    "templates/accounts.yaml",
    "templates/admission.yaml",
    "templates/apply.yaml",
    "templates/console.yaml",
    "templates/crds.yaml",
    "templates/disruption-budgets.yaml",
    "templates/flow-control.yaml",
    "templates/freezes.yaml",
    "templates/helm.yaml",
    "templates/images.yaml",
    "templates/monitoring.yaml",
    "templates/network-policies.yaml",
    "templates/notification.yaml",
    "templates/pipelines.yaml",
    "templates/resource-sets.yaml",
    "templates/single-pod.yaml",
    "templates/roles.yaml",
    "templates/source.yaml",
    "values.schema.json",
    "values.yaml",
];

/// Parses the chart.
pub(crate) fn load() -> Result<Arc<Renderer>, Failure> {
    let files = FILES.iter().map(|(name, data)| File {
        name: (*name).to_owned(),
        data: (*data).into(),
    });
    let chart = helm_chart::load_files(files.collect(), Helm::V4, &mut Vec::new());
    let chart = chart.map_err(|error| unusable(&error))?;
    helm_chart::check(&chart, Helm::V4, &mut Vec::new()).map_err(|error| unusable(&error))?;
    Ok(Arc::new(Renderer::new(chart, Helm::V4)))
}

fn unusable(error: &dyn std::error::Error) -> Failure {
    Failure::Request {
        what: "read the chart in the program".to_owned(),
        why: error.to_string(),
    }
}

/// Values as Helm's flags give them.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct ValueFlags {
    /// Values file for the chart, or - for standard input; repeatable
    #[arg(long = "values", short = 'f', value_name = "FILE")]
    files: Vec<String>,

    /// Chart value, in Helm's --set syntax; repeatable
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,

    /// Chart value that is always a string; repeatable
    #[arg(long, value_name = "KEY=TEXT")]
    set_string: Vec<String>,

    /// Chart value as JSON; repeatable
    #[arg(long, value_name = "KEY=JSON")]
    set_json: Vec<String>,

    /// Chart value read from a file; repeatable
    #[arg(long, value_name = "KEY=FILE")]
    set_file: Vec<String>,
}

impl ValueFlags {
    /// The values; None when none were given, so that those of the release stay.
    pub(crate) fn read(&self) -> Result<Option<Map<String, Value>>, Failure> {
        let given = [
            &self.files,
            &self.set,
            &self.set_string,
            &self.set_json,
            &self.set_file,
        ];
        if given.iter().all(|words| words.is_empty()) {
            return Ok(None);
        }
        let flags = merge::Flags {
            files: self.files.clone(),
            json: self.set_json.clone(),
            typed: self.set.clone(),
            text: self.set_string.clone(),
            file: self.set_file.clone(),
            literal: Vec::new(),
        };
        let values = merge::merge(&flags, &mut read_local, Helm::V4);
        values
            .map(Some)
            .map_err(|error| Failure::Usage(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    fn below(folder: &Path, prefix: &str, found: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{prefix}{}", entry.file_name().to_str().unwrap());
            if entry.file_type().unwrap().is_dir() {
                below(&entry.path(), &format!("{name}/"), found);
            } else if !name.starts_with('.') {
                found.insert(name);
            }
        }
    }

    #[test]
    fn every_file_of_the_chart_is_in_the_program() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../charts/windlass");
        let mut expected = BTreeSet::new();
        below(&folder, "", &mut expected);
        let ours: BTreeSet<String> = FILES.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(ours, expected);
    }

    #[test]
    fn the_chart_is_one_and_its_values_are_read_as_helm_reads_them() {
        assert_eq!(load().unwrap().chart().name(), "windlass");
        assert_eq!(ValueFlags::default().read().unwrap(), None);
        let flags = ValueFlags {
            set: vec!["image.tag=v1,apply.replicas=2".to_owned()],
            set_string: vec!["image.registry=1".to_owned()],
            ..ValueFlags::default()
        };
        let expected = serde_json::json!({"image": {"tag": "v1", "registry": "1"}, "apply": {"replicas": 2}});
        assert_eq!(Value::Object(flags.read().unwrap().unwrap()), expected);
        let wrong = ValueFlags {
            set: vec!["image".to_owned()],
            ..ValueFlags::default()
        };
        assert!(wrong.read().unwrap_err().to_string().contains("--set"));
    }
}
