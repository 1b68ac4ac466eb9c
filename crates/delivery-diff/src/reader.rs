//! Reads objects from the API server, as whoever the client is.

use delivery_graph::kind;
use kube::api::{Api, DynamicObject};
use kube::core::ApiResource;
use kube::{Client, Error};
use manifest::ObjectId;
use serde_json::Value;

/// Reads objects.
#[derive(Clone)]
pub struct Reader(Client);

impl Reader {
    /// Reads by a client.
    pub fn new(client: Client) -> Self {
        Self(client)
    }

    /// The client, for engines that send their own requests.
    pub(crate) fn client(&self) -> Client {
        self.0.clone()
    }

    /// An object of a kind of ours; None when it is not there.
    pub(crate) async fn get(&self, id: &ObjectId) -> Result<Option<Value>, String> {
        let kind = kind::kind_of(id).ok_or_else(|| format!("{id} is of no kind of Flux or Windlass"))?;
        let found = self.get_any(id, &kind.resource()).await;
        found.map_err(|error| refusal(&format!("get {id}"), &error))
    }

    /// An object of any kind; None when it, or its kind, is not there.
    pub(crate) async fn get_any(
        &self,
        id: &ObjectId,
        resource: &ApiResource,
    ) -> Result<Option<Value>, Error> {
        let api: Api<DynamicObject> = match id.namespace.as_str() {
            "" => Api::all_with(self.client(), resource),
            namespace => Api::namespaced_with(self.client(), namespace, resource),
        };
        let found = api.get_opt(&id.name).await?;
        Ok(found.map(|object| {
            let mut value = serde_json::to_value(object).unwrap_or_default();
            value["apiVersion"] = resource.api_version.clone().into();
            value["kind"] = resource.kind.clone().into();
            value
        }))
    }
}

/// Says what the API server was asked, and why it did not do it.
pub(crate) fn refusal(what: &str, error: &Error) -> String {
    match error {
        Error::Api(status) => format!("failed to {what}: {}", status.message),
        error => format!("failed to {what}: {}", error_chain::condensed(error)),
    }
}
