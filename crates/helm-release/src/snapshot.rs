//! Snapshots of releases in Flux's status, and whether a stored release still matches its snapshot.
//!
//! A snapshot stands in `status.history` of a HelmRelease. Which action made it is known to who made it.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::digest::{self, Invalid};
use crate::release::{HookRun, Release, Status};
use crate::{Time, observation, values};

/// A revision of a release, as it was when it was stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Of the release, by which it is known again ([`observation`]).
    pub digest: String,
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// Which revision.
    pub version: i64,
    /// Its status.
    pub status: Status,
    /// The chart's name.
    pub chart_name: String,
    /// The chart's version.
    pub chart_version: String,
    /// The version of what the chart installs; may be empty.
    pub app_version: String,
    /// Of the values that were given.
    pub config_digest: String,
    /// When the first revision was deployed.
    pub first_deployed: Option<Timestamp>,
    /// When this one was.
    pub last_deployed: Option<Timestamp>,
    /// When it was uninstalled.
    pub deleted: Option<Timestamp>,
    /// Of the OCI artifact that the chart came from.
    pub oci_digest: Option<String>,
}

impl Snapshot {
    /// Takes a snapshot of a release. `oci_digest` is that of the chart's OCI artifact, if it came from one.
    #[must_use]
    pub fn new(release: &Release, oci_digest: Option<&str>) -> Self {
        let chart = |field: fn(&crate::Chart) -> &str| {
            let chart = release.chart.as_ref();
            chart.map(field).unwrap_or_default().to_owned()
        };
        let info = &release.info;
        let at = |time: &Option<Time>| time.as_ref().map(Time::at);
        Self {
            digest: observation::digest(release, oci_digest),
            name: release.name.clone(),
            namespace: release.namespace.clone(),
            version: release.version,
            status: info.status.clone(),
            chart_name: chart(crate::Chart::name),
            chart_version: chart(crate::Chart::version),
            app_version: chart(crate::Chart::app_version),
            config_digest: values::digest(&release.config),
            first_deployed: at(&info.first_deployed),
            last_deployed: at(&info.last_deployed),
            deleted: at(&info.deleted),
            oci_digest: oci_digest.filter(|digest| !digest.is_empty()).map(str::to_owned),
        }
    }

    /// Returns whether it is of this release; version 0 stands for any.
    #[must_use]
    pub fn targets(&self, name: &str, namespace: &str, version: i64) -> bool {
        self.name == name && self.namespace == namespace && (version == 0 || self.version == version)
    }
}

/// Why a stored release is not the one that was recorded; the words are Flux's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unverified {
    /// The recorded digest is no digest.
    #[error("release digest verification error")]
    Digest,
    /// Someone else made it, or changed it.
    #[error("release not observed to be made for object")]
    NotObserved,
}

/// Compares a stored release with the digest that was recorded. Snapshots of another version than v2 have digests that
/// mean nothing; that is for the caller to see.
///
/// # Errors
/// When it is another one.
pub fn verify(digest: &str, oci_digest: Option<&str>, release: &Release) -> Result<(), Unverified> {
    match digest::is_of(digest, |to| observation::write(release, oci_digest, to)) {
        Ok(true) => Ok(()),
        Ok(false) => Err(Unverified::NotObserved),
        Err(Invalid) => Err(Unverified::Digest),
    }
}

/// Returns how the tests of a release went, by their names. `filters` are names that are wanted or, if the second is true,
/// not wanted; without any that is wanted all are.
#[must_use]
pub fn test_hooks(release: &Release, filters: &[(String, bool)]) -> BTreeMap<String, HookRun> {
    let tests = release.hooks.iter().filter(|hook| hook.runs_at("test"));
    let selected = tests.filter(|hook| is_selected(&hook.name, filters));
    selected
        .map(|hook| (hook.name.clone(), hook.last_run.clone()))
        .collect()
}

/// Returns whether a test is meant by filters; see [`test_hooks`].
#[must_use]
pub fn is_selected(name: &str, filters: &[(String, bool)]) -> bool {
    let named = |exclude: bool| {
        let filters = filters.iter().filter(move |(_, excluded)| *excluded == exclude);
        filters.map(|(name, _)| name.as_str())
    };
    let is_excluded = named(true).any(|excluded| excluded == name);
    let is_included = named(false).next().is_none() || named(false).any(|included| included == name);
    is_included && !is_excluded
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::release::{Hook, HookPhase};

    fn filters(filters: &[(&str, bool)]) -> Vec<(String, bool)> {
        let filters = filters.iter();
        filters
            .map(|(name, exclude)| ((*name).to_owned(), *exclude))
            .collect()
    }

    #[test]
    fn filters_choose_tests_and_exclusion_wins() {
        for (given, expected) in [
            (&[][..], &["a", "b", "c"][..]),
            (&[("a", false)], &["a"]),
            (&[("a", true)], &["b", "c"]),
            (&[("a", false), ("b", false), ("a", true)], &["b"]),
            (&[("x", false)], &[]),
            (&[("x", true)], &["a", "b", "c"]),
        ] {
            let given_filters = filters(given);
            let chosen = ["a", "b", "c"].into_iter();
            let chosen: Vec<_> = chosen.filter(|name| is_selected(name, &given_filters)).collect();
            assert_eq!(chosen, expected, "{given:?}");
        }
    }

    #[test]
    fn only_tests_are_shown_and_with_their_runs() {
        let hook = |name: &str, event: &str, phase| Hook {
            name: name.to_owned(),
            events: vec![event.to_owned()],
            last_run: HookRun {
                phase,
                ..HookRun::default()
            },
            ..Hook::default()
        };
        let release = Release {
            hooks: vec![
                hook("a", "test", HookPhase::Succeeded),
                hook("b", "post-install", HookPhase::Succeeded),
                hook("c", "test", HookPhase::Never),
            ],
            ..Release::default()
        };
        let shown: Vec<_> = test_hooks(&release, &[])
            .into_iter()
            .map(|(name, run)| (name, run.phase))
            .collect();
        assert_eq!(
            shown,
            [
                ("a".to_owned(), HookPhase::Succeeded),
                ("c".to_owned(), HookPhase::Never)
            ]
        );
    }

    #[test]
    fn what_is_no_digest_is_told_from_another_release() {
        let release = Release::default();
        for digest in [
            "",
            "sha256",
            "sha256:",
            "md5:00",
            "sha256:00",
            &format!("sha256:{}", "A".repeat(64)),
        ] {
            assert_eq!(
                verify(digest, None, &release),
                Err(Unverified::Digest),
                "{digest}"
            );
        }
        let other = format!("sha256:{}", "0".repeat(64));
        assert_eq!(verify(&other, None, &release), Err(Unverified::NotObserved));
        let own = observation::digest(&release, None);
        assert_eq!(verify(&own, None, &release), Ok(()));
        assert_eq!(verify(&own, Some(""), &release), Ok(()));
        assert_eq!(
            verify(&own, Some("sha256:1"), &release),
            Err(Unverified::NotObserved)
        );
    }
}
