//! Releases of a program that is only a few bytes: what is around it is the same.

use std::process::Command;

use signature::cosign::{Attestation, Authority, PublicKey, SimpleSignature, Witness};
use testkit::Registry;

use super::*;
use crate::images::commands::read;

const SLSA: &str = "https://slsa.dev/provenance/v1";

fn openssl(arguments: &[&str]) -> String {
    read(Command::new("openssl").args(arguments)).unwrap()
}

/// A release with images for both platforms, in a folder of its own.
fn made(
    work: &Path,
    out: &str,
    repository: Option<&str>,
    key: Option<&SigningKey>,
) -> (Digests, PathBuf, String) {
    let programs = work.join("programs");
    fs::create_dir_all(&programs).unwrap();
    fs::write(programs.join(COMMAND), "program").unwrap();
    let root = repository_root();
    let version = version::of(&root).unwrap();
    let out = work.join(out);
    let release = Release {
        root: &root,
        version: &version,
        commit: &Commit::of(&root).unwrap(),
        folders: &[(Platform::Amd64, programs.clone()), (Platform::Arm64, programs)],
        programs: &[COMMAND],
        out: &out,
        repository,
        key,
    };
    let mut report = Vec::new();
    let digests = release.make(&mut report).unwrap();
    (digests, out, String::from_utf8(report).unwrap())
}

#[test]
fn files_are_those_of_the_checksums_and_the_same_each_time() {
    let work = tempfile::tempdir().unwrap();
    let (digests, out, report) = made(work.path(), "first", None, None);
    assert!(
        report.ends_with("nothing is signed: no key is given (KEY=file)\n"),
        "{report}"
    );
    let version = version::of(&repository_root()).unwrap();
    let names: Vec<_> = digests.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "image windlass".to_owned(),
            format!("windlass_{version}_linux_amd64.tar.gz"),
            format!("windlass_{version}_linux_arm64.tar.gz"),
            format!("windlass-{version}.tgz")
        ]
    );
    let checked = read(
        Command::new("sha256sum")
            .current_dir(&out)
            .args(["--check", CHECKSUMS]),
    );
    let checked = checked.unwrap();
    for name in [
        "images/windlass.arm64.spdx.json",
        "images/windlass.provenance.json",
        "notes.md",
        "provenance.json",
        &format!("windlass-{version}.tgz"),
    ] {
        assert!(checked.contains(&format!("{name}: OK\n")), "{checked}");
    }
    // And Helm's own rules for packages hold.
    let mut warnings = Vec::new();
    let package = out.join(format!("windlass-{version}.tgz"));
    let chart =
        helm_chart::load_archive_file(&package.to_string_lossy(), helm_chart::Helm::V4, &mut warnings);
    assert_eq!(chart.unwrap().metadata.version, version);

    // In the place of the release of before, and of nothing else.
    made(work.path(), "first", None, None);
    let other = work.path().join("programs");
    let refused = remove(&other).unwrap_err().to_string();
    assert!(
        refused.contains("holds no release") && other.join(COMMAND).exists(),
        "{refused}"
    );
    let again = made(work.path(), "second", None, None).0;
    check::compare(&digests, &again).unwrap();
    let mut other = again.clone();
    other[3].1 = "another".to_owned();
    let differing = check::compare(&digests, &other).unwrap_err().to_string();
    assert!(
        differing.contains(&format!(
            "windlass-{version}.tgz: {} became another",
            digests[3].1
        )),
        "{differing}"
    );
}

#[test]
fn what_is_pushed_is_signed_where_cosign_looks() {
    let work = tempfile::tempdir().unwrap();
    let at = |name: &str| work.path().join(name).display().to_string();
    openssl(&[
        "ecparam",
        "-name",
        "prime256v1",
        "-genkey",
        "-noout",
        "-out",
        &at("key"),
    ]);
    let public = openssl(&["pkey", "-in", &at("key"), "-pubout"]);
    let key = SigningKey::from_pem(&fs::read(at("key")).unwrap()).unwrap();
    fs::write(at("public"), &public).unwrap();
    let public = PublicKey::from_pem(public.as_bytes()).unwrap();
    let authority = Authority::Key(&public);

    let runtime = tokio::runtime::Runtime::new().unwrap();
    let registry = runtime.block_on(Registry::start()).unwrap();
    let repository = format!("{}/windlass", registry.address());
    let (digests, out, report) = made(work.path(), "out", Some(&repository), Some(&key));
    let version = version::of(&repository_root()).unwrap();

    // The checksums, as someone does without cosign.
    let signature = fs::read_to_string(out.join("checksums.txt.sig")).unwrap();
    fs::write(at("signature"), base64_decode(&signature)).unwrap();
    let checksums = out.join(CHECKSUMS).display().to_string();
    let verified = openssl(&[
        "dgst",
        "-sha256",
        "-verify",
        &at("public"),
        "-signature",
        &at("signature"),
        &checksums,
    ]);
    assert_eq!(verified, "Verified OK\n");

    let line = report.lines().find(|line| line.contains("/charts/windlass:"));
    let (_, chart) = line.unwrap().rsplit_once(' ').unwrap();
    let index = &digests[0].1;
    let get = |path: &str| runtime.block_on(get(&registry, path));
    let manifest: Value =
        serde_json::from_slice(&get(&format!("charts/windlass/manifests/{version}"))).unwrap();
    let package = get(&format!(
        "charts/windlass/blobs/{}",
        manifest["layers"][0]["digest"].as_str().unwrap()
    ));
    assert_eq!(sha256(&package), digests[3].1);
    let images: Value = serde_json::from_slice(&get(&format!("windlass/manifests/{version}"))).unwrap();
    let arm64 = images["manifests"][1]["digest"].as_str().unwrap();

    for (name, digest, predicates) in [
        ("charts/windlass", chart, &[SLSA][..]),
        ("windlass", index, &[SLSA]),
        ("windlass", arm64, &[SLSA, "https://spdx.dev/Document"]),
    ] {
        let beside = |ending: &str| -> Vec<(Value, Vec<u8>)> {
            let tag = format!("{}.{ending}", digest.replace(':', "-"));
            let manifest: Value = serde_json::from_slice(&get(&format!("{name}/manifests/{tag}"))).unwrap();
            let layers = manifest["layers"].as_array().unwrap().iter();
            layers
                .map(|layer| {
                    let content = get(&format!("{name}/blobs/{}", layer["digest"].as_str().unwrap()));
                    (layer["annotations"].clone(), content)
                })
                .collect()
        };
        for (annotations, payload) in beside("sig") {
            let signature = SimpleSignature {
                payload,
                signature: annotations["dev.cosignproject.cosign/signature"]
                    .as_str()
                    .unwrap()
                    .to_owned(),
                witness: Witness::default(),
            };
            authority.verify_simple(&signature, digest).unwrap();
        }
        let attestations = beside("att");
        assert_eq!(attestations.len(), predicates.len(), "{name}");
        for ((annotations, json), predicate) in attestations.into_iter().zip(predicates) {
            assert_eq!(annotations["predicateType"], **predicate);
            let witness = Witness::default();
            let attestation = Attestation::Envelope { json, witness };
            authority
                .verify_attestation(&attestation, digest, predicate)
                .unwrap();
        }
    }
}

fn base64_decode(text: &str) -> Vec<u8> {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.decode(text).unwrap()
}

async fn get(registry: &Registry, path: &str) -> Vec<u8> {
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let accept = "application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json";
    let url = format!("http://{}/v2/windlass/{path}", registry.address());
    let answer = http.get(&url).header("Accept", accept).send().await.unwrap();
    assert!(answer.status().is_success(), "{url}: {}", answer.status());
    answer.bytes().await.unwrap().to_vec()
}

/// A repository with the files that have a version.
fn small_tree(folder: &Path) {
    for (path, content) in [
        (
            "Cargo.toml",
            "[workspace]\nmembers = [\"one\"]\nresolver = \"3\"\n[workspace.package]\nversion = \"0.0.0\"\nedition = \"2024\"\n",
        ),
        (
            "one/Cargo.toml",
            "[package]\nname = \"one\"\nversion.workspace = true\nedition.workspace = true\n",
        ),
        ("one/src/lib.rs", ""),
        (
            "charts/windlass/Chart.yaml",
            "apiVersion: v2\nname: windlass\nversion: 0.0.0\nappVersion: 0.0.0\n",
        ),
        ("docs/CHANGELOG.md", "# Changes\n\n## Unreleased\n- New.\n"),
    ] {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    let git = |arguments: &[&str]| read(Command::new("git").current_dir(folder).args(arguments)).unwrap();
    git(&["init", "--quiet"]);
    read(
        Command::new("cargo")
            .current_dir(folder)
            .args(["generate-lockfile", "--offline"]),
    )
    .unwrap();
    git(&["add", "."]);
    git(&[
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@b.c",
        "commit",
        "--quiet",
        "-m",
        "first",
    ]);
}

#[test]
fn a_version_is_written_everywhere_and_its_tag_is_demanded() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    small_tree(root);
    for wrong in ["1.2", "v1.2.3", "1.02.3", "1.2.3+build", ""] {
        let refused = version::prepare(root, wrong, &mut Vec::new()).unwrap_err();
        assert!(refused.to_string().contains("is no version such as"), "{refused}");
    }
    version::prepare(root, "1.2.3-rc.1", &mut Vec::new()).unwrap();
    let text = |name: &str| fs::read_to_string(root.join(name)).unwrap();
    assert_eq!(version::of(root).unwrap(), "1.2.3-rc.1");
    assert!(text("Cargo.lock").contains("version = \"1.2.3-rc.1\""));
    assert_eq!(
        text("charts/windlass/Chart.yaml"),
        "apiVersion: v2\nname: windlass\nversion: 1.2.3-rc.1\nappVersion: 1.2.3-rc.1\n"
    );
    assert_eq!(
        text("docs/CHANGELOG.md"),
        "# Changes\n\n## Unreleased\n\n## 1.2.3-rc.1\n- New.\n"
    );

    let refused = || {
        let commit = Commit::of(root).unwrap();
        let checked = version::check_tag(root, "1.2.3-rc.1", &commit);
        checked.map_err(|error| error.to_string())
    };
    assert!(refused().unwrap_err().contains("the tree differs"));
    let git = |arguments: &[&str]| read(Command::new("git").current_dir(root).args(arguments)).unwrap();
    git(&[
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@b.c",
        "commit",
        "--quiet",
        "-am",
        "release",
    ]);
    git(&["tag", "v1.2.3"]);
    assert!(
        refused()
            .unwrap_err()
            .contains("does not have the tag v1.2.3-rc.1")
    );
    git(&["tag", "v1.2.3-rc.1"]);
    refused().unwrap();
}
