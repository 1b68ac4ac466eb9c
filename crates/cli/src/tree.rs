//! `windlass tree`: the board of a Pipeline; what a Kustomization or HelmRelease has applied, what those among it have applied, and
//! how all of it is; of images, what builds upon them.

mod board;

use clap::Args;
use delivery_graph::tree::{self, Node};

use crate::cluster::output::{self, Colours, Tone};
use crate::cluster::{self, ClusterFlags, Failure, Output, Reader, print, select};

/// Command line of `tree`.
#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// KIND/NAME, or KIND NAME
    #[arg(value_name = "OBJECT", required = true)]
    words: Vec<String>,

    /// Show only Kustomizations and HelmReleases
    #[arg(long)]
    compact: bool,

    /// Output format
    #[arg(long, short, value_enum, default_value_t)]
    output: Output,

    #[command(flatten)]
    cluster: ClusterFlags,
}

/// Reads, and prints.
pub(crate) fn run(flags: &Flags) -> Result<(), Failure> {
    let target = select::one_target(&flags.words)?;
    if target.kind.kind == "Pipeline" {
        return board::run(&target.name, flags.output, &flags.cluster);
    }
    let has_inventory = tree::has_inventory(target.kind.kind);
    if !has_inventory && !tree::has_followers(target.kind.kind) {
        let message = format!(
            "{} have no inventory; only Kustomizations and HelmReleases have one",
            target.kind.plural
        );
        return Err(Failure::Usage(message));
    }
    cluster::run(&flags.cluster, async |cluster| {
        let root = cluster.need(&target.id(&cluster.namespace)).await?;
        let reader = Reader::new(&cluster);
        let nodes = match has_inventory {
            true => tree::grow(&reader, &root, flags.compact).await,
            false => tree::follow(&reader, &root).await,
        };
        match flags.output {
            Output::Json | Output::Yaml => print(&output::document(&tree::value(&nodes, 0), flags.output)?),
            Output::Name => print(
                &nodes
                    .iter()
                    .map(|node| format!("{}\n", node.id))
                    .collect::<String>(),
            ),
            Output::Table | Output::Wide => print(&shown(&nodes, Colours::of_terminal())),
        }
    })
}

fn shown(nodes: &[Node], colours: Colours) -> String {
    let mut text = String::new();
    write(nodes, 0, ["", ""], colours, &mut text);
    text
}

/// Writes a node and what is below it; `[first, rest]` stand before its line and before those of its children.
fn write(nodes: &[Node], number: usize, [first, rest]: [&str; 2], colours: Colours, text: &mut String) {
    let node = &nodes[number];
    let tone = match node.status {
        "Current" => Tone::Good,
        "InProgress" | "Suspended" | "Terminating" | "Unknown" => Tone::Open,
        _ => Tone::Bad,
    };
    let status = colours.paint(node.status, tone);
    let message = if node.message.is_empty() {
        String::new()
    } else {
        format!(": {}", node.message)
    };
    text.push_str(&format!("{first}{} {status}{message}\n", node.id));
    let children = tree::children(nodes, number);
    for (place, &child) in children.iter().enumerate() {
        let (branch, below) = if place + 1 == children.len() {
            ("└── ", "    ")
        } else {
            ("├── ", "│   ")
        };
        let (first, rest) = (format!("{rest}{branch}"), format!("{rest}{below}"));
        write(nodes, child, [&first, &rest], colours, text);
    }
}

#[cfg(test)]
mod tests {
    use delivery_graph::kind;
    use kube_health::verdict;
    use manifest::ObjectId;
    use serde_json::{Value, json};

    use super::*;

    fn kustomization(entries: &[&str]) -> Value {
        let entries: Vec<_> = entries.iter().map(|id| json!({"id": id, "v": "v1"})).collect();
        json!({
            "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
            "metadata": {"name": "app", "namespace": "shop", "generation": 1},
            "status": {"inventory": {"entries": entries}, "observedGeneration": 1,
                       "conditions": [{"type": "Ready", "status": "True"}]},
        })
    }

    #[test]
    fn the_tree_shows_every_object_below_the_one_that_applied_it() {
        let of = |kind: &str, name: &str| ObjectId {
            kind: kind.to_owned(),
            namespace: "shop".to_owned(),
            name: name.to_owned(),
            ..ObjectId::default()
        };
        let flux = |name: &str| {
            kind::exact("Kustomization")
                .map(|kind| kind.id("shop", name))
                .unwrap()
        };
        let mut failed = kustomization(&[]);
        failed["status"]["conditions"] = json!([
            {"type": "Ready", "status": "False", "reason": "BuildFailed", "message": "no\nsuch file"},
            {"type": "Reconciling", "status": "True", "reason": "ProgressingWithRetry"}]);
        let there = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}});
        let claim =
            json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "status": {"phase": "Pending"}});
        let nodes = [
            tree::node(None, flux("app"), "", Some(&kustomization(&[]))),
            tree::node(Some(0), flux("child"), "v1", Some(&failed)),
            tree::node(Some(0), of("ConfigMap", "gone"), "v1", None),
            tree::node(Some(1), of("ConfigMap", "x"), "v1", Some(&there)),
            tree::node(Some(1), of("PersistentVolumeClaim", "data"), "v1", Some(&claim)),
        ];
        let pending = verdict::compute(&claim).message;
        assert_eq!(
            shown(&nodes, Colours::none()),
            format!(
                "Kustomization/shop/app Current\n\
                 ├── Kustomization/shop/child Failed: BuildFailed: no such file\n\
                 │   ├── ConfigMap/shop/x Current\n\
                 │   └── PersistentVolumeClaim/shop/data InProgress: {pending}\n\
                 └── ConfigMap/shop/gone NotFound\n"
            )
        );
        let value = tree::value(&nodes, 0);
        assert_eq!(value["objects"][0]["objects"][1]["status"], "InProgress");
        assert_eq!(value["objects"][1]["version"], "v1");
    }
}
