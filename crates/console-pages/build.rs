//! Names the assets after their content and compresses them, so that browsers keep them for good.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use sha2::{Digest as _, Sha256};

/// Vendored files, as they were published: `npm pack htmx.org@4.0.1`.
const VENDORED: [(&str, &str); 2] = [
    (
        "htmx.js",
        "a0abb04f2f45a1f89d1d4844023245537e5e6014c87b144553e0607b4cc32130",
    ),
    (
        "hx-sse.js",
        "18ef2761356ec1fe0bb6d92612315b37517a7c1e9856b661c5ae81fef239d103",
    ),
];

fn main() -> io::Result<()> {
    let root = PathBuf::from(variable("CARGO_MANIFEST_DIR")?).join("assets");
    println!("cargo::rerun-if-changed={}", root.display());
    let output = PathBuf::from(variable("OUT_DIR")?);
    let mut paths: Vec<PathBuf> = fs::read_dir(&root)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    paths.sort();
    let mut table = String::from("&[\n");
    for path in paths {
        let asset = asset(&path, &output)?;
        table.push_str(&asset);
    }
    table.push(']');
    fs::write(output.join("assets.rs"), table)
}

fn variable(name: &str) -> io::Result<String> {
    env::var(name).map_err(io::Error::other)
}

/// The entry of a file in the table; its compressed content is written beside the table.
fn asset(path: &Path, output: &Path) -> io::Result<String> {
    let content = fs::read(path)?;
    let file = path
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    let digest: String = Sha256::digest(&content)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    if let Some((_, known)) = VENDORED.iter().find(|(name, _)| *name == file) {
        assert_eq!(digest, *known, "{file} is not the file that was published");
    }
    let (stem, extension) = file.split_once('.').unwrap_or((file, ""));
    let compressed = output.join(format!("{file}.br"));
    let mut writer = brotli::CompressorWriter::new(fs::File::create(&compressed)?, 4096, 11, 22);
    writer.write_all(&content)?;
    drop(writer);
    let mut entry = String::new();
    let _ = writeln!(
        entry,
        "    Asset {{ file: {file:?}, name: {:?}, content: include_bytes!({:?}), compressed: include_bytes!({:?}) }},",
        format!("{stem}-{}.{extension}", &digest[..12]),
        path,
        compressed
    );
    Ok(entry)
}
