//! Store: puts fetched content into the artifact store, and says what of it stands in a status.

use api::meta::Artifact;
use artifact::store::{Record, RecordMeta, Store};
use controller_kit::ObjectKey;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::error::Error;
use crate::kind::{Failure, Fetched, Kind};
use crate::reconcile::fetch::Fetcher;
use transport::http::TimedOut;

/// Stores content on a blocking thread, before the end of the run. The artifact is the current one of its object when
/// this returns.
pub(crate) async fn store<K: Kind>(
    key: &ObjectKey,
    fetched: Fetched<K::Content>,
    store: &Store,
    fetcher: &Fetcher,
) -> Result<Record, Failure> {
    let Fetched {
        seen,
        filename,
        metadata,
        content,
        ..
    } = fetched;
    let meta = RecordMeta {
        kind: K::NAME.to_owned(),
        namespace: key.namespace.clone(),
        name: key.name.clone(),
        revision: seen.revision.clone(),
        filename,
        metadata,
    };
    let (store, stop) = (store.clone(), &fetcher.stop);
    let waiting = stop.when_dropped();
    let stopped = stop.flag().clone();
    let mut storing = tokio::task::spawn_blocking(move || {
        let mut ingest = store.ingest().until(stopped);
        K::fill(content, &mut ingest)?;
        Ok(ingest.finish(meta)?)
    });
    let end = async {
        match fetcher.end() {
            Some(end) => tokio::time::sleep_until(end).await,
            None => std::future::pending().await,
        }
    };
    let stored = tokio::select! {
        stored = &mut storing => stored,
        () = end => {
            stop.now();
            storing.await
        }
    };
    waiting.disarm();
    let stored = match stored.unwrap_or(Err(Error::Abandoned)) {
        Err(_) if stop.check().is_err() => Err(Error::StoreInTime(TimedOut)),
        stored => stored,
    };
    stored.map_err(|error| Failure {
        error,
        seen: Some(seen),
    })
}

/// Removes all artifacts of an object, and answers how many there were.
pub(crate) async fn remove<K: Kind>(key: &ObjectKey, store: &Store) -> Result<usize, Error> {
    let (store, key) = (store.clone(), key.clone());
    let removed =
        tokio::task::spawn_blocking(move || store.remove_object(K::NAME, &key.namespace, &key.name));
    Ok(removed.await.map_err(|_| Error::Abandoned)??)
}

/// Where artifacts can be downloaded: `--storage-adv-addr`.
#[derive(Debug, Clone)]
pub(crate) struct AdvertisedAddress(String);

impl AdvertisedAddress {
    /// `host:port`, or a URL where the archives are not served by plain http.
    pub(crate) fn new(address: &str) -> Self {
        let has_scheme = address.starts_with("http://") || address.starts_with("https://");
        Self(if has_scheme {
            address.trim_end_matches('/').to_owned()
        } else {
            format!("http://{address}")
        })
    }

    /// The address of an archive.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}/{}", self.0, path.trim_start_matches('/'))
    }

    /// The address that always leads to the newest archive of the object that has this one.
    pub(crate) fn latest_url(&self, path: &str, name: &str) -> String {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        self.url(&format!("{folder}/{name}"))
    }

    /// A record as it stands in a status.
    pub(crate) fn artifact(&self, record: &Record) -> Artifact {
        Artifact {
            path: record.path.clone(),
            url: self.url(&record.path),
            revision: record.revision.clone(),
            digest: record.digest.to_string(),
            last_update_time: Time(record.last_update_time),
            size: i64::try_from(record.size).ok(),
            metadata: record.metadata.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::AdvertisedAddress;

    #[test]
    fn addresses_are_put_together_as_flux_does() {
        let path = "ocirepository/apps/app/sha256:1.tar.gz";
        let cases = [
            (
                "source-controller.flux-system.svc",
                "http://source-controller.flux-system.svc",
            ),
            ("localhost:9090", "http://localhost:9090"),
            ("https://artifacts.example.com/", "https://artifacts.example.com"),
        ];
        for (address, base) in cases {
            let address = AdvertisedAddress::new(address);
            assert_eq!(address.url(path), format!("{base}/{path}"));
            assert_eq!(
                address.latest_url(path, "latest.tar.gz"),
                format!("{base}/ocirepository/apps/app/latest.tar.gz")
            );
        }
    }
}
