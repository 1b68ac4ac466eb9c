//! What is waited for in the background: the health of environments, and their tests.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use api::delivery::RequestEnvironment;
use cluster_access::targets::Target;
use controller_kit::ObjectKey;
use kube_health::verdict::{self, Verdict};
use kube_health::{Checks, Status, WaitRequest};
use manifest::ObjectId;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::context::{Context, Made};
use crate::health;

/// Environments of which objects are read at once.
const READS: usize = 16;
/// When a Kustomization that has not seen a commit yet is looked at again.
const PAUSE: Duration = Duration::from_secs(1);

/// Whether an environment is healthy, or why it is not.
pub(super) type Found = Result<(), String>;

/// Provider and number of a pull request.
type Of = (String, u64);

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum What {
    Health,
    Test,
}

/// What is known, by policy.
type All = HashMap<ObjectKey, HashMap<(Of, What), Known>>;

/// Waits that go on or have ended, by policy and pull request. All of it may be lost.
pub(crate) struct Looks {
    known: Mutex<All>,
    /// Bounds what is read at once: a tenant may have hundreds of environments.
    reads: Semaphore,
}

impl Default for Looks {
    fn default() -> Self {
        Self {
            known: Mutex::default(),
            reads: Semaphore::new(READS),
        }
    }
}

struct Known {
    /// Of what is looked at.
    digest: u64,
    ended: Option<(Instant, Found)>,
    /// Ends the wait that goes on.
    wait: Option<DropGuard>,
}

/// What is to be looked at.
pub(super) struct Look {
    pub(super) target: Arc<Target>,
    pub(super) made: Arc<Made>,
    pub(super) timeout: Duration,
}

impl Looks {
    fn lock(&self) -> MutexGuard<'_, All> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets a policy. Its waits end.
    pub(super) fn forget(&self, policy: &ObjectKey) {
        self.lock().remove(policy);
    }

    /// Forgets all but these environments of a policy.
    pub(super) fn keep<'a>(
        &self,
        policy: &ObjectKey,
        environments: impl Iterator<Item = &'a RequestEnvironment>,
    ) {
        let kept: HashSet<Of> = environments.map(of).collect();
        if let Some(known) = self.lock().get_mut(policy) {
            known.retain(|(of, _), _| kept.contains(of));
        }
    }

    /// Returns what came of a wait; None if it is not known yet. `work` is begun if what it is about, by its digest, was not waited for, or
    /// was longer ago than `again`.
    pub(super) fn verdict<F>(
        &self,
        policy: &ObjectKey,
        (environment, what): (&RequestEnvironment, What),
        (digest, again): (u64, Option<Duration>),
        context: &Arc<Context>,
        work: impl FnOnce() -> F,
    ) -> Option<Found>
    where
        F: Future<Output = Found> + Send + 'static,
    {
        let key = (of(environment), what);
        let mut all = self.lock();
        let known = all.entry(policy.clone()).or_default();
        let known = known.entry(key.clone()).or_insert_with(|| Known {
            digest,
            ended: None,
            wait: None,
        });
        if known.digest != digest {
            (known.digest, known.ended, known.wait) = (digest, None, None);
        }
        let is_due = match &known.ended {
            None => true,
            Some((at, _)) => again.is_some_and(|again| at.elapsed() >= again),
        };
        if is_due && known.wait.is_none() {
            let token = context.shutdown.child_token();
            known.wait = Some(token.clone().drop_guard());
            let (policy, context, work) = (policy.clone(), Arc::clone(context), work());
            tokio::spawn(async move {
                let found = tokio::select! {
                    found = work => found,
                    () = token.cancelled() => return,
                };
                context
                    .environments
                    .looks
                    .ended(&policy, &key, &token, (digest, found));
                context.environments.queue.add(policy);
            });
        }
        known.ended.as_ref().map(|(_, found)| found.clone())
    }

    /// Waits until it is the turn of another environment to have its objects read.
    async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        // It is closed by no one.
        self.reads.acquire().await.ok()
    }

    fn ended(
        &self,
        policy: &ObjectKey,
        key: &(Of, What),
        token: &CancellationToken,
        (digest, found): (u64, Found),
    ) {
        let mut all = self.lock();
        let known = all.get_mut(policy).and_then(|known| known.get_mut(key));
        // Another wait may have taken its place.
        if let Some(known) = known.filter(|known| known.digest == digest && !token.is_cancelled()) {
            (known.ended, known.wait) = (Some((Instant::now(), found)), None);
        }
    }
}

fn of(environment: &RequestEnvironment) -> Of {
    (environment.provider.clone(), environment.number)
}

impl Look {
    /// Of what is looked at.
    pub(super) fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (&self.made.commit, self.made.digest, self.timeout).hash(&mut hasher);
        hasher.finish()
    }

    /// Waits for what others are made of, then for Kustomizations that apply the commit: until they have seen it, they are as healthy as
    /// the commit before was. Then all is waited for.
    pub(super) async fn carry_out(self, looks: &Looks) -> Found {
        let deadline = Instant::now() + self.timeout;
        self.wait(deadline, looks, |id| !self.made.followers.contains(id))
            .await?;
        while let Some(behind) = self.behind().await {
            let commit = &self.made.commit;
            let has_failed = behind.verdict.status == Status::Failed && behind.has_tried;
            if has_failed || Instant::now() + PAUSE > deadline {
                let message = &behind.verdict.message;
                return Err(format!(
                    "{} has not applied commit {commit}: {message}",
                    behind.id
                ));
            }
            tokio::time::sleep(PAUSE).await;
        }
        self.wait(deadline, looks, |_| true).await
    }

    async fn wait(&self, deadline: Instant, looks: &Looks, counts: impl Fn(&ObjectId) -> bool) -> Found {
        let mut objects = Vec::new();
        let turn = looks.turn().await;
        for (id, version) in self.made.objects.iter().filter(|(id, _)| counts(id)) {
            let live = self.target.live(id, version).await;
            objects.push(health::target(id.clone(), version.clone(), live));
        }
        drop(turn);
        let request = WaitRequest {
            jobs_with_ttl: health::jobs_with_ttl(&objects),
            objects,
            timeout: deadline.saturating_duration_since(Instant::now()),
            fail_fast: true,
            checks: Checks::default(),
        };
        let outcome = self.target.hub.wait(request).await;
        outcome.report().map_or(Ok(()), |report| Err(report.to_string()))
    }

    /// Finds a Kustomization of the commit that has not applied it.
    async fn behind(&self) -> Option<Behind<'_>> {
        for (id, version) in &self.made.objects {
            if !self.made.followers.contains(id) {
                continue;
            }
            let live = self.target.live(id, version).await.unwrap_or_default();
            let is_at = |field: &str| {
                let revision = live["status"][field].as_str();
                revision.is_some_and(|revision| revision.ends_with(&self.made.commit))
            };
            if !is_at("lastAppliedRevision") {
                return Some(Behind {
                    id,
                    has_tried: is_at("lastAttemptedRevision"),
                    verdict: verdict::compute(&live),
                });
            }
        }
        None
    }
}

/// A Kustomization that has not applied the commit.
struct Behind<'a> {
    id: &'a ObjectId,
    /// Whether what is said of it is about the commit.
    has_tried: bool,
    verdict: Verdict,
}
