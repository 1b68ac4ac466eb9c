//! Packages a chart of a folder: `cargo run -p helm-package --example package -- SOURCE CHART OUTPUT [VALUES_FILE…]`, where
//! CHART and the files with values are paths in SOURCE. For comparing with `helm package` by hand.

#![allow(clippy::print_stdout, reason = "it is what the example is for")]

#[path = "../tests/support/disk.rs"]
mod disk;

use std::error::Error;
use std::fs::File;

use helm_package::dependencies::{Fetch, Fetched};
use helm_package::{Options, local};

struct Nowhere;

impl Fetch for Nowhere {
    fn fetch(&self, repository: &str, _: &str, _: &str) -> Result<Fetched, Box<dyn Error + Send + Sync>> {
        Err(format!("failed to reach '{repository}': this example has no network").into())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [source, chart, output, values_files @ ..] = arguments.as_slice() else {
        return Err("SOURCE CHART OUTPUT [VALUES_FILE…] are wanted".into());
    };
    let options = Options {
        values_files: values_files.to_vec(),
        ..Options::default()
    };
    let files = disk::Disk(source.into());
    let built =
        local::find(&files, chart, &options)?.build(&files, &options, &Nowhere, File::create(output)?)?;
    println!("{built:?}");
    Ok(())
}
