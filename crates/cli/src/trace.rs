//! `windlass trace`: from any object of the cluster to what delivers it, and to the commit that it came from.

use clap::Args;
use delivery_graph::climb::climb;
use delivery_graph::{images, origin};

use crate::cluster::output::{self, Colours};
use crate::cluster::{self, ClusterFlags, Failure, Output, Reader, anything, print};
use crate::why;

/// Command line of `trace`.
#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// KIND/NAME or KIND NAME, of any kind
    #[arg(value_name = "OBJECT", required = true)]
    words: Vec<String>,

    /// Output format
    #[arg(long, short, value_enum, default_value_t)]
    output: Output,

    #[command(flatten)]
    cluster: ClusterFlags,
}

/// Climbs, and prints. Who asks about an object that Flux does not manage is told so, with an exit code of its own.
pub(crate) fn run(flags: &Flags) -> Result<(), Failure> {
    let named = anything::one_named(&flags.words)?;
    cluster::run(&flags.cluster, async |cluster| {
        let object = cluster.need_named(&named).await?;
        let reader = Reader::new(&cluster);
        let mut found = climb(&reader, &object).await;
        found.from = origin::origin_of(&found);
        found.images = images::chosen(&reader, &object, &found).await;
        match flags.output {
            Output::Json | Output::Yaml => {
                let value =
                    serde_json::to_value(&found).map_err(|error| Failure::Write(error.to_string()))?;
                print(&output::document(&value, flags.output)?)?;
            }
            Output::Name => {
                let names = found.chain().into_iter();
                print(
                    &names
                        .map(|found| format!("{}\n", found.object))
                        .collect::<String>(),
                )?;
            }
            Output::Table | Output::Wide => print(&why::tree(&found, Colours::of_terminal()))?,
        }
        match origin::is_delivered(&found) {
            true => Ok(()),
            false => Err(Failure::NotReady(format!(
                "{} is not delivered by Flux: neither its labels nor its owners lead to a Kustomization or HelmRelease, and \
                 no inventory has it",
                found.object
            ))),
        }
    })
}
