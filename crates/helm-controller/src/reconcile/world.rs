//! The world around one release, as the loop over Helm's actions needs it: Helm's storage, actions on a cluster, drift, the
//! status and events of the object.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::helm::{HelmRelease, HelmReleaseStatus};
use api::meta::reasons;
use change_window::freeze::InForce;
use cluster_access::targets::Target;
use controller_kit::ObjectKey;
use controller_kit::events::Severity;
use controller_kit::queue::Slot;
use error_chain::chain;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use helm_action::{Cluster, Context as ActionContext, Error, ErrorKind, Log, Outcome, Pace, Storage};
use helm_release::{Release, Status};
use jiff::Timestamp;
use kube::ResourceExt as _;
use kube_apply::Applied;
use reconcile_kit::base::owner;
use reconcile_kit::fights;
use serde_json::{Map, Value};

use super::record::Recorder;
use super::{drift, inventory, waiting};
use crate::admission::ImageAdmission;
use crate::charts::Loaded;
use crate::context::Context;
use crate::flags::NAME;
use crate::memory::Ends;
use crate::orders::Orders;
use crate::release::{self, Action, Drift, Event, Failure, FailureKind, Perform, Performed};

/// Where a release is.
pub(super) struct Place {
    /// Its name.
    name: String,
    /// Where its objects are.
    namespace: String,
    /// Where its records are.
    storage: Storage,
    /// The cluster, and as whom it is seen.
    cluster: Cluster,
}

impl Place {
    /// Where the spec wants it.
    pub(super) fn of_spec(object: &HelmRelease, target: &Target) -> Self {
        Self::new(
            release::release_name(object),
            release::release_namespace(object),
            &release::storage_namespace(object),
            target,
        )
    }

    /// Where the status says that it is; what it does not say is as in the spec.
    pub(super) fn of_status(object: &HelmRelease, status: &HelmReleaseStatus, target: &Target) -> Self {
        let storage = status.storage_namespace.clone();
        let storage = storage.unwrap_or_else(|| release::storage_namespace(object));
        match release::latest(&status.history) {
            Some(latest) => Self::new(latest.name.clone(), latest.namespace.clone(), &storage, target),
            None => Self::new(
                release::release_name(object),
                release::release_namespace(object),
                &storage,
                target,
            ),
        }
    }

    fn new(name: String, namespace: String, storage: &str, target: &Target) -> Self {
        Self {
            name,
            namespace,
            storage: Storage::new(target.client.clone(), storage),
            cluster: Cluster {
                client: target.client.clone(),
                engine: target.engine.clone(),
                hub: target.hub.clone(),
                field_manager: NAME.to_owned(),
            },
        }
    }
}

/// Content of a release: a chart, and the values that are merged over its own.
type Released = (Arc<Loaded>, Arc<Map<String, Value>>);

/// The world around one release.
pub(super) struct World<'a, 'r> {
    context: &'a Context,
    key: &'a ObjectKey,
    object: &'a Arc<HelmRelease>,
    recorder: &'a mut Recorder<'r>,
    slot: &'a Slot,
    ends: Ends,
    place: Option<Place>,
    content: Option<Released>,
    /// The newest record was left by an uninstall.
    over_uninstalled: bool,
    /// Helm's log of the last action.
    log: Log,
    /// The Freeze that is in force.
    freeze: Option<&'a InForce>,
}

impl<'a, 'r> World<'a, 'r> {
    pub(super) fn new(
        context: &'a Context,
        key: &'a ObjectKey,
        object: &'a Arc<HelmRelease>,
        recorder: &'a mut Recorder<'r>,
        slot: &'a Slot,
        ends: Ends,
    ) -> Self {
        Self {
            context,
            key,
            object,
            recorder,
            slot,
            ends,
            place: None,
            content: None,
            over_uninstalled: false,
            log: Log::new(),
            freeze: None,
        }
    }

    /// Returns whether a Freeze is in force.
    pub(super) fn is_frozen(&self) -> bool {
        self.freeze.is_some()
    }

    /// Does nothing that is new.
    pub(super) fn freeze(&mut self, freeze: Option<&'a InForce>) {
        self.freeze = freeze;
    }

    /// The object.
    pub(super) fn object(&self) -> &'a Arc<HelmRelease> {
        self.object
    }

    /// Goes where the release is.
    pub(super) fn enter(&mut self, place: Place) {
        self.place = Some(place);
    }

    /// Brings what is released.
    pub(super) fn bring(&mut self, chart: Arc<Loaded>, values: Arc<Map<String, Value>>) {
        self.content = Some((chart, values));
    }

    fn place(&self) -> Result<&Place, Failure> {
        found(self.place.as_ref())
    }

    /// Does an action; what it waits for is told in the status meanwhile.
    async fn act(&mut self, action: &Action) -> Result<Outcome, Failure> {
        let Self {
            context,
            object,
            recorder,
            slot,
            ends,
            content,
            over_uninstalled,
            log,
            ..
        } = self;
        let place = found(self.place.as_ref())?;
        let checks =
            reconcile_kit::checks::checks(&***object).map_err(|error| Failure::new(chain(&error)))?;
        let checks = Arc::new(checks);
        let orders = Orders {
            object,
            name: &place.name,
            namespace: &place.namespace,
            checks: &checks,
            policy: &context.policy,
        };
        let (pace, images) = (SlotPace(slot), &context.images);
        let (tell, told) = waiting::channel();
        let context = ActionContext {
            cluster: &place.cluster,
            storage: &place.storage,
            pace: &pace,
            cancelled: ends.cancelled.clone(),
            stopped: ends.stopped.clone(),
            tell: &tell,
            log,
        };
        let admission = ImageAdmission::of(images, object.namespace().as_deref().unwrap_or_default());
        let content = || {
            let content = content.as_ref();
            let content = content.map(|(chart, values)| helm_action::Content {
                admission: admission.clone().map(|admission| admission as _),
                ..orders.content(chart, values)
            });
            content.ok_or_else(|| Failure::new("failed to release: there is no chart"))
        };
        let acting = async {
            Ok(match action {
                Action::Install => {
                    helm_action::install(&context, &orders.install(content()?, *over_uninstalled)).await
                }
                Action::Upgrade => helm_action::upgrade(&context, &orders.upgrade(content()?)).await,
                Action::RollBack(to) => {
                    helm_action::rollback(&context, &orders.roll_back(action, to.version)).await
                }
                Action::UninstallRemediation | Action::FinishUninstall | Action::Uninstall => {
                    helm_action::uninstall(&context, &orders.uninstall(action)).await
                }
                Action::Test => helm_action::test(&context, &orders.test()).await,
                Action::Unlock(release) => unlock(&place.storage, release).await,
                Action::CorrectDrift(_) => Outcome {
                    written: BTreeMap::new(),
                    result: Ok(()),
                },
            })
        };
        let outcome = waiting::telling(recorder, told, acting).await;
        let warnings = admission
            .map(|admission| admission.warnings())
            .unwrap_or_default();
        if !warnings.is_empty() {
            let (message, reason) = (warnings.join("\n"), reasons::IMAGE_VERIFICATION_FAILED);
            tracing::warn!("{message}");
            self.recorder
                .event(Severity::Error, reason, &message, BTreeMap::new());
        }
        outcome
    }

    async fn correct(&self, drift: &[Drift]) -> Result<Applied, Failure> {
        let place = self.place()?;
        let last = place.storage.last(&place.name).await;
        let last = last.map_err(|error| Failure::new(chain(&error)))?;
        let release = last
            .ok_or_else(|| Failure::new("failed to find the release"))?
            .release;
        drift::correct(
            &place.cluster.engine,
            &owner(self.key),
            self.object,
            &release,
            drift,
        )
        .await
    }

    /// Takes in what was corrected: someone else may change it each time.
    fn note_fights(&self, applied: &Applied) {
        let objects = fights::corrections(applied);
        let begun = self.context.memory.with(self.key, |entry| {
            entry.fights.corrected(objects, Timestamp::now())
        });
        if !begun.is_empty() {
            let message = fights::message(&begun.join(", "));
            tracing::warn!("{message}");
            self.recorder
                .event(Severity::Error, fights::REASON, &message, BTreeMap::new());
        }
    }

    /// The objects of the newest record that an action wrote, if it made a revision.
    async fn inventory(
        &self,
        action: &Action,
        written: &BTreeMap<i64, Release>,
    ) -> Option<api::kustomize::ResourceInventory> {
        let makes = matches!(action, Action::Install | Action::Upgrade | Action::RollBack(_));
        let (_, newest) = written.last_key_value().filter(|_| makes)?;
        let place = self.place.as_ref()?;
        let crds = match &self.content {
            Some((chart, values)) if !chart.chart().crd_files().is_empty() => {
                helm_action::crd_files(&chart.renderer, values).await.ok()?
            }
            _ => Vec::new(),
        };
        inventory::inventory_of(&place.cluster.engine, newest, &crds).await
    }
}

impl Perform for World<'_, '_> {
    async fn last(&mut self) -> Result<Option<Release>, Failure> {
        let place = self.place()?;
        let last = place.storage.last(&place.name).await;
        let last = last.map_err(|error| Failure::new(chain(&error)))?;
        let last = last.map(|record| record.release);
        self.over_uninstalled = last
            .as_ref()
            .is_some_and(|last| last.info.status == Status::Uninstalled);
        Ok(last)
    }

    async fn get(&mut self, version: i64) -> Result<Option<Release>, Failure> {
        let place = self.place()?;
        let found = place.storage.get(&place.name, version).await;
        found
            .map(|found| found.map(|record| record.release))
            .map_err(|error| Failure::new(chain(&error)))
    }

    async fn drift(&mut self, release: &Release) -> Result<Vec<Drift>, Failure> {
        let place = self.place()?;
        drift::find(&place.cluster.engine, &owner(self.key), self.object, release).await
    }

    async fn perform(&mut self, action: &Action) -> Performed {
        self.log = Log::new();
        if let Action::CorrectDrift(drift) = action {
            tracing::debug!(objects = drift.len(), "correcting drift");
            return match self.correct(drift).await {
                Ok(applied) => {
                    self.note_fights(&applied);
                    Performed {
                        corrected: applied.changed().map(ToString::to_string).collect(),
                        ..Performed::default()
                    }
                }
                Err(failure) => Performed::failed(failure),
            };
        }
        let Outcome { written, result } = match self.act(action).await {
            Ok(outcome) => outcome,
            Err(failure) => return Performed::failed(failure),
        };
        Performed {
            inventory: self.inventory(action, &written).await,
            log: self.log.to_string(),
            result: result.map_err(|error| failure(&error)),
            written,
            corrected: Vec::new(),
        }
    }

    async fn save(&mut self, status: &HelmReleaseStatus) -> Result<(), Failure> {
        let written = self.recorder.write(status).await;
        written.map(drop).map_err(|error| Failure::new(error.message()))
    }

    fn publish(&mut self, event: Event) {
        let Event {
            severity,
            reason,
            message,
            annotations,
        } = event;
        tracing::info!(reason, "{message}");
        self.recorder.event(severity, reason, &message, annotations);
    }

    fn permits(&self, action: &Action) -> bool {
        match (self.freeze, action) {
            (None, _) => true,
            (Some(freeze), Action::CorrectDrift(_)) => freeze.corrects_drift,
            // Back to what ran before, from what was begun before.
            (Some(_), action) => matches!(action, Action::RollBack(_)),
        }
    }

    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn is_cancelled(&self) -> bool {
        self.ends.cancelled.is_cancelled()
    }
}

fn found(place: Option<&Place>) -> Result<&Place, Failure> {
    place.ok_or_else(|| Failure::new("failed to find the release: nobody said where it is"))
}

/// Writes a record in place of one that a crash left pending.
async fn unlock(storage: &Storage, release: &Release) -> Outcome {
    let written = async {
        let stored = storage.get(&release.name, release.version).await?;
        let labels = stored.map(|stored| stored.labels).unwrap_or_default();
        let record = helm_release::Record {
            release: release.clone(),
            labels,
        };
        storage.update(&record).await
    };
    match written.await {
        Ok(()) => Outcome {
            written: BTreeMap::from([(release.version, release.clone())]),
            result: Ok(()),
        },
        Err(error) => Outcome {
            written: BTreeMap::new(),
            result: Err(error.into()),
        },
    }
}

fn failure(error: &Error) -> Failure {
    let kind = match error.kind() {
        ErrorKind::Cancelled => FailureKind::Cancelled,
        _ if error.to_string().ends_with("is already deleted") => FailureKind::AlreadyUninstalled,
        ErrorKind::NotFound => FailureKind::NotFound,
        ErrorKind::Refused => FailureKind::Refused,
        _ => FailureKind::Failed,
    };
    Failure {
        kind,
        message: error.to_string(),
    }
}

/// The slot of the queue, given back while an action only waits.
struct SlotPace<'a>(&'a Slot);

impl Pace for SlotPace<'_> {
    fn pause(&self) {
        self.0.pause();
    }

    fn resume(&self) -> BoxFuture<'_, ()> {
        self.0.resume().boxed()
    }
}
