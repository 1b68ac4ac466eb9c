//! The engine: what all applies of a process share.

use std::sync::Arc;

use kube::Client;

use crate::managed::ManagedIndex;
use crate::mapper::RestMapper;
use crate::request::Requests;
use crate::settings::Settings;

/// Applies and prunes. Cheap to clone; clones share discovery and the index of managed objects.
#[derive(Clone)]
pub struct Engine {
    requests: Requests,
    mapper: Arc<RestMapper>,
    managed: ManagedIndex,
    settings: Arc<Settings>,
}

impl Engine {
    /// Makes an engine for a cluster.
    pub fn new(client: Client, settings: Settings) -> Self {
        let settings = Arc::new(settings);
        Self {
            requests: Requests::new(client.clone(), Arc::clone(&settings)),
            mapper: Arc::new(RestMapper::new(client.clone())),
            managed: ManagedIndex::new(client, Arc::clone(&settings)),
            settings,
        }
    }

    /// Returns an engine that writes as someone else in the same cluster, for example as a tenant's service account.
    /// Discovery and watches stay with the identity that the engine was made with.
    pub fn with_client(&self, client: Client) -> Self {
        Self {
            requests: self.requests.with_client(client),
            ..self.clone()
        }
    }

    /// Returns the index of managed objects, which tells drift.
    pub fn managed(&self) -> &ManagedIndex {
        &self.managed
    }

    /// Returns what resolves kinds.
    pub fn mapper(&self) -> &RestMapper {
        &self.mapper
    }

    /// Returns the settings that the engine was made with.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(crate) fn requests(&self) -> &Requests {
        &self.requests
    }
}
