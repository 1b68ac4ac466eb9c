//! Images of a program that is only a few bytes: what is around it is the same.

use std::collections::BTreeMap;
use std::io::Read as _;

use flate2::read::GzDecoder;
use jiff::Timestamp;
use serde_json::{Value, json};
use testkit::Registry;

use super::*;

const TAG: &str = "test";
const BOTH: &[Platform] = &[Platform::Amd64, Platform::Arm64];

/// Packs a program that another folder has, for each of these platforms.
fn packed(work: &Path, platforms: &[Platform]) -> (Buildah, Image) {
    let programs = work.join("programs");
    fs::create_dir(&programs).unwrap();
    fs::write(programs.join("windlass"), "program").unwrap();
    let commit = Commit {
        id: "0123".to_owned(),
        time: Timestamp::from_second(1_700_000_000).unwrap(),
        clean: true,
    };
    let buildah = Buildah::new(work);
    let folders: Vec<_> = platforms
        .iter()
        .map(|platform| (*platform, programs.clone()))
        .collect();
    let packing = Packing {
        tag: TAG,
        out: &work.join("out"),
        repository: None,
        is_described: false,
        folders: &folders,
        commit: &commit,
    };
    let image = packing.pack(&buildah, work, "windlass").unwrap();
    (buildah, image)
}

fn blob(layout: &Path, digest: &Value) -> Vec<u8> {
    let digest = digest.as_str().unwrap().trim_start_matches("sha256:");
    fs::read(layout.join("blobs/sha256").join(digest)).unwrap()
}

#[test]
fn an_image_has_its_program_and_certificates_and_nothing_else() {
    let work = tempfile::tempdir().unwrap();
    let (_, image) = packed(work.path(), &[Platform::Amd64]);
    let layout = work.path().join("out/windlass");
    let manifest: Value = serde_json::from_slice(&blob(&layout, &json!(image.digest))).unwrap();
    let config: Value = serde_json::from_slice(&blob(&layout, &manifest["config"]["digest"])).unwrap();
    assert_eq!(config["config"]["User"], "65534:65534");
    assert_eq!(config["config"]["Entrypoint"], json!(["/program"]));
    assert_eq!(
        config["config"]["Labels"]["org.opencontainers.image.revision"],
        "0123"
    );
    assert_eq!(config["created"], "2023-11-14T22:13:20Z");

    let mut files = BTreeMap::new();
    for layer in manifest["layers"].as_array().unwrap() {
        let layer = blob(&layout, &layer["digest"]);
        let mut archive = tar::Archive::new(GzDecoder::new(layer.as_slice()));
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            let header = entry.header().clone();
            assert_eq!((header.uid().unwrap(), header.gid().unwrap()), (0, 0));
            assert_eq!(header.mtime().unwrap(), 1_700_000_000);
            if header.entry_type().is_file() {
                let mut content = String::new();
                entry.read_to_string(&mut content).unwrap();
                let path = entry.path().unwrap().display().to_string();
                files.insert(path, (header.mode().unwrap() & 0o7777, content));
            }
        }
    }
    let names: Vec<_> = files
        .iter()
        .map(|(path, (mode, _))| (path.as_str(), *mode))
        .collect();
    assert_eq!(
        names,
        [("etc/ssl/certs/ca-certificates.crt", 0o644), ("program", 0o755)]
    );
    assert_eq!(files["program"].1, "program");
    let authorities = &files["etc/ssl/certs/ca-certificates.crt"].1;
    let count = webpki_root_certs::TLS_SERVER_ROOT_CERTS.len();
    assert_eq!(authorities.matches("BEGIN CERTIFICATE").count(), count);
}

#[test]
fn an_index_has_an_image_for_each_platform() {
    let work = tempfile::tempdir().unwrap();
    let (_, image) = packed(work.path(), BOTH);
    let layout = work.path().join("out/windlass");
    let index: Value = serde_json::from_slice(&blob(&layout, &json!(image.digest))).unwrap();
    let manifests = index["manifests"].as_array().unwrap();
    let named: Vec<_> = manifests.iter().map(|manifest| &manifest["platform"]).collect();
    assert_eq!(
        named,
        [
            &json!({"architecture": "amd64", "os": "linux"}),
            &json!({"architecture": "arm64", "os": "linux"})
        ]
    );
    for ((platform, digest), manifest) in image.platforms.iter().zip(manifests) {
        assert_eq!(manifest["digest"], **digest);
        let manifest: Value = serde_json::from_slice(&blob(&layout, &json!(digest))).unwrap();
        let config: Value = serde_json::from_slice(&blob(&layout, &manifest["config"]["digest"])).unwrap();
        assert_eq!(config["architecture"], platform.architecture());
    }
}

#[test]
fn the_same_commit_has_the_same_digest_and_a_registry_takes_it() {
    for platforms in [&[Platform::Amd64], BOTH] {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (buildah, image) = packed(one.path(), platforms);
        assert_eq!(image.digest, packed(other.path(), platforms).1.digest);

        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let registry = Registry::start().await.unwrap();
            let repository = format!("{}/windlass", registry.address());
            let at = tokio::task::block_in_place(|| push(&buildah, &image, &repository)).unwrap();
            assert_eq!(at, format!("{repository}/windlass:{TAG}"));
            let url = format!(
                "http://{}/v2/windlass/windlass/manifests/{TAG}",
                registry.address()
            );
            let http = reqwest::Client::builder().no_proxy().build().unwrap();
            let accept =
                "application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json";
            let answer = http.get(url).header("Accept", accept).send().await.unwrap();
            assert_eq!(answer.headers()["docker-content-digest"], image.digest);
        });
    }
}

#[test]
fn what_is_in_a_program_is_named_and_nothing_that_only_tests_it() {
    let commit = Commit::of(&repository_root()).unwrap();
    let document = inventory::spdx_document("windlass", Platform::host().unwrap(), &commit).unwrap();
    let packages = document["packages"].as_array().unwrap();
    let named = |name: &str| packages.iter().find(|package| package["name"] == name);
    assert!(named("kustomize-build").is_some());
    assert!(named("webpki-root-certs").is_some());
    for absent in ["testkit", "proptest", "serde_derive", "syn"] {
        assert!(named(absent).is_none(), "{absent}");
    }
    let serde = named("serde").unwrap();
    assert_eq!(serde["licenseDeclared"], "MIT OR Apache-2.0");
    assert_eq!(serde["checksums"][0]["checksumValue"].as_str().unwrap().len(), 64);
    let known: Vec<_> = packages.iter().map(|package| &package["SPDXID"]).collect();
    for relationship in document["relationships"].as_array().unwrap() {
        assert!(
            known.contains(&&relationship["relatedSpdxElement"]),
            "{relationship}"
        );
    }
    let text = document.to_string();
    assert!(!text.contains(&repository_root().display().to_string()));
}
