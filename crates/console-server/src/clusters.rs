//! Which clusters there are, and who says in each what a caller may do.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use access_review::{Caller, Reviews};
use controller_kit::events::Recorder;
use fleet::picture::Picture;
use fleet::running::Running;
use fleet::watch::Reach;
use kube::Client;

/// Where rights are asked for: in the first cluster, which says who callers are, and in others.
pub struct Clusters {
    home: Arc<str>,
    reviews: Arc<Reviews>,
    hand: Hand,
    others: RwLock<HashMap<Arc<str>, Other>>,
}

/// How something is done in a cluster, and told there.
#[derive(Clone)]
pub struct Hand {
    /// Sends it.
    pub client: Client,
    /// Publishes Events about it.
    pub recorder: Recorder,
}

/// A cluster beside the first.
pub struct Other {
    /// Who says what callers may do there.
    pub reviews: Arc<Reviews>,
    /// How it is watched, and how something is done there.
    pub hand: Hand,
    /// Whether service accounts of the first cluster are the same here.
    pub shares_accounts: bool,
    /// How much of it is watched.
    pub reach: Reach,
}

/// Who a caller is in a cluster, and who says what they may do there.
pub(crate) struct Judge {
    pub reviews: Arc<Reviews>,
    pub caller: Arc<Caller>,
    /// What they may have done is done by it.
    pub hand: Hand,
}

/// Where clusters are put, and what they have.
#[derive(Clone)]
pub struct Shown {
    /// Their objects.
    pub picture: Picture,
    /// Their Pods; None if these are not watched.
    pub running: Option<Running>,
    /// Themselves.
    pub clusters: Arc<Clusters>,
}

impl Shown {
    /// Watches a cluster beside the first, until it is dropped.
    pub async fn watch(&self, name: &Arc<str>, other: Other) {
        let (client, reach) = (other.hand.client.clone(), other.reach.clone());
        self.clusters.set(name, Some(other));
        self.fill(name, client, &reach).await;
    }

    /// Shows nothing of a cluster any more. It must not be watched.
    pub fn forget(&self, name: &Arc<str>) {
        self.clusters.set(name, None);
        self.picture.forget(name);
        self.running.iter().for_each(|running| running.forget(name));
    }

    /// Watches the first cluster, until it is dropped.
    pub(crate) async fn watch_home(&self, reach: &Reach) {
        let client = self.clusters.hand.client.clone();
        self.fill(&self.clusters.home, client, reach).await;
    }

    async fn fill(&self, name: &Arc<str>, client: Client, reach: &Reach) {
        let pods = async {
            if let Some(running) = &self.running {
                fleet::watch::fill_running(running, name, &client, reach).await;
            }
        };
        tokio::join!(fleet::watch::fill(&self.picture, name, &client, reach), pods);
    }
}

impl Clusters {
    /// Only the first one.
    pub(crate) fn new(home: Arc<str>, reviews: Arc<Reviews>, hand: Hand) -> Self {
        Self {
            home,
            reviews,
            hand,
            others: RwLock::default(),
        }
    }

    /// Name of the first one.
    pub(crate) fn home(&self) -> &Arc<str> {
        &self.home
    }

    /// Returns whether it is the first one.
    pub(crate) fn is_home(&self, cluster: &str) -> bool {
        *cluster == *self.home
    }

    /// Returns who decides on a caller's rights in a cluster. None if the caller has no identity there, or the cluster has never
    /// been reached.
    pub(crate) fn judge(&self, cluster: &str, caller: &Arc<Caller>) -> Option<Judge> {
        if self.is_home(cluster) {
            return Some(Judge {
                reviews: self.reviews.clone(),
                caller: caller.clone(),
                hand: self.hand.clone(),
            });
        }
        let others = self.others.read().unwrap_or_else(PoisonError::into_inner);
        let other = others.get(cluster)?;
        let caller = match other.shares_accounts {
            true => caller.clone(),
            false => Arc::new(caller.elsewhere()?),
        };
        Some(Judge {
            reviews: other.reviews.clone(),
            caller,
            hand: other.hand.clone(),
        })
    }

    fn set(&self, cluster: &Arc<str>, other: Option<Other>) {
        let mut others = self.others.write().unwrap_or_else(PoisonError::into_inner);
        match other {
            Some(other) => drop(others.insert(cluster.clone(), other)),
            None => drop(others.remove(cluster)),
        }
    }
}
