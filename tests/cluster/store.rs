//! Tests of the store under a running controller: damage on disk, found at the start, and a full volume.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use artifact::Digest;
use kube::api::DynamicObject;
use serde_json::json;
use testkit::git::Change;
use testkit::objects::{self, is_ready, text, with_spec};
use testkit::wait_for;

use crate::service::{eventually, start_apply, start_source, start_source_without_http};
use crate::world::{PATIENCE, config_map, run};

#[test]
fn damage_is_found_at_the_start_and_mended_from_the_archive_or_the_remote() {
    run("damage", |test| async move {
        let ns = &test.namespace;
        let mut source = start_source_without_http(&test, &[]).await?;
        let _apply = start_apply(&test, &source, &[]).await?;
        let repository = test.repository(&[("deploy/a.yaml", config_map(ns, "a", "1"))])?;
        test.apply(&test.in_own_shard(objects::git_repository(ns, "app", repository.url(), "main")))
            .await?;
        test.apply(&test.in_own_shard(test.kustomization("app", json!({"retryInterval": "1s"}))))
            .await?;
        let revision = format!("main@sha1:{}", repository.resolve("main")?);
        test.ready("app", &revision).await?;
        let before = test.git_repositories().get("app").await?;
        let url = text(&before, "/status/artifact/digest").to_owned();
        let files = source.storage_path();

        // Blobs and folders: from the archive, without asking the remote.
        source.kill();
        for folder in ["blobs", "directories"] {
            for file in files_in(&files.join(folder))? {
                damage(&file)?;
            }
        }
        let asked = test.world.git.requests(&test.namespace).len();
        source.restart().await?;
        ensure!(sound(&files)?, "damage is left");
        ensure!(source.log().contains("\"repaired\":1"), "{}", source.log());

        // The archive: from the remote. The artifact is the same, byte by byte.
        source.kill();
        for file in files_in(&files.join("archives"))? {
            damage(&file)?;
        }
        source.restart().await?;
        let archive = files
            .join("archives")
            .join(format!("{}.tar.gz", url.trim_start_matches("sha256:")));
        eventually(async || {
            ensure!(archive.is_file(), "{} is not there", archive.display());
            Ok(())
        })
        .await?;
        ensure!(sound(&files)?, "damage is left");
        ensure!(test.world.git.requests(&test.namespace).len() > asked);
        let same =
            |object: &DynamicObject| is_ready(object) && text(object, "/status/artifact/digest") == url;
        wait_for(&test.git_repositories(), "app", same, PATIENCE).await?;

        let revision = test
            .push(
                &repository,
                &[Change::write("deploy/a.yaml", config_map(ns, "a", "2"))],
            )
            .await?;
        test.ready("app", &revision).await?;
        test.delete_kustomization("app").await
    });
}

#[test]
fn equal_files_of_different_sources_and_revisions_are_kept_once() {
    run("dedup", |test| async move {
        let ns = &test.namespace;
        let source = start_source(&test, &[]).await?;
        let same = "the same in all\n".repeat(1000);
        let repository = test.repository(&[("same.txt", same.clone()), ("a.yaml", "a: 1\n".to_owned())])?;
        test.apply(&test.in_own_shard(objects::git_repository(ns, "app", repository.url(), "main")))
            .await?;
        wait_for(&test.git_repositories(), "app", is_ready, PATIENCE).await?;
        let files = [("same.txt", same.as_str()), ("b.yaml", "b: 1\n")];
        test.world
            .registry
            .push_files(ns, &["latest"], "v1", &files)
            .await?;
        let oci = objects::oci_repository(ns, "app", &test.world.registry.url(ns), "latest");
        test.apply(&test.in_own_shard(oci)).await?;
        wait_for(&test.oci_repositories(), "app", is_ready, PATIENCE).await?;
        let blobs = source.storage_path().join("blobs");
        ensure!(files_in(&blobs)?.len() == 3, "{:?}", files_in(&blobs)?);

        let revision = test
            .push(&repository, &[Change::write("a.yaml", "a: 2\n")])
            .await?;
        let newer = |object: &DynamicObject| text(object, "/status/artifact/revision") == revision;
        wait_for(&test.git_repositories(), "app", newer, PATIENCE).await?;
        // The older artifact is still kept, so its one file of its own is there as well.
        ensure!(files_in(&blobs)?.len() == 4, "{:?}", files_in(&blobs)?);
        ensure!(files_in(&source.storage_path().join("archives"))?.len() == 3);
        Ok(())
    });
}

#[test]
fn a_full_volume_is_told_and_recovers_by_itself() {
    run("full", |test| async move {
        let ns = &test.namespace;
        let folder = testkit::scratch::directory("volume")?;
        let options = testkit::controller::ControllerOptions {
            volume: Some((folder.path().to_owned(), 2 * 1024 * 1024)),
            ..crate::service::own_options(&test, &[])
        };
        let kubeconfig = test.world.control_plane.kubeconfig_path();
        let source = testkit::Controller::start_source(kubeconfig, options).await?;
        let volume = PathBuf::from(format!("/proc/{}/root", source.process()?.pid()));
        let volume = volume.join(folder.path().strip_prefix("/")?);
        let repository = test.repository(&[("a.yaml", "a: 1\n".to_owned())])?;
        let object = objects::git_repository(ns, "app", repository.url(), "main");
        test.apply(&test.in_own_shard(with_spec(object, json!({"interval": "2s"}))))
            .await?;
        let before = wait_for(&test.git_repositories(), "app", is_ready, PATIENCE).await?;

        // Not compressible, and larger than what is left.
        let large: Vec<u8> = (0..1_500_000_u32)
            .map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8)
            .collect();
        let filler = volume.join("filler");
        std::fs::write(&filler, vec![0; 1_200_000]).context("failed to fill the volume")?;
        let revision = test
            .push(&repository, &[Change::write("large.bin", large)])
            .await?;
        let message = test
            .not_ready(&test.git_repositories(), "app", "StorageFull")
            .await?;
        ensure!(
            message.contains("its volume is full, enlarge it or remove sources"),
            "{message}"
        );
        let old = test.git_repositories().get("app").await?;
        let artifact = |object: &DynamicObject| objects::field(object, "/status/artifact").cloned();
        ensure!(artifact(&old) == artifact(&before));
        let url = text(&old, "/status/artifact/url").to_owned();
        let served = reqwest::get(&url).await?.bytes().await?;
        ensure!(Digest::from_content(&served).to_string() == text(&old, "/status/artifact/digest"));
        ensure!(files_in(&volume.join("temporary"))?.is_empty());

        std::fs::remove_file(&filler)?;
        let newer = |object: &DynamicObject| {
            is_ready(object) && text(object, "/status/artifact/revision") == revision
        };
        wait_for(&test.git_repositories(), "app", newer, PATIENCE).await?;
        Ok(())
    });
}

fn files_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries =
        std::fs::read_dir(folder).with_context(|| format!("failed to list {}", folder.display()))?;
    entries.map(|entry| Ok(entry?.path())).collect()
}

/// Changes a bit in the middle, as a bad disk does.
fn damage(file: &Path) -> Result<()> {
    let mut bytes = std::fs::read(file)?;
    let middle = bytes.len() / 2;
    if let Some(byte) = bytes.get_mut(middle) {
        *byte ^= 1;
    }
    Ok(std::fs::write(file, bytes)?)
}

/// Whether all content has the digest that it is named by.
fn sound(files: &Path) -> Result<bool> {
    for folder in ["blobs", "directories", "archives"] {
        for file in files_in(&files.join(folder))? {
            let name = file
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            let digest = format!("sha256:{}", name.trim_end_matches(".tar.gz"));
            if Digest::from_content(&std::fs::read(&file)?).to_string() != digest {
                return Ok(false);
            }
        }
    }
    Ok(true)
}
