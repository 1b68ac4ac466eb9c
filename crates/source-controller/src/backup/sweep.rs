//! Archives that no record in the bucket names any more are deleted.
//!
//! An archive is put before its record, so one that is young may have its record yet to come, from whoever writes. Every artifact is put
//! anew with its record, which makes it young again.

use std::collections::BTreeSet;
use std::time::Duration;

use artifact::digest::Digest;
use bucket_client::remote::Listed;
use jiff::Timestamp;
use tokio::time::Instant;

use super::Inner;
use super::connection::PATIENCE;
use super::error::{Error, failed};
use super::names::{self, ARCHIVES, RECORDS, TREES};

/// Age of an archive that may be deleted.
const AGE: Duration = Duration::from_secs(3600);
/// When the bucket is swept after a start.
pub(super) const SOON: Duration = Duration::from_secs(600);
/// When it is swept after a change: what that left behind is old enough then.
pub(super) const LATER: Duration = Duration::from_secs(3600 + 600);
/// Time for long listings.
const LISTING: Duration = Duration::from_secs(300);

impl Inner {
    pub(super) async fn sweep(&self) {
        match self.swept().await {
            Ok(0) => {}
            Ok(objects) => tracing::info!(
                logger = "backup",
                objects,
                "deleted what no artifact needs any more"
            ),
            Err(error) => {
                let error = error_chain::chain(&error);
                tracing::warn!(
                    logger = "backup",
                    error,
                    "failed to clean up the bucket of the backup"
                );
            }
        }
    }

    async fn swept(&self) -> Result<usize, Error> {
        let remote = self.connection.get().await?;
        let mut all = Vec::new();
        // Records last: none of them names an archive that is not listed because it is too young.
        for below in [ARCHIVES, TREES, RECORDS] {
            let prefix = format!("{}{below}", self.prefix);
            let listed = remote.names(&prefix, Instant::now() + LISTING).await;
            all.extend(listed.map_err(failed("list", &prefix))?);
        }
        let garbage = garbage(&all, &self.prefix, Timestamp::now());
        for key in &garbage {
            let deleted = remote.delete(key, Instant::now() + PATIENCE).await;
            deleted.map_err(failed("delete", key))?;
        }
        Ok(garbage.len())
    }
}

/// The objects that nothing needs.
fn garbage(all: &[Listed], prefix: &str, now: Timestamp) -> Vec<String> {
    let short = |listed: &Listed| listed.key.strip_prefix(prefix).map(str::to_owned);
    let needed: BTreeSet<Digest> = all
        .iter()
        .filter_map(|listed| names::parse(&short(listed)?).map(|(_, name)| name.digest))
        .collect();
    let is_old = |listed: &Listed| {
        // What does not say when it came is left alone.
        let age = listed.modified.map(|time| now.duration_since(time));
        age.and_then(|age| Duration::try_from(age).ok())
            .is_some_and(|age| age >= AGE)
    };
    let is_garbage = |listed: &&Listed| {
        let digest = short(listed).and_then(|key| names::digest_of(&key));
        digest.is_some_and(|digest| !needed.contains(&digest)) && is_old(listed)
    };
    all.iter()
        .filter(is_garbage)
        .map(|listed| listed.key.clone())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_old_archives_without_a_record_are_garbage() {
        let now: Timestamp = "2026-01-01T12:00:00Z".parse().unwrap();
        let [needed, lost] = [b"a", b"b"].map(|content| Digest::from_content(content));
        let listed = |key: &str, modified: Option<&str>| Listed {
            key: format!("p/{key}"),
            modified: modified.map(|time| time.parse().unwrap()),
        };
        let (old, young) = (Some("2026-01-01T10:00:00Z"), Some("2026-01-01T11:30:00Z"));
        let record = format!(
            "records/gitrepository/apps/app/0123456789abcdef-{}.json",
            needed.hex()
        );
        let all = [
            listed(&names::archive(&needed), old),
            listed(&names::archive(&lost), old),
            listed(&names::tree(&lost), young),
            listed(&names::tree(&Digest::from_content(b"c")), None),
            listed(&record, old),
            listed("records/of/others", old),
            listed("archives/no-digest", old),
            Listed {
                key: names::archive(&lost),
                modified: old.map(|time| time.parse().unwrap()),
            },
        ];
        assert_eq!(garbage(&all, "p/", now), [format!("p/{}", names::archive(&lost))]);
        // Clocks that differ make nothing old.
        let future = [listed(&names::archive(&lost), Some("2026-01-02T00:00:00Z"))];
        assert!(garbage(&future, "p/", now).is_empty());
    }
}
