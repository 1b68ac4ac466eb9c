//! What a caller sees: rows and objects that they could `get` by the cluster's own rules. Everything that is answered comes
//! through here.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use access_review::{Caller, Target};
use axum::http::StatusCode;
use delivery_diff::Archives;
use delivery_graph::kind::{self, Kind};
use delivery_graph::walk::Lookup;
use delivery_graph::{DELIVERERS, Objects, object};
use fleet::picture::Known;
use fleet::query::{Query, of_repository};
use fleet::row::{Key, Row};
use fleet::running::Question;
use futures::FutureExt as _;
use futures::future::{BoxFuture, try_join_all};
use kube::Client;
use ledger::store::Scope;
use manifest::ObjectId;
use serde_json::Value;

use crate::actions::{self, Acted, Mode, Subject, Verb};
use crate::clusters::Judge;
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

/// A kind in a namespace of a cluster.
pub type KindOfPlace = (Arc<str>, &'static str, Arc<str>);

/// What a cluster says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    Yes,
    No,
    /// Another cluster that is away.
    Silent,
}

impl Sight {
    /// Cuts rows, which come in their order, to those that the caller may get. One question for each kind of a cluster, and
    /// for each of its namespaces if need be.
    pub async fn cut(&self, rows: Vec<(Key, Arc<Row>)>) -> Result<Vec<(Key, Arc<Row>)>, Problem> {
        let (groups, of_row) = grouped(&rows);
        let answers = self.answers(&groups).await?;
        let cut = rows.into_iter().zip(of_row);
        let rows = cut.filter(|(_, group)| answers[*group] == Answer::Yes);
        Ok(rows.map(|(row, _)| row).collect())
    }

    /// Asks what [`cut`](Self::cut) will ask about rows in these places, so that it need not wait for a cluster.
    pub async fn ask_ahead(&self, places: &BTreeSet<KindOfPlace>) -> Result<(), Problem> {
        let groups: Vec<Group<'_>> = places
            .iter()
            .map(|(cluster, kind, namespace)| Group {
                cluster,
                kind,
                namespace,
            })
            .collect();
        self.answers(&groups).await.map(drop)
    }

    /// What the clusters answer about groups of rows, in their order.
    async fn answers(&self, groups: &[Group<'_>]) -> Result<Vec<Answer>, Problem> {
        let kinds: BTreeSet<(&str, &'static str)> = groups.iter().map(Group::kind_of_cluster).collect();
        let whole = try_join_all(kinds.into_iter().map(async |(cluster, kind)| {
            let answer = self.may_get_all(cluster, kind, "").await?;
            Ok::<_, Problem>(((cluster, kind), answer))
        }));
        let whole: HashMap<(&str, &'static str), Answer> = whole.await?.into_iter().collect();
        let answers =
            try_join_all(groups.iter().map(
                async |group| match whole.get(&group.kind_of_cluster()).copied() {
                    None | Some(Answer::No) => {
                        self.may_get_all(group.cluster, group.kind, group.namespace).await
                    }
                    Some(answer) => Ok(answer),
                },
            ));
        answers.await
    }

    /// Those of the clusters that are wanted which are away, or do not say what the caller may get. It depends on one question,
    /// always the same: whether a cluster has something that matches must not show in its silence.
    pub async fn silent(&self, is_wanted: impl Fn(&str) -> bool) -> Result<BTreeSet<Arc<str>>, Problem> {
        let all = self.console.picture.clusters().into_iter();
        let wanted = all.filter(|cluster| {
            is_wanted(&cluster.name)
                && !self.console.clusters.is_home(&cluster.name)
                && self.console.clusters.judge(&cluster.name, &self.caller).is_some()
        });
        let asking = wanted.map(async |cluster| {
            let answer = self.may_get_all(&cluster.name, "Kustomization", "").await?;
            let is_silent = cluster.away || answer == Answer::Silent;
            Ok::<_, Problem>(is_silent.then_some(cluster.name))
        });
        Ok(try_join_all(asking).await?.into_iter().flatten().collect())
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
        let target = target(Acted::Flux(key.kind()), &key.namespace, &key.name);
        self.may_in(&key.cluster, &target).await
    }

    /// Returns whether the caller may get it, or all that it is a part of.
    async fn may_in(&self, cluster: &str, target: &Target) -> Result<Answer, Problem> {
        let Some(judge) = self.console.clusters.judge(cluster, &self.caller) else {
            return Ok(Answer::No);
        };
        let answer = judge.reviews.may_get(&judge.caller, target).await;
        self.read(cluster, answer)
    }

    /// Returns whether the caller may have a verb done to an object.
    pub async fn has_verb(&self, subject: &Subject, verb: Verb) -> Result<bool, Problem> {
        let Some(judge) = self.console.clusters.judge(&subject.cluster, &self.caller) else {
            return Ok(false);
        };
        let target = self.target(subject);
        let (needed, also) = self.console.actions.needs(verb);
        for needed in [Some(needed), also].into_iter().flatten() {
            let answer = judge.reviews.may(&judge.caller, needed, &target).await;
            if self.read(&subject.cluster, answer)? != Answer::Yes {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// A client that asks as the caller, and where archives are had from.
    ///
    /// # Errors
    /// When the console does not ask as its callers, or not in this cluster.
    pub fn as_the_caller(&self, cluster: &str) -> Result<(Client, Archives), Problem> {
        Ok((self.client_of_the_caller(cluster)?, self.archives(cluster)?))
    }

    /// A client that asks as the caller.
    ///
    /// # Errors
    /// When the console does not ask as its callers.
    pub fn client_of_the_caller(&self, cluster: &str) -> Result<Client, Problem> {
        let judge = self.judge(cluster)?;
        match self.console.actions {
            Mode::Own => Ok(judge.hand.client.clone()),
            Mode::Impersonated => {
                let client = actions::impersonated(&judge.hand.client, &judge.caller);
                client.map_err(|error| unprocessable(&error.to_string()))
            }
            Mode::None | Mode::FineGrained => Err(unprocessable(
                "this console does not ask as its callers; its administrator may start it with --actions=impersonated",
            )),
        }
    }

    /// Where archives of a cluster are had from.
    ///
    /// # Errors
    /// When they are not reached from here.
    pub fn archives(&self, cluster: &str) -> Result<Archives, Problem> {
        let is_reached = self.console.actions == Mode::Own || self.console.clusters.is_home(cluster);
        let far = || {
            unprocessable(
                "what its sources have is not reached from here: ask a console of that cluster, or use windlass ui",
            )
        };
        is_reached.then(|| self.console.archives.clone()).ok_or_else(far)
    }

    /// The caller as a cluster knows them, and who asks it.
    ///
    /// # Errors
    /// When the cluster has no user for them.
    pub(crate) fn judge(&self, cluster: &str) -> Result<Judge, Problem> {
        let judge = self.console.clusters.judge(cluster, &self.caller);
        judge.ok_or_else(|| unprocessable("this cluster is not known, or has no user for you"))
    }

    /// An object as it is asked about.
    pub fn target(&self, subject: &Subject) -> Target {
        target(subject.kind, &subject.namespace, &subject.name)
    }

    /// Cuts places to those whose Pods the caller may get.
    pub async fn cut_places(&self, places: BTreeSet<Place>) -> Result<BTreeSet<Place>, Problem> {
        let pods = |namespace: &str| Target {
            group: "",
            resource: "pods",
            namespace: namespace.to_owned(),
            name: String::new(),
        };
        let asking = places.iter().map(async |(cluster, namespace)| {
            let answer = self.may_in(cluster, &pods(namespace)).await?;
            Ok::<_, Problem>(answer == Answer::Yes)
        });
        let seen = try_join_all(asking).await?;
        let cut = places.into_iter().zip(seen);
        Ok(cut
            .filter_map(|(place, is_seen)| is_seen.then_some(place))
            .collect())
    }

    async fn may_get_all(&self, cluster: &str, kind: &str, namespace: &str) -> Result<Answer, Problem> {
        match Acted::named(kind) {
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

    /// The objects that a query can be about because of what only others tell: rows of their sources, Pods of their workloads, as far
    /// as the caller may get these. None if it does not ask for that.
    pub async fn joined(&self, query: &Query) -> Result<Option<HashSet<Key>>, Problem> {
        let mut joined: Option<HashSet<Key>> = None;
        if let Some(repository) = query.repository() {
            let (_, rows) = self.console.picture.rows();
            let (rows, repository) = (self.cut(rows).await?, repository.to_owned());
            let looking = self.in_turn(move || of_repository(&rows, &repository));
            joined = Some(looking.await?);
        }
        if let Some(image) = query.image() {
            let found = self.that_run(image, query).await?;
            joined = Some(match joined {
                Some(before) => before.intersection(&found).cloned().collect(),
                None => found,
            });
        }
        Ok(joined)
    }

    /// Does what takes processor time, when it is its turn: others must not wait for it.
    pub async fn in_turn<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let closed = |_| Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the console is ending");
        let turn = self
            .console
            .queries
            .clone()
            .acquire_owned()
            .await
            .map_err(closed)?;
        let working = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            work()
        });
        let lost = |_| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the query was lost");
        working.await.map_err(lost)
    }

    /// Those that applied the workloads of an image.
    async fn that_run(&self, image: &str, query: &Query) -> Result<HashSet<Key>, Problem> {
        let question = Arc::new(Question::of_image(image)?);
        let running = self.console.running.clone();
        let asked = (running.clone(), question.clone());
        let mut places = self.in_turn(move || asked.0.places(&asked.1)).await?;
        places.retain(|(cluster, _)| query.concerns_cluster(cluster));
        let places = self.cut_places(places).await?;
        let mut of_clusters: BTreeMap<Arc<str>, Vec<ObjectId>> = BTreeMap::new();
        let looking = self.in_turn(move || running.workloads(&question, &places));
        for (cluster, id) in looking.await? {
            of_clusters.entry(cluster).or_default().push(id);
        }
        let picture = &self.console.picture;
        let mut found = HashSet::new();
        for (cluster, ids) in of_clusters {
            for key in picture.may_have_applied_any(&cluster, &ids) {
                if self.may_get(&key).await? != Answer::Yes {
                    continue;
                }
                let Known::Whole(deliverer) = picture.object(&key) else {
                    continue;
                };
                if ids.iter().any(|id| object::has_applied(&deliverer, id)) {
                    found.insert(key);
                }
            }
        }
        Ok(found)
    }

    /// The way through one cluster, for the graph of delivery.
    pub fn of_cluster(&self, cluster: &Arc<str>) -> InCluster {
        InCluster {
            sight: self.clone(),
            cluster: cluster.clone(),
        }
    }
}

fn unprocessable(message: &str) -> Problem {
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, message)
}

/// Rows of a kind in a namespace of a cluster.
struct Group<'a> {
    cluster: &'a str,
    kind: &'static str,
    namespace: &'a str,
}

impl Group<'_> {
    fn kind_of_cluster(&self) -> (&str, &'static str) {
        (self.cluster, self.kind)
    }
}

/// The groups of rows, and which each row is in. Those of a namespace follow each other: only their clusters are compared.
fn grouped(rows: &[(Key, Arc<Row>)]) -> (Vec<Group<'_>>, Vec<usize>) {
    let mut groups: Vec<Group<'_>> = Vec::new();
    let mut begin = 0;
    let mut of_row = Vec::with_capacity(rows.len());
    for (key, row) in rows {
        let is_here = |group: &Group<'_>| group.kind == row.kind && *group.namespace == *key.namespace;
        if !groups.last().is_some_and(is_here) {
            begin = groups.len();
        }
        let known = groups[begin..]
            .iter()
            .position(|group| *group.cluster == *key.cluster);
        of_row.push(known.map_or(groups.len(), |known| begin + known));
        if known.is_none() {
            groups.push(Group {
                cluster: &key.cluster,
                kind: row.kind,
                namespace: &key.namespace,
            });
        }
    }
    (groups, of_row)
}

fn target(kind: Acted, namespace: &str, name: &str) -> Target {
    let (group, resource) = kind.resource();
    Target {
        group,
        resource,
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

    fn in_an_inventory<'a>(&'a self, id: &'a ObjectId) -> BoxFuture<'a, Option<Value>> {
        async move {
            let picture = &self.sight.console.picture;
            for kind in DELIVERERS.into_iter().filter_map(kind::exact) {
                for key in picture.may_have_applied(&self.cluster, kind, id) {
                    if !matches!(self.sight.may_get(&key).await, Ok(Answer::Yes)) {
                        continue;
                    }
                    let Known::Whole(deliverer) = picture.object(&key) else {
                        continue;
                    };
                    if object::has_applied(&deliverer, id) {
                        return Some(deliverer);
                    }
                }
            }
            None
        }
        .boxed()
    }

    fn list<'a>(&'a self, kind: &'static Kind) -> BoxFuture<'a, Vec<Value>> {
        async move {
            // A namespace is asked about once, however much is in it; what is left, object by object.
            let mut of_namespace: HashMap<Arc<str>, bool> = HashMap::new();
            let mut seen = Vec::new();
            for (key, object) in self.sight.console.picture.objects(&self.cluster, kind) {
                let known = of_namespace.get(&key.namespace).copied();
                let all = match known {
                    Some(all) => all,
                    None => {
                        let target = target(Acted::Flux(kind), &key.namespace, "");
                        let answer = self.sight.may_in(&self.cluster, &target).await;
                        let all = matches!(answer, Ok(Answer::Yes));
                        of_namespace.insert(key.namespace.clone(), all);
                        all
                    }
                };
                if all || matches!(self.sight.may_get(&key).await, Ok(Answer::Yes)) {
                    seen.push(object);
                }
            }
            seen
        }
        .boxed()
    }
}
