//! One large source: a Git repository, and the index of a Helm repository.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use kube::api::DynamicObject;
use serde_json::{Value, json};
use testkit::git::{Change, Repository};
use testkit::helm_repository::HelmRepository;
use testkit::process::Usage;
use testkit::{GitServer, objects, wait_for};

use super::bench::{Bench, NAMESPACE};
use crate::bench::contestant::Running;

const PATIENCE: Duration = Duration::from_secs(600);
const MEBIBYTE: usize = 1 << 20;
const API_VERSION: &str = "source.toolkit.fluxcd.io/v1";

/// Figures of one contestant.
pub struct Measured {
    /// Size of the source.
    pub mebibytes: usize,
    /// From creation to Ready.
    pub first: Duration,
    /// Until then.
    pub usage: Usage,
    /// From the poke to Ready with a new revision in which little changed.
    pub second: Duration,
    /// Until then.
    pub usage_after: Usage,
}

/// A repository of files that do not compress, and then one with another small file.
pub async fn git(bench: &Bench<'_>, server: &GitServer, mebibytes: usize) -> Result<Measured> {
    let name = format!("git-{mebibytes}-{}", bench.contestant.name().to_lowercase());
    let repository = server.create_repository(&name)?;
    fill(&repository, mebibytes)?;
    let source = objects::git_repository(NAMESPACE, &name, repository.url(), "main");
    measure(bench, mebibytes, source, || {
        let small = Change::write("small.yaml", "kind: ConfigMap\n");
        repository.commit("main", "change", &[small]).map(drop)
    })
    .await
}

/// An index of many charts with many versions, and then one with another chart.
pub async fn index(bench: &Bench<'_>, mebibytes: usize) -> Result<Measured> {
    let repository = HelmRepository::start().await?;
    let mut text = index_of(mebibytes);
    repository.set_file("index.yaml", Some(text.clone().into_bytes()));
    let source = json!({
        "apiVersion": API_VERSION,
        "kind": "HelmRepository",
        "metadata": {"name": format!("index-{mebibytes}"), "namespace": NAMESPACE},
        "spec": {"url": repository.url(), "interval": "1h"},
    });
    measure(bench, mebibytes, source, || {
        write_chart(&mut text, "zz-last", 1);
        repository.set_file("index.yaml", Some(std::mem::take(&mut text).into_bytes()));
        Ok(())
    })
    .await
}

/// Creates `source`, changes what it is of, and measures both times until it is Ready.
async fn measure(
    bench: &Bench<'_>,
    mebibytes: usize,
    source: Value,
    change: impl FnOnce() -> Result<()>,
) -> Result<Measured> {
    let controller = bench.start().await?;
    let source = objects::with_spec(source, json!({"timeout": "10m"}));
    let start = Instant::now();
    objects::apply(&bench.control_plane.client(), &source).await?;
    let revision = ready(bench, &source, "", &controller).await?;
    let (first, usage) = (start.elapsed(), controller.usage()?[0]);
    change()?;
    let (api, name) = objects::api_of(&bench.control_plane.client(), &source)?;
    let start = Instant::now();
    objects::poke(&api, &name).await?;
    ready(bench, &source, &revision, &controller).await?;
    let second = start.elapsed();
    let usage_after = controller.usage()?[0];
    api.delete(&name, &kube::api::DeleteParams::default()).await?;
    testkit::wait_until_gone(&api, &name, PATIENCE).await?;
    Ok(Measured {
        mebibytes,
        first,
        usage,
        second,
        usage_after,
    })
}

/// Waits until it is Ready with another revision than `previous`, and returns that.
async fn ready(bench: &Bench<'_>, source: &Value, previous: &str, controller: &Running) -> Result<String> {
    let (api, name) = objects::api_of(&bench.control_plane.client(), source)?;
    let revision = |object: &DynamicObject| objects::text(object, "/status/artifact/revision").to_owned();
    let arrived = |object: &DynamicObject| {
        objects::is_ready(object) && !revision(object).is_empty() && revision(object) != previous
    };
    let object = wait_for(&api, &name, arrived, PATIENCE).await;
    object
        .map(|object| revision(&object))
        .with_context(|| controller.log_tails())
}

/// Files of 256 KiB of noise, 64 to a folder.
fn fill(repository: &Repository, mebibytes: usize) -> Result<()> {
    const SIZE: usize = MEBIBYTE / 4;
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let changes: Vec<_> = (0..mebibytes * MEBIBYTE / SIZE)
        .map(|number| {
            let path = format!("folder-{}/file-{number}.bin", number / 64);
            Change::write(&path, noise(&mut state, SIZE))
        })
        .collect();
    repository.commit("main", "large", &changes).map(drop)
}

/// Bytes of a xorshift generator: the same in each run, and nothing that a compressor can use.
fn noise(state: &mut u64, size: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(size);
    while bytes.len() < size {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        bytes.extend(state.to_le_bytes());
    }
    bytes
}

fn index_of(mebibytes: usize) -> String {
    let mut text = "apiVersion: v1\ngenerated: \"2026-01-01T00:00:00Z\"\nentries:\n".to_owned();
    for chart in 0.. {
        if text.len() >= mebibytes * MEBIBYTE {
            break;
        }
        write_chart(&mut text, &format!("chart-{chart}"), 100);
    }
    text
}

/// An entry as `helm repo index` writes it, with the usual annotations and maintainers.
fn write_chart(text: &mut String, name: &str, versions: usize) {
    let mut put = |line: String| text.write_str(&line).expect("writing to a string does not fail");
    put(format!("  {name}:\n"));
    for version in 0..versions {
        put(format!(
            "  - annotations:\n      category: Infrastructure\n      licenses: Apache-2.0\n    apiVersion: v2\n    \
             appVersion: 1.{version}.0\n    created: \"2026-01-01T00:00:00Z\"\n    dependencies:\n    - name: common\n      \
             repository: https://charts.example.com\n      version: 2.x.x\n    description: A chart of the benchmark that says \
             at some length what it is for\n    digest: {version:064x}\n    keywords:\n    - benchmark\n    - {name}\n    maintainers:\n    \
             - email: someone@example.com\n      name: someone\n    name: {name}\n    urls:\n    - \
             https://charts.example.com/{name}-1.{version}.0.tgz\n    version: 1.{version}.0\n"
        ));
    }
}
