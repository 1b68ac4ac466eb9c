//! The Helm release of the controllers: made, changed and taken away by helm-action under Helm's own field manager, so that the real
//! helm goes on from it.

mod orders;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use helm_action::{Context, Error, ErrorKind, Log, Outcome, Storage, Unpaced};
use helm_release::{Record, Release, Status};
use helm_render::Renderer;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::PostParams;
use kube::{Api, Client};
use kube_apply::{Address, Engine, Settings};
use kube_health::report::Ending;
use kube_health::{Hub, Resolve, ResolveError, Resolved};
use manifest::GroupVersionKind;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::RELEASE;
use super::lock::Lock;
use crate::cluster::{Cluster, Failure};
use orders::{content, install, upgrade, waiting};

/// Helm's own field manager: what one has written, the other may change.
pub(crate) const FIELD_MANAGER: &str = "helm";
/// Where the controllers are or will be, and what acts there.
pub(crate) struct Platform {
    pub(crate) client: Client,
    pub(crate) engine: Engine,
    pub(crate) namespace: String,
    acting: helm_action::Cluster,
    storage: Storage,
    log: Log,
    cancelled: CancellationToken,
    /// A release is being made or taken away.
    is_acting: AtomicBool,
}

/// A cluster as Helm's actions see it.
pub(crate) fn acting(client: &Client) -> helm_action::Cluster {
    let settings = Settings {
        field_manager: FIELD_MANAGER.to_owned(),
        group: api::meta::HELM_GROUP.to_owned(),
        undoes_kubectl: false,
        ..Settings::default()
    };
    let engine = Engine::new(client.clone(), settings);
    helm_action::Cluster {
        client: client.clone(),
        hub: Hub::by_namespace(client.clone(), Arc::new(Mapper(engine.clone()))),
        engine,
        field_manager: FIELD_MANAGER.to_owned(),
    }
}

/// Settings of a release.
pub(crate) struct Wish {
    pub(crate) values: Map<String, Value>,
    pub(crate) timeout: Duration,
    pub(crate) take_ownership: bool,
}

impl Platform {
    pub(crate) fn new(cluster: &Cluster) -> Self {
        let client = cluster.client();
        let acting = acting(&client);
        Self {
            storage: Storage::new(client.clone(), &cluster.namespace),
            namespace: cluster.namespace.clone(),
            engine: acting.engine.clone(),
            acting,
            client,
            log: Log::new(),
            cancelled: CancellationToken::new(),
            is_acting: AtomicBool::new(false),
        }
    }

    /// Returns the hub that waits by watching.
    pub(crate) fn hub(&self) -> &Hub {
        &self.acting.hub
    }

    /// Waits until an object is gone that was deleted.
    pub(crate) async fn wait_gone(&self, at: &Address, timeout: Duration) -> Result<(), Failure> {
        let gone = self.engine.wait_gone(at, timeout).await;
        gone.map_err(|failure| Failure::TimedOut(format!("{} is not gone: {failure}", at.id())))
    }

    /// The newest revision of the release.
    pub(crate) async fn last(&self) -> Result<Option<Record>, Failure> {
        let last = self.storage.last(RELEASE).await;
        last.map_err(|error| {
            failure(
                &format!("read the release {RELEASE} in namespace {}", self.namespace),
                &error.into(),
            )
        })
    }

    /// Returns whether a namespace is there.
    pub(crate) async fn has_namespace(&self, name: &str) -> Result<bool, Failure> {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let found = namespaces.get_metadata_opt(name).await;
        let found = found.map_err(|error| Failure::request(format!("get the namespace {name}"), error))?;
        Ok(found.is_some())
    }

    /// Makes the namespace if it is not there.
    pub(crate) async fn create_namespace(&self) -> Result<(), Failure> {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let metadata =
            serde_json::json!({"metadata": {"name": self.namespace, "labels": {"name": self.namespace}}});
        let namespace =
            serde_json::from_value(metadata).map_err(|error| Failure::Write(error.to_string()))?;
        match namespaces.create(&PostParams::default(), &namespace).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
            Err(error) => {
                let what = format!("create the namespace {}", self.namespace);
                Err(Failure::request(what, error))
            }
        }
    }

    /// Renders the chart with these values.
    pub(crate) async fn preview(
        &self,
        chart: &Arc<Renderer>,
        values: Map<String, Value>,
        version: i64,
    ) -> Result<Release, Failure> {
        let content = content(chart, values);
        let named = (RELEASE, self.namespace.as_str());
        let (client, engine) = (&self.acting.client, &self.acting.engine);
        let previewed = helm_action::preview(client, engine, &content, named, version).await;
        let previewed = previewed.map_err(|error| failure("render the chart", &error))?;
        Ok(previewed.release)
    }

    /// Takes a revision for failed whose making was broken off, so that the next one may be made.
    pub(crate) async fn unlock(&self, pending: &Record) -> Result<(), Failure> {
        let mut record = pending.clone();
        let info = &mut record.release.info;
        info.description = format!("Release unlocked from stale '{}' state", info.status);
        info.status = Status::Failed;
        let updated = self.storage.update(&record).await;
        updated.map_err(|error| {
            failure(
                &format!("unlock revision {} of {RELEASE}", record.release.version),
                &error.into(),
            )
        })
    }

    /// Makes the next revision of the release, the first one too, and waits until it is ready.
    pub(crate) async fn release(
        &self,
        chart: &Arc<Renderer>,
        last: Option<&Record>,
        wish: Wish,
    ) -> Result<Release, Failure> {
        // The name of a release that was uninstalled and whose records were kept is taken anew.
        let is_upgrade = last.is_some_and(|last| last.release.info.status != Status::Uninstalled);
        let what = if is_upgrade { "upgrade" } else { "install" };
        let content = content(chart, wish.values);
        let waiting = waiting(wish.timeout);
        let context = self.context();
        let action = async {
            if is_upgrade {
                let order = upgrade(&self.namespace, content, waiting, wish.take_ownership);
                helm_action::upgrade(&context, &order).await
            } else {
                let order = install(&self.namespace, content, waiting, wish.take_ownership);
                helm_action::install(&context, &order).await
            }
        };
        let outcome = self.acting(action).await;
        self.ended(outcome, what)
    }

    /// Takes the release away, except for what is to be kept.
    pub(crate) async fn uninstall(&self, timeout: Duration) -> Result<(), Failure> {
        let order = orders::uninstall(&self.namespace, waiting(timeout));
        let context = self.context();
        let outcome = self.acting(helm_action::uninstall(&context, &order)).await;
        self.ended(outcome, "uninstall").map(drop)
    }

    /// Works until Ctrl-C, or until the lock is lost. A release that is being made is not left in the middle: its waits end,
    /// and its record says that it failed. A panic is an error like others, so that the lock is given up.
    pub(crate) async fn interruptible<T>(
        &self,
        lock: Option<&Lock>,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let lost = async {
            match lock {
                Some(lock) => lock.lost().await,
                None => std::future::pending().await,
            }
        };
        let interrupted = async {
            loop {
                if tokio::signal::ctrl_c().await.is_err() {
                    return std::future::pending().await;
                }
                self.cancelled.cancel();
                if !self.is_acting.load(Ordering::Relaxed) {
                    return Failure::Interrupted;
                }
            }
        };
        tokio::select! {
            done = caught(work) => done,
            interrupted = interrupted => Err(interrupted),
            // Not even its record may be written then: someone else may be at it.
            lost = lost => Err(lost),
        }
    }

    async fn acting<T>(&self, action: impl Future<Output = T>) -> T {
        self.is_acting.store(true, Ordering::Relaxed);
        let done = action.await;
        self.is_acting.store(false, Ordering::Relaxed);
        done
    }

    fn ended(&self, outcome: Outcome, what: &str) -> Result<Release, Failure> {
        if outcome.result.is_err() && self.cancelled.is_cancelled() {
            return Err(Failure::Interrupted);
        }
        outcome.result.map_err(|error| {
            failure(
                &format!("{what} {RELEASE} in namespace {}", self.namespace),
                &error,
            )
        })?;
        let last = outcome.written.into_values().next_back();
        last.ok_or_else(|| Failure::Request {
            what: what.to_owned(),
            why: "nothing was recorded".to_owned(),
        })
    }

    fn context(&self) -> Context<'_> {
        Context {
            cluster: &self.acting,
            storage: &self.storage,
            pace: &Unpaced,
            cancelled: self.cancelled.clone(),
            stopped: self.cancelled.clone(),
            tell: &|_| (),
            log: &self.log,
        }
    }
}

/// A failure of an action. That time ran out, and that something is not ready, have exit codes of their own.
fn failure(what: &str, error: &Error) -> Failure {
    let text = format!("failed to {what}: {error}");
    match error.kind() {
        ErrorKind::Wait
            if error
                .report()
                .is_some_and(|report| report.ending == Ending::TimedOut) =>
        {
            Failure::TimedOut(text)
        }
        ErrorKind::Wait => Failure::NotReady(text),
        // Helm's words for a deletion that did not come to its end in time.
        ErrorKind::Delete if error.to_string().contains("termination timeout error") => {
            Failure::TimedOut(text)
        }
        ErrorKind::Ownership => {
            Failure::NotReady(format!("{text}; --take-ownership makes them the release's"))
        }
        _ => Failure::Request {
            what: what.to_owned(),
            why: error.to_string(),
        },
    }
}

/// The engine's discovery, for the waits.
struct Mapper(Engine);

impl Resolve for Mapper {
    fn resolve<'a>(&'a self, gvk: &'a GroupVersionKind) -> BoxFuture<'a, Result<Resolved, ResolveError>> {
        async move {
            let found = self.0.mapper().resolve(gvk).await?;
            Ok(Resolved {
                resource: found.api.clone(),
                namespaced: found.namespaced,
            })
        }
        .boxed()
    }
}

/// A panic, which was told already, as an error.
async fn caught<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let panicked = |_| Failure::Request {
        what: "change the installation".to_owned(),
        why:
            "the command has a fault and stopped midway; please report it, and run the command again to go on"
                .to_owned(),
    };
    let done = AssertUnwindSafe(work).catch_unwind().await;
    done.unwrap_or_else(|payload| Err(panicked(payload)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deletion_that_takes_too_long_is_told_from_one_that_is_refused() {
        let of = |text: &str| failure("uninstall", &Error::new(ErrorKind::Delete, text));
        let late = "Deployment/n/a termination timeout error: it is still there";
        assert!(matches!(of(late), Failure::TimedOut(_)));
        assert!(matches!(of("forbidden"), Failure::Request { .. }));
    }

    #[tokio::test]
    async fn a_panic_is_an_error_so_that_the_lock_is_given_up() {
        let work = async { Err::<(), _>(Failure::Interrupted) };
        assert!(matches!(caught(work).await, Err(Failure::Interrupted)));
        let failure = caught::<()>(async { panic!("on purpose") }).await.unwrap_err();
        assert!(failure.to_string().contains("run the command again"), "{failure}");
    }
}
