//! A tenant's repositories unfold to far more than was sent.
//!
//! They hold: repositories of a few hundred kilobytes, with large files of one byte each, some of them sent as deltas of each
//! other, and as many GitRepositories as they like. The controller must not take the memory of its Pod for them, which would take
//! everybody's sources away, and the victim's repository must become Ready meanwhile.

use std::process::{Command, Stdio};

use anyhow::{Result, ensure};
use serde_json::json;
use testkit::git::Change;
use testkit::objects;
use testkit::wait_for;

use crate::scene::{PATIENCE, SOURCE, play};

const MIB: usize = 1 << 20;
/// Each takes 300 MiB where a file is read as a whole, and 200 MiB more where a delta is.
const BOMBS: usize = 5;
/// Half of the chart's limit for the Pod.
const LIMIT: u64 = 512 << 20;

#[test]
fn repositories_that_unfold_take_no_more_memory_than_one() {
    play("bombs", |scene| async move {
        let before = scene.world.source.usage()?.peak_resident_bytes;
        let repository = scene.world.git.create_repository(&scene.attacker)?;
        let filled = |size: usize, byte: u8, first: u8| {
            let mut bytes = vec![byte; size];
            bytes[0] = first;
            bytes
        };
        let files = [
            Change::write("large", filled(240 * MIB, 1, 1)),
            Change::write("deltas/a", filled(90 * MIB, 0, 2)),
            Change::write("deltas/b", filled(90 * MIB, 0, 3)),
        ];
        repository.commit("main", "large", &files)?;
        repository.git(&["repack", "-adq"])?;
        let pack = repository.git(&["count-objects", "-v"])?;
        ensure!(pack.contains("packs: 1"), "{pack}");
        for number in 0..BOMBS {
            let name = format!("bomb-{number}");
            let bomb = objects::git_repository(&scene.attacker, &name, repository.url(), "main");
            // Deltas are made when the pack is received, whether or not they become part of the artifact.
            let spec = json!({"ignore": "/deltas", "timeout": "10m"});
            scene.apply(&objects::with_spec(bomb, spec)).await?;
        }
        scene.secret_source().await?;
        let bombs = scene.api(SOURCE, "GitRepository", &scene.attacker);
        for number in 0..BOMBS {
            wait_for(&bombs, &format!("bomb-{number}"), objects::is_ready, 3 * PATIENCE).await?;
        }
        let peak = scene.world.source.usage()?.peak_resident_bytes;
        ensure!(
            peak < LIMIT,
            "the controller took {} MiB, {} before",
            peak >> 20,
            before >> 20
        );
        Ok(())
    });
}

#[test]
fn a_tree_that_unfolds_is_refused() {
    play("tree-bomb", |scene| async move {
        let repository = scene.world.git.create_repository(&scene.attacker)?;
        repository.commit("main", "a file", &[Change::write("file", "content")])?;
        let file = repository.git(&["rev-parse", "main:file"])?;
        // A hundred files, in a hundred folders, in a hundred folders: 10 kB that are a million files.
        let mut tree = hundred(repository.directory(), "100644 blob", file.trim())?;
        for _ in 0..2 {
            tree = hundred(repository.directory(), "040000 tree", tree.trim())?;
        }
        let commit = repository.git(&["commit-tree", tree.trim(), "-m", "many"])?;
        repository.git(&["update-ref", "refs/heads/main", commit.trim()])?;
        let bomb = objects::git_repository(&scene.attacker, "bomb", repository.url(), "main");
        scene
            .apply(&objects::with_spec(bomb, json!({"timeout": "5m"})))
            .await?;
        let repositories = scene.api(SOURCE, "GitRepository", &scene.attacker);
        let message = scene.refused_within(4 * PATIENCE, &repositories, "bomb").await?;
        ensure!(message.contains("more than 100000 entries"), "{message}");
        Ok(())
    });
}

/// A tree with an object a hundred times.
fn hundred(repository: &std::path::Path, what: &str, id: &str) -> Result<String> {
    use std::io::Write as _;
    let mut git = Command::new("git")
        .arg("mktree")
        .current_dir(repository)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    if let Some(mut stdin) = git.stdin.take() {
        for number in 0..100 {
            writeln!(stdin, "{what} {id}\t{number:02}")?;
        }
    }
    let output = git.wait_with_output()?;
    ensure!(output.status.success(), "git mktree failed");
    Ok(String::from_utf8(output.stdout)?)
}
