//! Tests of the artifact at `status.artifact.url` of each kind, byte by byte: what Flux's controllers and CLI
//! rely on.

use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use artifact::Digest;
use kube::api::DynamicObject;
use reqwest::header::{ETAG, IF_NONE_MATCH, LAST_MODIFIED, RANGE};
use serde_json::{Value, json};
use testkit::objects::{self, field, is_ready, text, with_spec};
use testkit::registry::{Artifact, Layer};
use testkit::tools::Package;
use testkit::{HelmRepository, ObjectStore, wait_for};

use crate::world::{PATIENCE, SOURCE, Test, config_map, run};

#[test]
fn the_archive_of_a_git_repository() {
    run("format-git", |test| async move {
        let repository = test.repository(&[
            ("deploy/a.yaml", config_map(&test.namespace, "a", "1")),
            ("b.yaml", "b: 1\n".to_owned()),
            (".sourceignore", "ignored.txt\n".to_owned()),
            ("ignored.txt", "no".to_owned()),
            (".github/workflow.yaml", "a: 1\n".to_owned()),
        ])?;
        // An executable and a symlink, which Flux leaves out.
        let worktree = testkit::scratch::directory("worktree")?;
        let clone = worktree.path().join("clone");
        let git = |arguments: &[&str]| -> Result<()> {
            let ran = Command::new("git")
                .arg("-C")
                .arg(worktree.path())
                .args(arguments)
                .output()?;
            ensure!(
                ran.status.success(),
                "{arguments:?}: {}",
                String::from_utf8_lossy(&ran.stderr)
            );
            Ok(())
        };
        let origin = repository.directory().display().to_string();
        git(&["clone", "-q", "-b", "main", &origin, "clone"])?;
        std::fs::write(clone.join("run.sh"), "#!/bin/sh\n")?;
        std::os::unix::fs::symlink("b.yaml", clone.join("link.yaml"))?;
        git(&["-C", "clone", "add", "-A"])?;
        git(&["-C", "clone", "update-index", "--chmod=+x", "run.sh"])?;
        let who = ["-c", "user.name=t", "-c", "user.email=t@example.com"];
        git(&[&["-C", "clone"], &who[..], &["commit", "-q", "-m", "more"]].concat())?;
        git(&["-C", "clone", "push", "-q"])?;

        test.git_source(&repository).await?;
        let commit = repository.resolve("main")?;
        let file = format!("{commit}.tar.gz");
        let found = Found::new(&test, "GitRepository", "app", &file).await?;
        ensure!(
            found.revision == format!("main@sha1:{commit}"),
            "{}",
            found.revision
        );
        ensure!(
            found.files()?
                == [
                    // Without a .sourceignore this folder would be left out.
                    "-rw------- .github/workflow.yaml",
                    "-rw------- .sourceignore",
                    "-rw------- b.yaml",
                    "-rw------- deploy/a.yaml",
                    "-rwx------ run.sh"
                ],
            "{:?}",
            found.files()?
        );
        ensure!(found.unpacked("deploy/a.yaml")? == config_map(&test.namespace, "a", "1").as_bytes());
        found.is_served_as_files_are().await
    });
}

#[test]
fn the_archive_of_an_oci_repository() {
    run("format-oci", |test| async move {
        let registry = &test.world.registry;
        let (ns, url) = (&test.namespace, registry.url(&test.namespace));
        let files = [("a.yaml", "a: 1\n"), ("sub/b.yaml", "b: 1\n")];
        let digest = registry
            .push_files(ns, &["latest"], "main@sha1:abc", &files)
            .await?;
        test.apply(&objects::oci_repository(ns, "app", &url, "latest"))
            .await?;
        let found = Found::new(&test, "OCIRepository", "app", &format!("{digest}.tar.gz")).await?;
        ensure!(found.revision == format!("latest@{digest}"), "{}", found.revision);
        ensure!(
            found.files()? == ["-rw------- a.yaml", "-rw------- sub/b.yaml"],
            "{:?}",
            found.files()?
        );
        let metadata = field(&found.object, "/status/artifact/metadata");
        let origin = metadata.and_then(|all| all.get("org.opencontainers.image.revision"));
        ensure!(origin == Some(&json!("main@sha1:abc")), "{metadata:?}");

        // A layer that is copied is served as it is.
        let mut artifact = Artifact::from_files("v1", &files)?;
        let layer = Layer {
            media_type: "application/vnd.example.tgz".to_owned(),
            data: b"whatever it is".to_vec(),
        };
        artifact.layers.push(layer.clone());
        let digest = registry.push(ns, &["copied"], &artifact).await?;
        let selector = json!({"mediaType": layer.media_type, "operation": "copy"});
        let object = objects::oci_repository(ns, "copied", &url, "copied");
        test.apply(&with_spec(object, json!({"layerSelector": selector})))
            .await?;
        let found = Found::new(&test, "OCIRepository", "copied", &format!("{digest}.tar.gz")).await?;
        ensure!(found.bytes == layer.data);
        Ok(())
    });
}

#[test]
fn the_archive_of_a_bucket() {
    run("format-bucket", |test| async move {
        let ns = &test.namespace;
        let store = ObjectStore::start(Package::Moto).await?;
        store.make_s3("app").await?;
        let ignore = "*.png\n";
        for (key, content) in [
            ("a.yaml", "a: 1\n"),
            ("sub/b.yaml", "b: 1\n"),
            ("x.png", "no"),
            (".sourceignore", ignore),
        ] {
            store.put_s3("app", key, content).await?;
        }
        let keys = json!({"accesskey": "key", "secretkey": "secret"});
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys", "namespace": ns},
                            "stringData": keys});
        test.apply(&secret).await?;
        test.apply(&json!({
            "apiVersion": SOURCE, "kind": "Bucket", "metadata": {"name": "app", "namespace": ns},
            "spec": {"bucketName": "app", "endpoint": store.address(), "insecure": true, "interval": "1h",
                     "secretRef": {"name": "keys"}},
        }))
        .await?;
        let ready = wait_for(&test.objects(SOURCE, "Bucket"), "app", is_ready, PATIENCE).await?;
        let revision = text(&ready, "/status/artifact/revision");
        let hex = revision
            .strip_prefix("sha256:")
            .context("the revision is no checksum")?;
        let found = Found::new(&test, "Bucket", "app", &format!("{hex}.tar.gz")).await?;
        let files = found.files()?;
        ensure!(
            files
                == [
                    "-rw------- .sourceignore",
                    "-rw------- a.yaml",
                    "-rw------- sub/b.yaml"
                ],
            "{files:?}"
        );
        Ok(())
    });
}

#[test]
fn the_index_of_a_helm_repository_and_the_package_of_a_chart() {
    run("format-helm", |test| async move {
        let ns = &test.namespace;
        let server = HelmRepository::start().await?;
        test.apply(&json!({
            "apiVersion": SOURCE, "kind": "HelmRepository", "metadata": {"name": "app", "namespace": ns},
            "spec": {"url": server.url(), "interval": "1h"},
        }))
        .await?;
        let ready = wait_for(&test.objects(SOURCE, "HelmRepository"), "app", is_ready, PATIENCE).await?;
        let revision = text(&ready, "/status/artifact/revision").to_owned();
        let hex = revision
            .strip_prefix("sha256:")
            .context("the revision is no checksum")?;
        let found = Found::new(&test, "HelmRepository", "app", &format!("index-{hex}.yaml")).await?;
        // In Flux too it is JSON, which is YAML.
        let index: Value = serde_json::from_slice(&found.bytes)?;
        ensure!(
            index["apiVersion"] == "v1" && index["entries"]["web"][0]["version"] == "0.1.0",
            "{index}"
        );
        let newest = found.url.replace(&format!("index-{hex}.yaml"), "index.yaml");
        ensure!(reqwest::get(&newest).await?.bytes().await? == found.bytes);

        let repository = test.repository(&[
            (
                "charts/web/Chart.yaml",
                "apiVersion: v2\nname: web\nversion: 1.2.3\n".to_owned(),
            ),
            ("charts/web/values.yaml", "a: 1\n".to_owned()),
            ("charts/web/templates/a.yaml", config_map(ns, "a", "1")),
        ])?;
        test.git_source(&repository).await?;
        test.apply(&json!({
            "apiVersion": SOURCE, "kind": "HelmChart", "metadata": {"name": "web", "namespace": ns},
            "spec": {"chart": "charts/web", "interval": "1h", "sourceRef": {"kind": "GitRepository", "name": "app"}},
        }))
        .await?;
        let found = Found::new(&test, "HelmChart", "web", "web-1.2.3.tgz").await?;
        ensure!(found.revision == "1.2.3", "{}", found.revision);
        ensure!(text(&found.object, "/status/observedChartName") == "web");
        let names = found.names()?;
        ensure!(
            names.iter().all(|name| name.starts_with("web/")) && names.len() == 3,
            "{names:?}"
        );
        Ok(())
    });
}

/// An object's artifact record, and the served file.
struct Found {
    object: DynamicObject,
    revision: String,
    url: String,
    bytes: Vec<u8>,
}

impl Found {
    /// Downloads it, and checks all that holds for every kind.
    async fn new(test: &Test, kind: &str, name: &str, file: &str) -> Result<Self> {
        let object = wait_for(&test.objects(SOURCE, kind), name, is_ready, PATIENCE).await?;
        let of_artifact = |key: &str| text(&object, &format!("/status/artifact/{key}")).to_owned();
        let path = format!("{}/{}/{name}/{file}", kind.to_lowercase(), test.namespace);
        ensure!(
            of_artifact("path") == path,
            "{} is not {path}",
            of_artifact("path")
        );
        let url = of_artifact("url");
        ensure!(
            url.starts_with("http://") && url.ends_with(&format!("/{path}")),
            "{url}"
        );
        let answer = reqwest::get(&url).await?;
        ensure!(answer.status() == 200, "{url}: {}", answer.status());
        let bytes = answer.bytes().await?.to_vec();
        ensure!(of_artifact("digest") == Digest::from_content(&bytes).to_string());
        ensure!(field(&object, "/status/artifact/size") == Some(&Value::from(bytes.len())));
        let updated = of_artifact("lastUpdateTime");
        ensure!(
            updated.len() == "2026-01-01T00:00:00Z".len() && updated.ends_with('Z'),
            "{updated}"
        );
        // The newest archive's address, which GitRepository has no field for.
        let newest = text(&object, "/status/url");
        ensure!(
            newest.starts_with("http://") || kind == "GitRepository",
            "{newest:?}"
        );
        Ok(Self {
            revision: of_artifact("revision"),
            url,
            bytes,
            object,
        })
    }

    /// Mode and name of each file, after everything that may say where it was made was checked not to be there.
    fn files(&self) -> Result<Vec<String>> {
        let listing = String::from_utf8(self.tar(&["-tvz", "--numeric-owner", "--utc", "--full-time"])?)?;
        let mut files = Vec::new();
        for line in listing.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [mode, owner, _, date, time, name] = words[..] else {
                anyhow::bail!("{line:?} is no line of tar")
            };
            ensure!(
                owner == "0/0" && (date, time) == ("1970-01-01", "00:00:00"),
                "{line}"
            );
            ensure!(
                !name.starts_with('/') && !name.starts_with("./") && !name.contains(".."),
                "{line}"
            );
            if !mode.starts_with('d') {
                files.push(format!("{mode} {name}"));
            }
        }
        files.sort_by(|a, b| a.split(' ').next_back().cmp(&b.split(' ').next_back()));
        Ok(files)
    }

    fn names(&self) -> Result<Vec<String>> {
        let listing = String::from_utf8(self.tar(&["-tz"])?)?;
        Ok(listing.lines().map(ToOwned::to_owned).collect())
    }

    fn unpacked(&self, name: &str) -> Result<Vec<u8>> {
        self.tar(&["-xzO", name])
    }

    fn tar(&self, arguments: &[&str]) -> Result<Vec<u8>> {
        let file = testkit::scratch::directory("archive")?;
        let path = file.path().join("archive");
        std::fs::write(&path, &self.bytes)?;
        let ran = Command::new("tar")
            .args(arguments)
            .arg("-f")
            .arg(&path)
            .stdin(Stdio::null())
            .output()
            .context("failed to run tar")?;
        ensure!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        Ok(ran.stdout)
    }

    /// Ranges, validators, HEAD, and 404 for what is not there, as a file server has them.
    async fn is_served_as_files_are(&self) -> Result<()> {
        let http = reqwest::Client::new();
        let head = http.head(&self.url).send().await?;
        ensure!(head.status() == 200 && head.headers().contains_key(LAST_MODIFIED));
        let part = http.get(&self.url).header(RANGE, "bytes=2-5").send().await?;
        ensure!(part.status() == 206 && part.bytes().await? == self.bytes[2..6]);
        let tag = head.headers().get(ETAG).context("no ETag")?;
        let unchanged = http.get(&self.url).header(IF_NONE_MATCH, tag).send().await?;
        ensure!(unchanged.status() == 304, "{}", unchanged.status());
        let (folder, _) = self.url.rsplit_once('/').context("a URL without a slash")?;
        let latest = http.get(format!("{folder}/latest.tar.gz")).send().await?;
        ensure!(latest.bytes().await? == self.bytes);
        for other in [
            format!("{folder}/other.tar.gz"),
            format!("{folder}/../../../x"),
            format!("{folder}/"),
        ] {
            ensure!(http.get(&other).send().await?.status() == 404, "{other}");
        }
        Ok(())
    }
}
