//! Reads what a spec refers to: objects, through `remote-access`, and the artifacts of other sources.

use std::ops::Deref;
use std::sync::Arc;

use artifact::store::Store;
use kube::Client;
use remote_access::identity::Identities;

use super::secrets_read::Reading;

/// Reads objects in the namespace of the object that refers to them, and the store.
#[derive(Clone)]
pub(crate) struct Reader {
    access: remote_access::Reader,
    /// For the artifacts of other sources.
    pub(crate) store: Store,
}

impl Reader {
    /// A reader for an object of the namespace, whose Secrets are noted.
    pub(crate) fn new(
        client: Client,
        store: Store,
        identities: Identities,
        namespace: &str,
        reading: Reading,
    ) -> Self {
        let access = remote_access::Reader::new(client, identities, namespace);
        Self {
            access: access.noting(Arc::new(reading)),
            store,
        }
    }
}

impl Deref for Reader {
    type Target = remote_access::Reader;

    fn deref(&self) -> &remote_access::Reader {
        &self.access
    }
}
