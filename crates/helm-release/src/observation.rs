//! The digest by which Flux knows a release again that it made: of what it saw when it stored it.
//!
//! It stands in `status.history` of a HelmRelease. Where it is that of the stored release, no one else has touched it.

use std::io;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::digest;
use crate::release::{Hook, Info, Release};
use go_text::json::{self, AnyMap};

/// Input of the digest (helm-controller's `Observation`); test hooks are left out, since people may run
/// tests.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Observation<'a> {
    name: &'a str,
    version: i64,
    info: Info,
    chart_metadata: Metadata<'a>,
    config: Option<AnyMap<'a>>,
    manifest: &'a str,
    hooks: Option<Vec<&'a Hook>>,
    namespace: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    oci_digest: Option<&'a str>,
}

/// Without metadata, an empty object.
#[derive(Serialize)]
#[serde(untagged)]
enum Metadata<'a> {
    Known(&'a RawValue),
    Unknown {},
}

/// The digest of a release: `sha256:…`. `oci_digest` is that of the chart's OCI artifact, if it came from one.
#[must_use]
pub fn digest(release: &Release, oci_digest: Option<&str>) -> String {
    digest::digest_of(|to| write(release, oci_digest, to))
}

pub(crate) fn write(release: &Release, oci_digest: Option<&str>, to: &mut dyn io::Write) {
    let hooks: Vec<_> = release
        .hooks
        .iter()
        .filter(|hook| !hook.runs_at("test"))
        .collect();
    let metadata = release.chart.as_ref().and_then(|chart| chart.metadata());
    let observation = Observation {
        name: &release.name,
        version: release.version,
        // Helm 4.3's, which the Helm in Flux 2.9 does not know.
        info: Info {
            rollback_revision: 0,
            ..release.info.clone()
        },
        chart_metadata: metadata.map_or(Metadata::Unknown {}, Metadata::Known),
        config: (!release.config.is_empty()).then_some(AnyMap(&release.config)),
        manifest: &release.manifest,
        hooks: (!hooks.is_empty()).then_some(hooks),
        namespace: &release.namespace,
        oci_digest: oci_digest.filter(|digest| !digest.is_empty()),
    };
    let written = json::write(&mut *to, &observation);
    debug_assert!(written.is_ok(), "nothing of a release cannot be written");
    let ended = to.write_all(b"\n"); // Go's encoder ends a value so
    debug_assert!(ended.is_ok(), "a hasher takes everything");
}
