//! `windlass verify`: whether the promotions of a pipeline are attested; for other objects, every link from the images that its Pods
//! run to the signature of the commit.

mod chain;
mod promotions;
mod statement;
mod trust;

use clap::Args;
use oci_verify::SigstoreFlags;

use crate::cluster::anything::{self, Named};
use crate::cluster::{self, ClusterFlags, Failure};
use trust::Trust;

/// Command line of `verify`.
#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// pipeline/NAME, or any other object, such as deployment/NAME
    #[arg(value_name = "OBJECT", required = true)]
    words: Vec<String>,

    #[command(flatten)]
    signers: trust::SignerFlags,

    #[command(flatten)]
    sigstore: SigstoreFlags,

    /// Output format; for a pipeline, json has the statements
    #[arg(long, short, default_value = "table", value_parser = ["table", "json"])]
    output: String,

    #[command(flatten)]
    cluster: ClusterFlags,
}

/// Verifies a pipeline, or another object.
pub(crate) fn run(flags: &Flags, report_line: impl Fn(&str)) -> Result<(), Failure> {
    let named = anything::one_named(&flags.words)?;
    let is_json = flags.output == "json";
    if is_pipeline(&named) {
        let keys = flags.signers.keys()?;
        if keys.is_empty() {
            return Err(Failure::Usage(
                "--key: name the public key that must have signed the promotions".to_owned(),
            ));
        }
        return cluster::run(&flags.cluster, async |cluster| {
            promotions::run(&cluster, &named.name, &keys, is_json, &report_line).await
        });
    }
    let root = flags.sigstore.root();
    let root = root.map_err(|error| Failure::Usage(error.to_string()))?;
    let demand = flags.signers.demand()?;
    let delivery_keys = flags.signers.delivery_keys()?;
    cluster::run(&flags.cluster, async |cluster| {
        let trust = Trust::new(&cluster, demand, root);
        chain::run(&cluster, &named, (&trust, &delivery_keys), is_json).await
    })
}

/// Returns whether it is a Pipeline of ours, and not one of another group.
fn is_pipeline(named: &Named) -> bool {
    let word = named.kind.to_lowercase();
    let kind = word.strip_suffix(".delivery.windlass.dev").unwrap_or(&word);
    matches!(kind, "pipeline" | "pipelines")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pipelines_of_others_are_objects_like_any() {
        let is_ours = |word: &str| is_pipeline(&anything::one_named(&[word.to_owned()]).unwrap());
        for word in ["pipeline/a", "Pipelines/a", "pipeline.delivery.windlass.dev/a"] {
            assert!(is_ours(word), "{word}");
        }
        for word in ["pipeline.tekton.dev/a", "deployment/pipeline", "pipelinerun/a"] {
            assert!(!is_ours(word), "{word}");
        }
    }
}
