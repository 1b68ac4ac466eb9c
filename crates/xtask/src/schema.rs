//! Writes what `kustomize-build` knows of the built-in types: `crates/kustomize-build/src/schema/table.rs`.
//!
//! Two descriptions go in, the one that kustomize has built in and the one that Kubernetes publishes; one Rust source
//! comes out, in which both share what is equal. Not a part of `generate`: `make lint` has to run where neither Go nor
//! the 40 MB of the Kubernetes module are. The header names the inputs' digests instead, and the table changes only
//! with the versions in [`inputs`].

mod graph;
mod inputs;
mod reduce;
mod render;

use std::{fs, path::Path};

use anyhow::{Context, Result, ensure};

const TABLE: &str = "crates/kustomize-build/src/schema/table.rs";

/// Arguments of `xtask generate-schema`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Compare with what is committed, write nothing, and fail when it is stale.
    #[arg(long)]
    check: bool,
}

/// Writes, or with `--check` compares, the table.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let text = generate()?;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(TABLE);
    if arguments.check {
        let committed = fs::read_to_string(&path).with_context(|| format!("failed to read {TABLE}"))?;
        ensure!(committed == text, "stale, run `make generate-schema`:\n  {TABLE}");
        return Ok(());
    }
    fs::write(&path, text).with_context(|| format!("failed to write {TABLE}"))
}

fn generate() -> Result<String> {
    let inputs = inputs::read()?;
    let mut graph = graph::Graph::default();
    let kustomize = graph.add(&inputs.kustomize)?;
    let kubernetes = graph.add(&inputs.kubernetes)?;
    let types = render::Types {
        kustomize,
        kubernetes,
        kustomize_scopes: inputs.kustomize_scopes,
        kubernetes_scopes: inputs::scopes_of_paths(&inputs.kubernetes)?,
    };
    let reduced = reduce::reduce(&graph, types.roots());
    render::render(&reduced, &types, &inputs.origins)
}
