//! The bucket with credentials that are good at this moment.

use std::sync::Arc;
use std::time::Duration;

use api::source::{Bucket, BucketSpec};
use artifact::store::{ObjectKey, Store};
use bucket_client::remote::Remote;
use kube::Client;
use tokio::time::Instant;

use super::error::{Error, failed};
use crate::kind::bucket::{self, Purpose};
use crate::reconcile::fetch::Fetcher;
use crate::reconcile::reader::Reader;
use crate::reconcile::secrets_read::SecretsRead;

/// How long credentials are used before they are asked for again.
const LIFE: Duration = Duration::from_secs(300);
/// Time for a small answer.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);
/// Below the prefix, begins no name. Listing it tells whether we may, and in which region the bucket is.
const NOTHING: &str = "nothing-is-here/";

pub(super) struct Connection {
    /// The bucket as if it were an object of its kind, so that all of its providers can be used.
    object: Bucket,
    client: Client,
    namespace: String,
    store: Store,
    fetcher: Fetcher,
    current: tokio::sync::Mutex<Option<(Arc<Remote>, Instant)>>,
}

impl Connection {
    pub(super) fn new(
        spec: BucketSpec,
        client: Client,
        namespace: &str,
        store: Store,
        mut fetcher: Fetcher,
    ) -> Self {
        // The bucket is the operator's and no tenant's: it is reached as this process, whatever objects may do.
        fetcher.identities.default_service_account = None;
        fetcher.identities.locked = false;
        let mut object = Bucket::new("backup", spec);
        object.metadata.namespace = Some(namespace.to_owned());
        Self {
            object,
            client,
            namespace: namespace.to_owned(),
            store,
            fetcher,
            current: tokio::sync::Mutex::default(),
        }
    }

    /// A connection that was good a moment ago.
    pub(super) async fn get(&self) -> Result<Arc<Remote>, Error> {
        let mut current = self.current.lock().await;
        if let Some((remote, since)) = &*current
            && since.elapsed() < LIFE
        {
            return Ok(Arc::clone(remote));
        }
        let remote = self.connect().await?;
        let prefix = self.object.spec.prefix.as_deref().unwrap_or_default();
        let nothing = format!("{prefix}{NOTHING}");
        let listed = remote.names(&nothing, Instant::now() + PATIENCE).await;
        listed.map_err(failed("list", &nothing))?;
        let remote = Arc::new(remote);
        *current = Some((Arc::clone(&remote), Instant::now()));
        Ok(remote)
    }

    async fn connect(&self) -> Result<Remote, Error> {
        let key = ObjectKey::new("Bucket", &self.namespace, "backup");
        let (client, store) = (self.client.clone(), self.store.clone());
        let (identities, reading) = (self.fetcher.identities.clone(), SecretsRead::default().begin(key));
        let reader = Reader::new(client, store, identities, &self.namespace, reading);
        let references = bucket::read(&self.object, &reader)
            .await
            .map_err(Error::Connect)?;
        bucket::remote(&self.object, &references, &self.fetcher, Purpose::Write)
            .await
            .map_err(Error::Connect)
    }
}
