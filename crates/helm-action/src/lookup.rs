//! The `lookup` of templates: asks the API server, as whoever the release is made by. And their `getHostByName`, where that is
//! allowed: asks as the process.
//!
//! Templates run on a thread of their own, which waits for the answers. Their number and size are bounded: a chart may ask in
//! a loop.

use std::fmt;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use helm_render::Lookup;
use kube::Client;
use kube::core::Request;
use kube::core::params::{GetParams, ListParams};
use kube_apply::Engine;
use manifest::GroupVersionKind;
use serde_json::{Map, Value, json};
use tokio::runtime::Handle;

/// So often may one rendering ask.
const QUESTIONS: usize = 1000;
/// Bytes that one rendering may be answered.
const BYTES: usize = 64 << 20;
/// So many hosts may one rendering look for.
const HOSTS: usize = 20;
/// The DNS has so long for each.
const DNS_TIMEOUT: Duration = Duration::from_secs(5);
/// Objects of a page.
const PAGE: u32 = 500;

/// Looks objects up in a cluster.
pub(crate) struct ClusterLookup {
    client: Client,
    engine: Engine,
    runtime: Handle,
    asked: AtomicUsize,
    answered: AtomicUsize,
    /// Templates may look for hosts.
    dns: bool,
    hosts: AtomicUsize,
}

impl fmt::Debug for ClusterLookup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterLookup").finish_non_exhaustive()
    }
}

impl ClusterLookup {
    /// Must be called within a runtime.
    pub(crate) fn new(client: Client, engine: Engine, dns: bool) -> Self {
        Self {
            client,
            engine,
            runtime: Handle::current(),
            asked: AtomicUsize::new(0),
            answered: AtomicUsize::new(0),
            dns,
            hosts: AtomicUsize::new(0),
        }
    }

    async fn find(
        &self,
        gvk: &GroupVersionKind,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Map<String, Value>>, String> {
        let resource = match self.engine.mapper().resolve(gvk).await {
            Ok(resource) => resource,
            Err(kube_apply::mapper::Error::UnknownKind(_)) => return Ok(None),
            Err(error) => return Err(format!("unable to get apiresource from unstructured: {error}")),
        };
        let namespace = Some(namespace).filter(|namespace| resource.namespaced && !namespace.is_empty());
        let collection = Request::new(<kube::core::DynamicObject as kube::Resource>::url_path(
            &resource.api,
            namespace,
        ));
        if name.is_empty() {
            return self.list(&collection).await.map(Some);
        }
        let request = collection.get(name, &GetParams::default());
        self.send(request).await
    }

    /// Reads all objects of a kind, page by page.
    async fn list(&self, collection: &Request) -> Result<Map<String, Value>, String> {
        let mut items = Vec::new();
        let mut next: Option<String> = None;
        let mut all = loop {
            let mut params = ListParams::default().limit(PAGE);
            if let Some(next) = &next {
                params = params.continue_token(next);
            }
            let mut page = self.send(collection.list(&params)).await?.unwrap_or_default();
            let token = page
                .get("metadata")
                .and_then(|metadata| metadata.get("continue")?.as_str());
            next = token.filter(|token| !token.is_empty()).map(str::to_owned);
            match page.remove("items") {
                Some(Value::Array(found)) => items.extend(found),
                _ => next = None,
            }
            if next.is_none() {
                break page;
            }
        };
        all.insert("items".to_owned(), json!(items));
        Ok(all)
    }

    async fn send(
        &self,
        request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
    ) -> Result<Option<Map<String, Value>>, String> {
        if self.asked.fetch_add(1, Ordering::Relaxed) >= QUESTIONS {
            return Err(format!("the chart looks up objects more than {QUESTIONS} times"));
        }
        let request = request.map_err(|error| error.to_string())?;
        let limit = self.engine.settings().request_timeout;
        let sent = tokio::time::timeout(limit, self.client.request_text(request)).await;
        let text = match sent {
            Ok(Ok(text)) => text,
            Ok(Err(kube::Error::Api(status))) if status.is_not_found() => return Ok(None),
            Ok(Err(kube::Error::Api(status))) => return Err(status.message.clone()),
            Ok(Err(error)) => return Err(error.to_string()),
            Err(_) => {
                return Err(format!(
                    "the API server did not answer within {} s",
                    limit.as_secs()
                ));
            }
        };
        if self.answered.fetch_add(text.len(), Ordering::Relaxed) + text.len() > BYTES {
            return Err(format!("the chart looks up more than {BYTES} bytes"));
        }
        serde_json::from_str(&text)
            .map(Some)
            .map_err(|error| format!("failed to read the API server's answer: {error}"))
    }
}

impl Lookup for ClusterLookup {
    fn lookup(
        &self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Map<String, Value>>, String> {
        if [namespace, name]
            .iter()
            .any(|part| matches!(*part, "." | "..") || part.contains(['/', '%', '?', '#', '\\']))
        {
            return Ok(None);
        }
        let gvk = GroupVersionKind::new(api_version, kind);
        self.runtime.block_on(self.find(&gvk, namespace, name))
    }

    fn addresses(&self, host: &str) -> Result<Option<Vec<IpAddr>>, String> {
        if !self.dns {
            return Ok(None);
        }
        if self.hosts.fetch_add(1, Ordering::Relaxed) >= HOSTS {
            return Err(format!("the chart looks for more than {HOSTS} hosts"));
        }
        let limit = DNS_TIMEOUT;
        let asked = async { tokio::time::timeout(limit, tokio::net::lookup_host((host, 0))).await };
        match self.runtime.block_on(asked) {
            Ok(Ok(found)) => Ok(Some(found.map(|address| address.ip()).collect())),
            Ok(Err(_)) => Ok(Some(Vec::new())),
            Err(_) => Err(format!("the DNS did not answer within {} s", limit.as_secs())),
        }
    }
}
