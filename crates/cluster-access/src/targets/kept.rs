//! Targets and clusters that are kept while they are used, up to a bound.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use artifact::Digest;
use error_chain::chain;
use kube::Client;
use kube_apply::Engine;

use super::bearer::Tokens;
use super::target::{Place, Target};

/// Targets that are kept. One more ends the one that was not used for longest.
const KEPT: usize = 256;
/// For how long the last answer of a remote cluster, good or bad, is taken for its answer now.
const FRESH: Duration = Duration::from_secs(10);
/// How long a remote cluster may take to answer.
const ANSWER: Duration = Duration::from_secs(5);

#[derive(Default)]
pub(super) struct Kept {
    pub(super) targets: HashMap<Place, (Arc<Target>, Instant)>,
    clusters: HashMap<Digest, Cluster>,
}

/// A remote cluster as the controller sees it.
#[derive(Clone)]
pub(super) struct Cluster {
    pub(super) server: String,
    pub(super) client: Client,
    pub(super) engine: Engine,
    /// What it is shown; None if that is in the kubeconfig.
    pub(super) tokens: Option<Arc<Tokens>>,
    /// When it answered last, and what came of it.
    answered: Option<(Instant, Result<(), String>)>,
}

impl Cluster {
    pub(super) fn new(server: String, client: Client, engine: Engine, tokens: Option<Arc<Tokens>>) -> Self {
        Self {
            server,
            client,
            engine,
            tokens,
            answered: None,
        }
    }

    /// Its last answer, if that is taken for its answer now.
    pub(super) fn fresh_answer(&self) -> Option<Result<(), String>> {
        let fresh = self.answered.as_ref().filter(|(at, _)| at.elapsed() < FRESH);
        fresh.map(|(_, answer)| answer.clone())
    }

    /// Asks whether it is there.
    pub(super) async fn ask(&self) -> Result<(), String> {
        match tokio::time::timeout(ANSWER, self.client.apiserver_version()).await {
            Ok(Ok(_)) => Ok(()),
            // It answers, even if it does not tell its version to everybody.
            Ok(Err(kube::Error::Api(status))) if status.code == 403 => Ok(()),
            Ok(Err(error)) => Err(chain(&error)),
            Err(_) => Err(format!("no answer within {} s", ANSWER.as_secs())),
        }
    }
}

impl Kept {
    /// A cluster that is known. One that did not answer is forgotten, so that it is looked for anew: it may have moved.
    pub(super) fn cluster(&mut self, digest: &Digest) -> Option<Cluster> {
        let cluster = self.clusters.get(digest)?;
        let is_lost = matches!(cluster.answered, Some((_, Err(_)))) && cluster.fresh_answer().is_none();
        if is_lost && !self.targets.keys().any(|place| place.remote == Some(*digest)) {
            self.clusters.remove(digest);
            return None;
        }
        Some(cluster.clone())
    }

    /// Keeps a cluster, unless someone was quicker: one engine per cluster.
    pub(super) fn keep_cluster(&mut self, digest: Digest, cluster: Cluster) -> Cluster {
        if self.clusters.len() >= KEPT {
            self.drop_unused_clusters();
        }
        self.clusters.entry(digest).or_insert(cluster).clone()
    }

    pub(super) fn answered(&mut self, digest: &Digest, answer: Result<(), String>) {
        if let Some(cluster) = self.clusters.get_mut(digest) {
            cluster.answered = Some((Instant::now(), answer));
        }
    }

    pub(super) fn engines(&self) -> impl Iterator<Item = &Engine> {
        self.clusters.values().map(|cluster| &cluster.engine)
    }

    pub(super) fn target(&mut self, place: &Place) -> Option<Arc<Target>> {
        let (target, used) = self.targets.get_mut(place)?;
        *used = Instant::now();
        Some(Arc::clone(target))
    }

    pub(super) fn keep(&mut self, target: &Arc<Target>) {
        if self.targets.len() >= KEPT {
            let oldest = self.targets.iter().min_by_key(|(_, (_, used))| *used);
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                self.targets.remove(&oldest);
            }
        }
        let kept = (Arc::clone(target), Instant::now());
        self.targets.insert(target.place.clone(), kept);
        self.drop_unused_clusters();
    }

    /// Drops clusters whose kubeconfig no one has any more, as after the rotation of its token.
    fn drop_unused_clusters(&mut self) {
        let used: Vec<_> = self.targets.keys().filter_map(|key| key.remote).collect();
        self.clusters.retain(|digest, _| used.contains(digest));
    }
}
