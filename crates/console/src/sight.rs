//! What a caller sees: rows and objects that they could `get` by the cluster's own rules. Everything that is answered comes
//! through here.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use access_review::{Caller, Target};
use delivery_graph::Objects;
use delivery_graph::kind::{self, Kind};
use delivery_graph::walk::Lookup;
use fleet::picture::Known;
use fleet::row::{Key, Row};
use futures::FutureExt as _;
use futures::future::{BoxFuture, try_join_all};
use manifest::ObjectId;
use serde_json::Value;

use crate::problem::Problem;
use crate::serve::Console;

/// Said of an object that only its row is known of.
pub const TOO_LARGE: &str = "it is too large to be kept; ask the API server for it";

/// The picture through the eyes of a caller.
#[derive(Clone)]
pub struct Sight {
    pub console: Console,
    pub caller: Arc<Caller>,
}

impl Sight {
    /// Cuts rows to those that the caller may get. One question for each kind, and for each of its namespaces if need be.
    pub async fn cut(&self, rows: Vec<(Key, Arc<Row>)>) -> Result<Vec<(Key, Arc<Row>)>, Problem> {
        let kinds: BTreeSet<&'static str> = rows.iter().map(|(_, row)| row.kind).collect();
        let whole = try_join_all(kinds.into_iter().filter_map(kind::exact).map(async |kind| {
            let is_whole = self.may_get_all(kind, "").await?;
            Ok::<_, Problem>(is_whole.then_some(kind.kind))
        }));
        let whole: HashSet<&'static str> = whole.await?.into_iter().flatten().collect();
        let places: HashSet<(&'static str, &str)> = rows
            .iter()
            .filter(|(_, row)| !whole.contains(row.kind))
            .map(|(_, row)| (row.kind, &*row.namespace))
            .collect();
        let seen = try_join_all(places.into_iter().map(async |(kind, namespace)| {
            let known = kind::exact(kind);
            let is_seen = match known {
                Some(known) => self.may_get_all(known, namespace).await?,
                None => false,
            };
            Ok::<_, Problem>(is_seen.then_some((kind, namespace)))
        }));
        let seen: HashSet<(&'static str, &str)> = seen.await?.into_iter().flatten().collect();
        let is_seen = |row: &Row| whole.contains(row.kind) || seen.contains(&(row.kind, &*row.namespace));
        let mask: Vec<bool> = rows.iter().map(|(_, row)| is_seen(row)).collect();
        let masked = rows.into_iter().zip(mask);
        Ok(masked
            .filter_map(|(row, is_seen)| is_seen.then_some(row))
            .collect())
    }

    /// Returns whether the caller may get an object, there or not.
    pub async fn may_get(&self, key: &Key) -> Result<bool, Problem> {
        let target = target(key.kind(), &key.namespace, &key.name);
        Ok(self.console.reviews.may_get(&self.caller, &target).await?)
    }

    async fn may_get_all(&self, kind: &'static Kind, namespace: &str) -> Result<bool, Problem> {
        let target = target(kind, namespace, "");
        Ok(self.console.reviews.may_get_exactly(&self.caller, target).await?)
    }

    /// The way through one cluster, for the graph of delivery.
    pub fn of_cluster(&self, cluster: &Arc<str>) -> InCluster {
        InCluster {
            sight: self.clone(),
            cluster: cluster.clone(),
        }
    }
}

fn target(kind: &'static Kind, namespace: &str, name: &str) -> Target {
    Target {
        group: kind.group,
        resource: kind.plural,
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    }
}

/// Objects of one cluster, as far as the caller may get them.
pub struct InCluster {
    sight: Sight,
    cluster: Arc<str>,
}

impl InCluster {
    async fn look(&self, id: &ObjectId) -> Lookup {
        let Some(kind) = kind::kind_of(id) else {
            return Lookup::Refused("only objects of Flux and Windlass are looked at".to_owned());
        };
        let key = Key::new(&self.cluster, kind, &id.namespace, &id.name);
        match self.sight.may_get(&key).await {
            Ok(true) => match self.sight.console.picture.object(&key) {
                Known::Whole(object) => Lookup::Found(object),
                Known::TooLarge => Lookup::Refused(TOO_LARGE.to_owned()),
                Known::Absent => Lookup::Absent,
            },
            // Whether it is there is not told.
            Ok(false) => Lookup::Refused("you may not get it".to_owned()),
            Err(problem) => Lookup::Refused(problem.message),
        }
    }
}

impl Objects for InCluster {
    fn of_flux<'a>(&'a self, id: &'a ObjectId) -> BoxFuture<'a, Lookup> {
        self.look(id).boxed()
    }

    fn any<'a>(&'a self, id: &'a ObjectId, _version: &'a str) -> BoxFuture<'a, Lookup> {
        self.look(id).boxed()
    }

    fn list<'a>(&'a self, kind: &'static Kind) -> BoxFuture<'a, Vec<Value>> {
        async move {
            let mut seen = Vec::new();
            for (key, object) in self.sight.console.picture.objects(&self.cluster, kind) {
                if self.sight.may_get(&key).await.unwrap_or_default() {
                    seen.push(object);
                }
            }
            seen
        }
        .boxed()
    }
}
