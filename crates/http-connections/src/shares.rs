//! How much each address has of something: connections, or requests that are under way.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What there is, by the address that it comes from.
#[derive(Debug, Clone)]
pub struct Shares {
    most: usize,
    taken: Arc<Mutex<HashMap<IpAddr, usize>>>,
}

/// One of them, until it is dropped.
#[derive(Debug)]
pub struct Share {
    shares: Shares,
    of: IpAddr,
}

impl Shares {
    /// So many for each address.
    pub fn new(most: usize) -> Self {
        Self {
            most,
            taken: Arc::default(),
        }
    }

    /// None if the address has all that it may have.
    pub fn take(&self, of: IpAddr) -> Option<Share> {
        let mut taken = self.lock();
        let own = taken.get(&of).copied().unwrap_or_default();
        if own >= self.most {
            return None;
        }
        taken.insert(of, own + 1);
        let shares = self.clone();
        Some(Share { shares, of })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut taken = self.shares.lock();
        match taken.get(&self.of).copied() {
            Some(more) if more > 1 => _ = taken.insert(self.of, more - 1),
            _ => _ = taken.remove(&self.of),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_over_is_forgotten() {
        let shares = Shares::new(2);
        let of = |last| IpAddr::from([127, 0, 0, last]);
        let taken: Vec<_> = (0..5).filter_map(|_| shares.take(of(1))).collect();
        let other = shares.take(of(2));
        assert_eq!((taken.len(), other.is_some()), (2, true));
        drop((taken, other));
        assert!(shares.lock().is_empty() && shares.take(of(1)).is_some());
    }
}
