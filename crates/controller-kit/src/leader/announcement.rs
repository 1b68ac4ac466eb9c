//! What a candidate says of itself: where it serves, and whether it is fit to lead.

use std::net::SocketAddr;

use tokio::sync::watch;

/// Where a leader serves, as its Lease says.
#[derive(Debug, Default)]
pub struct Announcement {
    /// Where this process is reached once it leads.
    pub own: Vec<SocketAddr>,
    /// Where the process is reached that leads now; none if it does not say so.
    pub leader: watch::Sender<Vec<SocketAddr>>,
    /// Whether this process has what it needs to lead.
    pub candidacy: Candidacy,
}

/// Whether a process has what it needs to lead. One that does not have it leads only if no other does for a while.
#[derive(Debug, Clone)]
pub struct Candidacy(watch::Sender<bool>);

impl Default for Candidacy {
    fn default() -> Self {
        Self(watch::Sender::new(true))
    }
}

impl Candidacy {
    /// Says whether this process has what it needs.
    pub fn set(&self, is_fit: bool) {
        self.0.send_replace(is_fit);
    }

    pub(super) fn is_fit(&self) -> bool {
        *self.0.borrow()
    }

    /// Returns when it has.
    pub(super) async fn until_fit(&self) {
        // The sender is this one.
        self.0.subscribe().wait_for(|is_fit| *is_fit).await.ok();
    }
}
