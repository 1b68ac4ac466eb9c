//! gRPC code: `proto/` in, `src/gen/` of a crate for each service out.
//!
//! protox compiles the .proto files in Rust, so no one needs protoc; tonic-prost-build turns the descriptors to
//! code. The descriptor set is written beside the code, for server reflection.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use protox::prost::Message;
use protox::prost_reflect::prost_types::FileDescriptorSet;

use super::generated::Generated;

const PROTO_FOLDER: &str = "proto";
/// Where a service's .proto files are, and where its code goes.
const SERVICES: [(&str, &str); 2] = [
    ("proto/windlass/artifact", "crates/artifact-proto/src/gen"),
    ("proto/windlass/console", "crates/console-proto/src/gen"),
];
const DESCRIPTOR_SET: &str = "descriptor_set.bin";

/// Compiles every .proto file of each service.
pub(super) fn generate(root: &Path) -> Result<Vec<Generated>> {
    let services = SERVICES.iter();
    services
        .map(|(folder, output)| compile(root, &root.join(folder), output))
        .collect()
}

fn compile(root: &Path, folder: &Path, output: &'static str) -> Result<Generated> {
    let proto = root.join(PROTO_FOLDER);
    let sources = proto_files(folder)?;
    let descriptors = protox::compile(&sources, [&proto])
        .with_context(|| format!("failed to compile {}", proto.display()))?;

    let scratch = tempfile::tempdir().context("failed to create a scratch folder")?;
    tonic_prost_build::configure()
        .build_client(true)
        .build_server(true)
        // Chunks are cut out of larger buffers without copying them.
        .bytes(".")
        .emit_rerun_if_changed(false)
        .out_dir(scratch.path())
        .compile_fds(descriptors.clone())
        .context("failed to generate gRPC code")?;

    let mut files = read_folder(scratch.path())?;
    files.insert(
        DESCRIPTOR_SET.to_owned(),
        for_reflection(descriptors).encode_to_vec(),
    );
    Ok(Generated {
        folder: output,
        files,
        is_whole: true,
    })
}

/// Comments and line numbers are of no use to a client of server reflection.
fn for_reflection(mut descriptors: FileDescriptorSet) -> FileDescriptorSet {
    for file in &mut descriptors.file {
        file.source_code_info = None;
    }
    descriptors
}

/// All .proto files below the folder, sorted, so that the output does not depend on the file system.
fn proto_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries =
            fs::read_dir(&folder).with_context(|| format!("failed to list {}", folder.display()))?;
        for entry in entries {
            let path = entry
                .with_context(|| format!("failed to list {}", folder.display()))?
                .path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "proto") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

fn read_folder(folder: &Path) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).context("failed to list the generated code")? {
        let entry = entry.context("failed to list the generated code")?;
        let content = fs::read(entry.path()).context("failed to read the generated code")?;
        files.insert(entry.file_name().to_string_lossy().into_owned(), content);
    }
    Ok(files)
}
