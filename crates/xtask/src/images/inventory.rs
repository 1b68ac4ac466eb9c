//! Inventory of a program: every crate that is compiled into it, as an SPDX 2.3 document.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use testkit::tools::repository_root;

use super::commands::read;
use super::commit::Commit;
use super::platform::Platform;

/// The document for the image of one program. What only builds or tests it is not in it, macros included.
pub(super) fn spdx_document(program: &str, platform: Platform, commit: &Commit) -> Result<Value> {
    let root = repository_root();
    let metadata = read(
        Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
            .current_dir(&root)
            .args(["metadata", "--locked", "--format-version=1", "--filter-platform"])
            .arg(platform.target()),
    )?;
    let metadata: Value = serde_json::from_str(&metadata).context("cargo metadata gave something else")?;
    let lock = std::fs::read_to_string(root.join("Cargo.lock")).context("failed to read Cargo.lock")?;
    describe(program, commit, &metadata, &checksums(&lock))
}

fn describe(
    program: &str,
    commit: &Commit,
    metadata: &Value,
    checksums: &BTreeMap<(String, String), String>,
) -> Result<Value> {
    let crates = by_id(&metadata["packages"]);
    let nodes = by_id(&metadata["resolve"]["nodes"]);
    let has_program = |found: &&Value| {
        let targets = found["targets"].as_array().into_iter().flatten();
        found["source"].is_null()
            && targets
                .filter(|target| target["kind"] == json!(["bin"]))
                .any(|target| target["name"] == program)
    };
    let top = crates.values().copied().find(has_program);
    let top = top.and_then(|found| found["id"].as_str());
    let top = top.with_context(|| format!("no crate has the program {program}"))?;

    // Its content is in the image beside the program.
    let authorities = crates.values().find(|found| found["name"] == "webpki-root-certs");
    let authorities = authorities.and_then(|found| found["id"].as_str());
    let authorities = authorities.context("cargo does not know the crate of the certificate authorities")?;
    let is_macro = |id: &str| {
        let kind = crates.get(id).map(|found| &found["targets"][0]["kind"]);
        kind.is_some_and(|kind| *kind == json!(["proc-macro"]))
    };

    let mut reached = BTreeSet::from([top, authorities]);
    let mut ahead = vec![top];
    let describes = |id| json!({"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": name_of(id)});
    let mut relationships = vec![describes(top), describes(authorities)];
    while let Some(id) = ahead.pop() {
        let dependencies = nodes.get(id).and_then(|node| node["deps"].as_array());
        for dependency in dependencies
            .into_iter()
            .flatten()
            .filter(|found| is_linked(found))
        {
            let Some(on) = dependency["pkg"].as_str().filter(|on| !is_macro(on)) else {
                continue;
            };
            relationships.push(json!({"spdxElementId": name_of(id), "relationshipType": "DEPENDS_ON", "relatedSpdxElement": name_of(on)}));
            if reached.insert(on) {
                ahead.push(on);
            }
        }
    }
    relationships.sort_by_cached_key(ToString::to_string);
    let packages = reached.iter().filter_map(|id| crates.get(id));
    let packages: Vec<_> = packages
        .map(|found| package(found, &commit.id, checksums))
        .collect();
    Ok(json!({
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": program,
        "documentNamespace": format!("https://windlass.dev/spdx/{program}/{}", commit.id),
        "creationInfo": {"created": commit.time.to_string(), "creators": ["Tool: windlass-xtask"]},
        "packages": packages,
        "relationships": relationships,
    }))
}

fn by_id(list: &Value) -> BTreeMap<&str, &Value> {
    let list = list.as_array().into_iter().flatten();
    list.filter_map(|found| Some((found["id"].as_str()?, found)))
        .collect()
}

/// Returns whether a dependency gets into the program.
fn is_linked(dependency: &Value) -> bool {
    let mut kinds = dependency["dep_kinds"].as_array().into_iter().flatten();
    kinds.any(|kind| kind["kind"].is_null())
}

fn package(found: &Value, commit: &str, checksums: &BTreeMap<(String, String), String>) -> Value {
    let text = |key: &str| found[key].as_str().unwrap_or_default().to_owned();
    let (name, version) = (text("name"), text("version"));
    let is_ours = found["source"].is_null();
    let mut package = json!({
        "SPDXID": name_of(&text("id")),
        "name": name,
        "versionInfo": if is_ours { commit } else { &version },
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": false,
        "licenseConcluded": "NOASSERTION",
        // Older crates write a slash for "or".
        "licenseDeclared": match text("license").replace('/', " OR ") {
            license if license.is_empty() => "NOASSERTION".to_owned(),
            license => license,
        },
        "copyrightText": "NOASSERTION",
    });
    if !is_ours {
        package["externalRefs"] = json!([{
            "referenceCategory": "PACKAGE-MANAGER",
            "referenceType": "purl",
            "referenceLocator": format!("pkg:cargo/{name}@{version}"),
        }]);
    }
    if let Some(checksum) = checksums.get(&(name, version)) {
        package["checksums"] = json!([{"algorithm": "SHA256", "checksumValue": checksum}]);
    }
    package
}

/// A name within the document. Ids of cargo have paths of this machine in them, for our own crates.
fn name_of(id: &str) -> String {
    let tail = id.rsplit('/').next().unwrap_or(id);
    let plain: String = tail
        .chars()
        .map(|letter| {
            if letter.is_ascii_alphanumeric() || letter == '.' {
                letter
            } else {
                '-'
            }
        })
        .collect();
    if id.starts_with("path+") {
        return format!("SPDXRef-{plain}");
    }
    // Two sources may have a crate of the same name.
    let source = hex::encode(&Sha256::digest(id)[..4]);
    format!("SPDXRef-{plain}-{source}")
}

/// Name and version → SHA-256, as Cargo.lock has them.
fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let mut found = BTreeMap::new();
    for block in lock.split("[[package]]") {
        let field = |name: &str| {
            let mut lines = block.lines().filter_map(|line| line.split_once(" = "));
            let value = lines.find(|(key, _)| *key == name)?.1;
            Some(value.trim_matches('"').to_owned())
        };
        if let (Some(name), Some(version), Some(checksum)) =
            (field("name"), field("version"), field("checksum"))
        {
            found.insert((name, version), checksum);
        }
    }
    found
}
