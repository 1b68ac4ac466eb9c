//! What a caller sees: rows and objects that they could `get` by the cluster's own rules. Everything that is answered comes
//! through here.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use access_review::{Caller, Target};
use delivery_graph::Objects;
use delivery_graph::kind::{self, Kind};
use delivery_graph::walk::Lookup;
use fleet::picture::Known;
use fleet::row::{Key, Row};
use futures::FutureExt as _;
use futures::future::{BoxFuture, try_join_all};
use ledger::store::Scope;
use manifest::ObjectId;
use serde_json::Value;

use crate::problem::Problem;
use crate::serve::Console;

/// Said of an object that only its row is known of.
pub const TOO_LARGE: &str = "it is too large to be kept; ask the API server for it";

/// Said where another cluster is away.
pub const SILENT: &str = "the cluster does not say what you may get; try again when it is there";

/// The picture through the eyes of a caller.
#[derive(Clone)]
pub struct Sight {
    pub console: Console,
    pub caller: Arc<Caller>,
}

/// A namespace of a cluster.
pub type Place = (Arc<str>, Box<str>);

/// Rows that a caller may get.
pub struct Cut {
    pub rows: Vec<(Key, Arc<Row>)>,
    /// Other clusters with rows that do not say now what the caller may get: theirs are left out.
    pub silent: BTreeSet<Arc<str>>,
}

/// What a cluster says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    Yes,
    No,
    /// Another cluster that is away.
    Silent,
}

impl Sight {
    /// Cuts rows to those that the caller may get. One question for each kind of a cluster, and for each of its namespaces if
    /// need be.
    pub async fn cut(&self, mut rows: Vec<(Key, Arc<Row>)>) -> Result<Cut, Problem> {
        let kinds: BTreeSet<(&str, &'static str)> =
            rows.iter().map(|(key, row)| (&*key.cluster, row.kind)).collect();
        let whole = try_join_all(kinds.into_iter().map(async |(cluster, kind)| {
            let answer = self.may_get_all(cluster, kind, "").await?;
            Ok::<_, Problem>(((Arc::from(cluster), kind), answer))
        }));
        let whole: HashMap<(Arc<str>, &'static str), Answer> = whole.await?.into_iter().collect();
        let answer_for_all = |key: &Key, row: &Row| whole.get(&(key.cluster.clone(), row.kind)).copied();
        let places: HashSet<(Arc<str>, &'static str, Arc<str>)> = rows
            .iter()
            .filter(|(key, row)| answer_for_all(key, row) == Some(Answer::No))
            .map(|(key, row)| (key.cluster.clone(), row.kind, key.namespace.clone()))
            .collect();
        let seen = try_join_all(places.into_iter().map(async |place| {
            let answer = self.may_get_all(&place.0, place.1, &place.2).await?;
            Ok::<_, Problem>((place, answer))
        }));
        let seen: HashMap<(Arc<str>, &'static str, Arc<str>), Answer> = seen.await?.into_iter().collect();
        let mut silent = BTreeSet::new();
        rows.retain(|(key, row)| {
            let in_namespace = || seen.get(&(key.cluster.clone(), row.kind, key.namespace.clone()));
            let answer = match answer_for_all(key, row) {
                Some(Answer::No) => in_namespace().copied(),
                other => other,
            };
            if answer == Some(Answer::Silent) {
                silent.insert(key.cluster.clone());
            }
            answer == Some(Answer::Yes)
        });
        Ok(Cut { rows, silent })
    }

    /// Cuts scopes of the ledger to those whose objects the caller may get. A cluster that does not say what they may get
    /// shows nothing.
    pub async fn cut_scopes(&self, scopes: Vec<Scope>) -> Result<Vec<Scope>, Problem> {
        let asking = scopes.iter().map(async |scope| {
            for namespace in ["", scope.namespace.as_str()] {
                if self.may_get_all(&scope.cluster, &scope.kind, namespace).await? == Answer::Yes {
                    return Ok::<_, Problem>(true);
                }
            }
            Ok(false)
        });
        let seen = try_join_all(asking).await?;
        let cut = scopes.into_iter().zip(seen);
        Ok(cut
            .filter_map(|(scope, is_seen)| is_seen.then_some(scope))
            .collect())
    }

    /// Returns whether the caller may get an object, there or not.
    pub async fn may_get(&self, key: &Key) -> Result<Answer, Problem> {
        let target = target(key.kind(), &key.namespace, &key.name);
        let Some(judge) = self.console.clusters.judge(&key.cluster, &self.caller) else {
            return Ok(Answer::No);
        };
        let answer = judge.reviews.may_get(&judge.caller, &target).await;
        self.read(&key.cluster, answer)
    }

    /// Cuts places to those whose Pods the caller may get, and names the clusters that do not say.
    pub async fn cut_places(
        &self,
        places: BTreeSet<Place>,
    ) -> Result<(BTreeSet<Place>, BTreeSet<Arc<str>>), Problem> {
        let pods = |namespace: &str| Target {
            group: "",
            resource: "pods",
            namespace: namespace.to_owned(),
            name: String::new(),
        };
        let asking = places.iter().map(async |(cluster, namespace)| {
            let mut answer = Answer::No;
            for namespace in ["", namespace] {
                answer = self.may(cluster, pods(namespace)).await?;
                if answer != Answer::No {
                    break;
                }
            }
            Ok::<_, Problem>(answer)
        });
        let answers = try_join_all(asking).await?;
        let (mut seen, mut silent) = (BTreeSet::new(), BTreeSet::new());
        for (place, answer) in places.into_iter().zip(answers) {
            match answer {
                Answer::Yes => _ = seen.insert(place),
                Answer::Silent => _ = silent.insert(place.0),
                Answer::No => {}
            }
        }
        Ok((seen, silent))
    }

    async fn may_get_all(&self, cluster: &str, kind: &str, namespace: &str) -> Result<Answer, Problem> {
        match kind::exact(kind) {
            Some(kind) => self.may(cluster, target(kind, namespace, "")).await,
            None => Ok(Answer::No),
        }
    }

    async fn may(&self, cluster: &str, target: Target) -> Result<Answer, Problem> {
        let Some(judge) = self.console.clusters.judge(cluster, &self.caller) else {
            return Ok(Answer::No);
        };
        let answer = judge.reviews.may_get_exactly(&judge.caller, target).await;
        self.read(cluster, answer)
    }

    fn read(&self, cluster: &str, answer: Result<bool, access_review::Error>) -> Result<Answer, Problem> {
        match answer {
            Ok(true) => Ok(Answer::Yes),
            Ok(false) => Ok(Answer::No),
            Err(error) if self.console.clusters.is_home(cluster) => Err(error.into()),
            Err(error) => {
                let error = format!("{:#}", anyhow::Error::from(error));
                tracing::debug!(cluster, error, "rights cannot be asked for");
                Ok(Answer::Silent)
            }
        }
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
            Ok(Answer::Yes) => match self.sight.console.picture.object(&key) {
                Known::Whole(object) => Lookup::Found(object),
                Known::TooLarge => Lookup::Refused(TOO_LARGE.to_owned()),
                Known::Absent => Lookup::Absent,
            },
            // Whether it is there is not told.
            Ok(Answer::No) => Lookup::Refused("you may not get it".to_owned()),
            Ok(Answer::Silent) => Lookup::Refused(SILENT.to_owned()),
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
                if matches!(self.sight.may_get(&key).await, Ok(Answer::Yes)) {
                    seen.push(object);
                }
            }
            seen
        }
        .boxed()
    }
}
