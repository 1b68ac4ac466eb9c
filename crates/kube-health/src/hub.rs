//! Waiting by watching: one hub per process, whose watches all waiters share.
//!
//! A wait is a future that sleeps until a watch has news about one of its objects, decides ([`crate::wait`]), and
//! sleeps again. It holds no worker, and dropping it cancels it. A watch starts with the first interest in it and ends
//! a few seconds after the last. What a watch sees is reduced to a verdict at once; no objects are kept. When a wait
//! has failed, the cause is looked up ([`crate::why`]): the only requests that are made per object.

mod follow;
mod telling;
mod watch;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::{FutureExt as _, StreamExt as _};
use jiff::Timestamp;
use kube::Client;
use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::compute::BuiltIn;
use crate::custom::Checks;
use crate::report::{Ending, ObjectReport, Outcome, Report};
use crate::resolve::Resolve;
use crate::verdict::{Rule, Status};
use crate::wait::{Decision, Target, Tracked, WaitRequest, decide, unfinished};
use crate::why::{self, Cause};
use telling::{Telling, Woken, worst_first};
use watch::{ObjectKey, SharedWatch, Subscription, WatchKey};

/// Label that kustomize-controller puts on everything it applies.
const OWNER_LABEL: &str = "kustomize.toolkit.fluxcd.io/name";
/// How long a watch stays open when no one waits, so that the next reconcile of a burst finds it.
const LINGER: Duration = Duration::from_secs(5);
/// Looking for causes may take this long after the wait's own time.
const WHY_TIMEOUT: Duration = Duration::from_secs(5);
/// Causes are looked up for this many objects of a report.
const WHY_OBJECTS: usize = 10;
/// And for this many while the wait goes on.
const TOLD_OBJECTS: usize = 3;
/// And for this many at a time.
const WHY_CONCURRENCY: usize = 4;

/// The watches of a process, shared by all waits. Clones are the same hub.
///
/// Everything is read as the hub's one client: waits as another identity, or on another cluster, take a hub of their
/// own.
#[derive(Clone)]
pub struct Hub {
    inner: Arc<Inner>,
}

struct Inner {
    client: Client,
    resolver: Arc<dyn Resolve>,
    owner_label: String,
    /// Watches are on one namespace each, because the client may not list all.
    by_namespace: bool,
    linger: Duration,
    watches: Mutex<HashMap<WatchKey, Arc<SharedWatch>>>,
}

impl Hub {
    /// Makes a hub that watches as `client`, and takes `kustomize.toolkit.fluxcd.io/name` for the owner label.
    pub fn new(client: Client, resolver: Arc<dyn Resolve>) -> Self {
        Self::with_owner_label(client, resolver, OWNER_LABEL)
    }

    /// Makes a hub whose labelled targets carry another label.
    pub fn with_owner_label(client: Client, resolver: Arc<dyn Resolve>, label: &str) -> Self {
        Self {
            inner: Arc::new(Inner {
                client,
                resolver,
                owner_label: label.to_owned(),
                by_namespace: false,
                linger: LINGER,
                watches: Mutex::default(),
            }),
        }
    }

    /// Makes a hub as [`new`](Self::new) does for a client that may not look into all namespaces.
    pub fn by_namespace(client: Client, resolver: Arc<dyn Resolve>) -> Self {
        Self::by_namespace_with_owner_label(client, resolver, OWNER_LABEL)
    }

    /// The same for labelled targets that carry another label.
    pub fn by_namespace_with_owner_label(client: Client, resolver: Arc<dyn Resolve>, label: &str) -> Self {
        Self {
            inner: Arc::new(Inner {
                client,
                resolver,
                owner_label: label.to_owned(),
                by_namespace: true,
                linger: LINGER,
                watches: Mutex::default(),
            }),
        }
    }

    /// Counts the watches that are open now, lingering ones included.
    pub fn open_watches(&self) -> usize {
        self.inner.lock().len()
    }

    /// Waits until all objects are Current, one has failed, or time is up. Dropping the future cancels the wait.
    pub async fn wait(&self, request: WaitRequest) -> Outcome {
        self.run(request, None, |_| ()).await
    }

    /// Waits as [`wait`](Self::wait) does, and tells now and then what is waited for, with its cause: for the first time
    /// after a few seconds, then ever more rarely, and only what it has not told last.
    pub async fn wait_telling(&self, request: WaitRequest, tell: impl FnMut(Report) + Send) -> Outcome {
        self.run(request, Some(Telling::start()), tell).await
    }

    async fn run(
        &self,
        request: WaitRequest,
        mut telling: Option<Telling>,
        mut tell: impl FnMut(Report) + Send,
    ) -> Outcome {
        let clock = Clock::start();
        let deadline = clock.began + request.timeout;
        let mut wait = Wait::new(&self.inner, &request);
        loop {
            let now = clock.now();
            wait.observe(now);
            let next = match decide(&wait.objects, request.fail_fast, now) {
                Decision::Healthy => return Outcome::Healthy,
                Decision::Unhealthy(objects) => {
                    drop(wait);
                    return Outcome::Unhealthy(self.explained(Ending::Stalled, objects, WHY_OBJECTS).await);
                }
                Decision::Wait(next) => next.map(|at| clock.instant(at)).filter(|at| *at < deadline),
            };
            let until = next.unwrap_or(deadline);
            match wait.wake_by(until, telling.as_mut()).await {
                Woken::News => {}
                Woken::Time if next.is_some() => {}
                Woken::Time => {
                    let objects = unfinished(&wait.objects, clock.now());
                    drop(wait);
                    return Outcome::TimedOut(self.explained(Ending::TimedOut, objects, WHY_OBJECTS).await);
                }
                Woken::ToLook => {
                    let objects = worst_first(unfinished(&wait.objects, clock.now()));
                    let (hub, ending) = (self.clone(), Ending::NotYet);
                    let report = async move { hub.explained(ending, objects, TOLD_OBJECTS).await };
                    if let Some(telling) = &mut telling {
                        telling.looks(report.boxed());
                    }
                }
                Woken::Looked(report) => {
                    let news = telling.as_mut().and_then(|telling| telling.looked(report));
                    news.into_iter().for_each(&mut tell);
                }
            }
        }
    }

    /// Looks up the first cause of what is wrong with each object, as far as time and number allow.
    async fn explained(&self, ending: Ending, mut objects: Vec<ObjectReport>, limit: usize) -> Report {
        let client = &self.inner.client;
        let asked = objects
            .iter_mut()
            .filter(|object| is_worth_asking(object))
            .take(limit);
        let lookups =
            futures::stream::iter(asked).for_each_concurrent(WHY_CONCURRENCY, |object| async move {
                match why::gather(client, &object.id).await {
                    Ok(why) => object.why = why.filter(|why| !has_told(object, why)),
                    Err(error) => tracing::debug!(object = %object.id, %error, "no cause can be looked up"),
                }
            });
        // What was found until then stays in the report.
        if tokio::time::timeout(WHY_TIMEOUT, lookups).await.is_err() {
            tracing::debug!("looking for causes took too long");
        }
        Report { ending, objects }
    }
}

fn is_worth_asking(object: &ObjectReport) -> bool {
    matches!(object.status, Status::InProgress | Status::Failed)
}

/// Controllers send what their conditions say as events too, under another reason.
fn has_told(object: &ObjectReport, why: &Cause) -> bool {
    let message = why
        .text
        .split_once(": ")
        .map_or(why.text.as_str(), |(_, message)| message);
    why.kind == why::Kind::Event && object.message.contains(message)
}

/// Wall time for verdicts that has the steadiness of the monotonic clock.
struct Clock {
    began: Instant,
    began_at: Timestamp,
}

impl Clock {
    fn start() -> Self {
        Self {
            began: Instant::now(),
            began_at: Timestamp::now(),
        }
    }

    fn now(&self) -> Timestamp {
        self.began_at
            .saturating_add(self.began.elapsed())
            .unwrap_or(Timestamp::MAX)
    }

    fn instant(&self, at: Timestamp) -> Instant {
        self.began + Duration::try_from(at.duration_since(self.began_at)).unwrap_or_default()
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, HashMap<WatchKey, Arc<SharedWatch>>> {
        self.watches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Joins the watch of this key, or starts it.
    fn subscribe(
        self: &Arc<Self>,
        key: WatchKey,
        object: Option<ObjectKey>,
        news: &Arc<Notify>,
    ) -> Subscription {
        let mut watches = self.lock();
        let (watch, is_new) = match watches.get(&key) {
            Some(watch) => (Arc::clone(watch), false),
            None => (Arc::new(SharedWatch::new(key.clone())), true),
        };
        // Counted before the lock is given up: a watch without subscribers may be closed.
        let subscription = watch.subscribe(object, news);
        if is_new {
            watches.insert(key, Arc::clone(&watch));
            tokio::spawn(follow::run(
                watch,
                Arc::downgrade(self),
                self.client.clone(),
                Arc::clone(&self.resolver),
                self.linger,
            ));
        }
        subscription
    }

    /// Forgets a watch that no one uses; false when someone does after all.
    fn close_if_unused(&self, watch: &Arc<SharedWatch>) -> bool {
        let mut watches = self.lock();
        let unused = watch.subscribers() == 0;
        if unused {
            remove(&mut watches, watch);
        }
        unused
    }

    /// Forgets a watch that was refused, so that the next wait tries anew.
    fn close(&self, watch: &Arc<SharedWatch>) {
        remove(&mut self.lock(), watch);
    }

    fn watch_key(&self, target: &Target, checks: &Checks) -> WatchKey {
        let label = |object: &Value| {
            object
                .pointer("/metadata/labels")?
                .get(&self.owner_label)
                .cloned()
        };
        // The answer knows better than the request: admission may have taken the label away.
        let gvk = target.gvk();
        let rule = checks.check_of(&gvk).cloned();
        let is_labelled = target.labelled
            && target
                .initial
                .as_ref()
                .is_none_or(|answer| label(answer).is_some());
        let key = if is_labelled {
            let namespace = if self.by_namespace {
                &*target.id.namespace
            } else {
                ""
            };
            WatchKey::labelled(gvk, namespace, &self.owner_label)
        } else {
            WatchKey::named(gvk, &target.id.namespace, &target.id.name)
        };
        WatchKey { rule, ..key }
    }
}

fn remove(watches: &mut HashMap<WatchKey, Arc<SharedWatch>>, watch: &Arc<SharedWatch>) {
    if watches
        .get(watch.key())
        .is_some_and(|current| Arc::ptr_eq(current, watch))
    {
        watches.remove(watch.key());
    }
}

/// A running wait: its objects, and the subscriptions that tell about them (same order, None for what was Current
/// from the start).
struct Wait {
    hub: Arc<Inner>,
    objects: Vec<Tracked>,
    subscriptions: Vec<Option<Subscription>>,
    pods: HashMap<WatchKey, Subscription>,
    news: Arc<Notify>,
}

impl Wait {
    fn new(hub: &Arc<Inner>, request: &WaitRequest) -> Self {
        let now = Timestamp::now();
        let news = Arc::new(Notify::new());
        let objects: Vec<Tracked> = request
            .objects
            .iter()
            .map(|target| {
                let custom = request.checks.check_of(&target.gvk());
                let rule: &dyn Rule = custom.map_or(&BuiltIn, |custom| custom.as_ref());
                Tracked::new(target, &request.jobs_with_ttl, rule, now)
            })
            .collect();
        // Settled already, one way or the other: no watch is opened for the answer that the apply has brought.
        let settled = !matches!(decide(&objects, request.fail_fast, now), Decision::Wait(_));
        let subscribe = |(target, tracked): (&Target, &Tracked)| {
            let needed = !settled && !tracked.is_current(now);
            needed.then(|| {
                hub.subscribe(
                    hub.watch_key(target, &request.checks),
                    Some(ObjectKey::from_id(&target.id)),
                    &news,
                )
            })
        };
        let subscriptions = request.objects.iter().zip(&objects).map(subscribe).collect();
        Self {
            hub: Arc::clone(hub),
            objects,
            subscriptions,
            pods: HashMap::new(),
            news,
        }
    }

    /// Sleeps until a watch has news, until the given time, or until there is something to tell; says which.
    async fn wake_by(&self, at: Instant, telling: Option<&mut Telling>) -> Woken {
        let tell = async {
            match telling {
                Some(telling) => telling.next().await,
                None => futures::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = self.news.notified() => Woken::News,
            woken = tell => woken,
            () = tokio::time::sleep_until(at) => Woken::Time,
        }
    }

    /// Brings every object up to what its watch knows.
    fn observe(&mut self, now: Timestamp) {
        let mut wanted_pods = HashMap::new();
        for (object, subscription) in self.objects.iter_mut().zip(&self.subscriptions) {
            let Some(subscription) = subscription else {
                continue;
            };
            object.observe(subscription.read(object.baseline.version));
            if let (Some(selector), false) = (&object.pods, object.is_current(now)) {
                let key = WatchKey::pods(&object.id.namespace, selector);
                let pods = self.pods.remove(&key).or_else(|| wanted_pods.remove(&key));
                let pods = pods.unwrap_or_else(|| self.hub.subscribe(key.clone(), None, &self.news));
                object.observe_failed_pods(pods.failed_pods());
                wanted_pods.insert(key, pods);
            }
        }
        // Watches on Pods that are not wanted any more end here.
        self.pods = wanted_pods;
    }
}
