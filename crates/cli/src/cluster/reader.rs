//! A cluster as the graph of delivery reads it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use delivery_graph::kind::Kind;
use delivery_graph::walk::Lookup;
use delivery_graph::{Objects, one_line};
use futures::future::{BoxFuture, FutureExt as _};
use manifest::ObjectId;
use serde_json::Value;
use tokio::sync::OnceCell;

use super::anything::Served;
use super::{Cluster, Failure};

/// The kinds of a group in a version, or the error that hides them.
type Group = Arc<OnceCell<Result<Vec<Served>, String>>>;

/// Reads by requests. What the cluster serves is asked for once.
pub(crate) struct Reader<'c> {
    cluster: &'c Cluster,
    served: Mutex<HashMap<(String, String), Group>>,
}

impl<'c> Reader<'c> {
    pub(crate) fn new(cluster: &'c Cluster) -> Self {
        Self {
            cluster,
            served: Mutex::default(),
        }
    }

    async fn find(&self, id: &ObjectId, version: &str) -> Result<Option<Value>, String> {
        let group = {
            let mut known = self.served.lock().unwrap_or_else(PoisonError::into_inner);
            let group = known.entry((id.group.clone(), version.to_owned()));
            Arc::clone(group.or_default())
        };
        let served = group.get_or_init(async || {
            let served = self.cluster.in_group(&id.group, version).await;
            served.map_err(|failure| one_line(&failure.to_string()))
        });
        let served = served.await.as_ref().map_err(String::clone)?;
        let kind = served.iter().find(|served| served.resource.kind == id.kind);
        let kind = kind.ok_or_else(|| format!("the cluster has no {} in version {version}", id.kind))?;
        let mut id = id.clone();
        if !kind.namespaced {
            id.namespace.clear();
        }
        let found = self.cluster.get_any(&id, &kind.resource).await;
        found.map_err(|error| one_line(&Failure::request(format!("get {id}"), error).to_string()))
    }
}

impl Objects for Reader<'_> {
    fn of_flux<'a>(&'a self, id: &'a ObjectId) -> BoxFuture<'a, Lookup> {
        async move {
            match self.cluster.get(id).await {
                Ok(Some(object)) => Lookup::Found(object),
                Ok(None) => Lookup::Absent,
                Err(error) => Lookup::Refused(error.to_string()),
            }
        }
        .boxed()
    }

    fn any<'a>(&'a self, id: &'a ObjectId, version: &'a str) -> BoxFuture<'a, Lookup> {
        async move {
            match self.find(id, version).await {
                Ok(Some(object)) => Lookup::Found(object),
                Ok(None) => Lookup::Absent,
                Err(why) => Lookup::Refused(why),
            }
        }
        .boxed()
    }

    fn list<'a>(&'a self, kind: &'static Kind) -> BoxFuture<'a, Vec<Value>> {
        let found = self.cluster.list_where_allowed(kind, &self.cluster.namespace);
        async move { found.await.unwrap_or_default() }.boxed()
    }
}
