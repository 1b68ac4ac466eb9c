//! What a candidate says of itself: where it serves, and whether it is fit to lead.

use std::net::SocketAddr;

use tokio::sync::watch;

/// The process that leads, as its Lease says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Leader {
    /// None is known.
    #[default]
    Unknown,
    /// It does not say where it is reached: another program, or one that has nothing to serve to others.
    Silent,
    /// Where it is reached.
    At(Vec<SocketAddr>),
}

impl Leader {
    /// Where it is reached, if that is known.
    pub fn addresses(&self) -> &[SocketAddr] {
        match self {
            Self::At(addresses) => addresses,
            Self::Unknown | Self::Silent => &[],
        }
    }
}

/// What a candidate says of itself, and learns of the leader.
#[derive(Debug, Default)]
pub struct Announcement {
    /// Where this process is reached once it leads.
    pub own: Vec<SocketAddr>,
    /// The process that leads now.
    pub leader: watch::Sender<Leader>,
    /// Whether this process has what it needs to lead.
    pub candidacy: Candidacy,
}

/// Whether a process has what it needs to lead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fitness {
    /// It has.
    Fit,
    /// It has not, and leads as soon as the leader has ended: there is no third that could have it.
    Successor,
    /// It has not, and another may: it leads only if no other process does for a while.
    Behind,
}

/// Where a process says whether it has what it needs to lead.
#[derive(Debug, Clone)]
pub struct Candidacy(watch::Sender<Fitness>);

impl Default for Candidacy {
    fn default() -> Self {
        Self(watch::Sender::new(Fitness::Fit))
    }
}

impl Candidacy {
    /// Says whether this process has what it needs.
    pub fn set(&self, fitness: Fitness) {
        self.0.send_replace(fitness);
    }

    pub(super) fn fitness(&self) -> Fitness {
        *self.0.borrow()
    }

    /// Returns when it has.
    pub(super) async fn until_fit(&self) {
        let mut said = self.0.subscribe();
        // The sender is this one.
        said.wait_for(|fitness| *fitness == Fitness::Fit).await.ok();
    }
}
