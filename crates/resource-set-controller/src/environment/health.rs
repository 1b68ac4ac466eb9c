//! The health of environments, waited for in the background.

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
use tokio::sync::Semaphore;
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

/// Waits for health that go on or have ended, by policy and pull request. All of it may be lost.
pub(crate) struct Looks {
    known: Mutex<HashMap<ObjectKey, HashMap<Of, Known>>>,
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
    fn lock(&self) -> MutexGuard<'_, HashMap<ObjectKey, HashMap<Of, Known>>> {
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
            known.retain(|of, _| kept.contains(of));
        }
    }

    /// Returns what is known of an environment as it is now; None if it is not known yet. What is not known, or was found out longer
    /// ago than `again`, is looked at.
    pub(super) fn verdict(
        &self,
        policy: &ObjectKey,
        environment: &RequestEnvironment,
        look: Look,
        again: Duration,
        context: &Arc<Context>,
    ) -> Option<Found> {
        let mut hasher = DefaultHasher::new();
        (&look.made.commit, look.made.digest, look.timeout).hash(&mut hasher);
        let digest = hasher.finish();
        let mut all = self.lock();
        let known = all.entry(policy.clone()).or_default();
        let known = known.entry(of(environment)).or_insert_with(|| Known {
            digest,
            ended: None,
            wait: None,
        });
        if known.digest != digest {
            (known.digest, known.ended, known.wait) = (digest, None, None);
        }
        let is_due = known.ended.as_ref().is_none_or(|(at, _)| at.elapsed() >= again);
        if is_due && known.wait.is_none() {
            let token = context.shutdown.child_token();
            known.wait = Some(token.clone().drop_guard());
            let (policy, of, context) = (policy.clone(), of(environment), Arc::clone(context));
            tokio::spawn(async move {
                let verdict = tokio::select! {
                    verdict = look.carry_out(&context.environments.looks.reads) => verdict,
                    () = token.cancelled() => return,
                };
                context
                    .environments
                    .looks
                    .ended(&policy, &of, &token, (digest, verdict));
                context.environments.queue.add(policy);
            });
        }
        known.ended.as_ref().map(|(_, verdict)| verdict.clone())
    }

    fn ended(&self, policy: &ObjectKey, of: &Of, token: &CancellationToken, (digest, verdict): (u64, Found)) {
        let mut all = self.lock();
        let known = all.get_mut(policy).and_then(|known| known.get_mut(of));
        // Another wait may have taken its place.
        if let Some(known) = known.filter(|known| known.digest == digest && !token.is_cancelled()) {
            (known.ended, known.wait) = (Some((Instant::now(), verdict)), None);
        }
    }
}

fn of(environment: &RequestEnvironment) -> Of {
    (environment.provider.clone(), environment.number)
}

impl Look {
    /// Waits for what others are made of, then for Kustomizations that apply the commit: until they have seen it, they are as healthy as
    /// the commit before was. Then all is waited for.
    async fn carry_out(self, reads: &Semaphore) -> Found {
        let deadline = Instant::now() + self.timeout;
        self.wait(deadline, reads, |id| !self.made.followers.contains(id))
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
        self.wait(deadline, reads, |_| true).await
    }

    async fn wait(&self, deadline: Instant, reads: &Semaphore, counts: impl Fn(&ObjectId) -> bool) -> Found {
        let mut objects = Vec::new();
        // It is closed by no one.
        let turn = reads.acquire().await;
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
