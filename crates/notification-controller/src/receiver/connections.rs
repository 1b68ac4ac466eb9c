//! How many connections are open: all together, and those of one address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

use super::limit::network;

/// Slots for connections.
#[derive(Debug)]
pub struct Connections {
    free: Arc<Semaphore>,
    most_of_one: usize,
    open: Open,
}

type Open = Arc<Mutex<HashMap<IpAddr, usize>>>;

/// A slot that is taken until this is dropped.
#[derive(Debug)]
pub struct Slot {
    open: Open,
    address: IpAddr,
    _permit: OwnedSemaphorePermit,
}

impl Connections {
    /// Has so many slots, of which an address may take half.
    pub fn new(most: usize) -> Self {
        Self {
            free: Arc::new(Semaphore::new(most)),
            most_of_one: most.div_ceil(2),
            open: Open::default(),
        }
    }

    /// Waits until a slot is free.
    pub async fn free(&self) -> Result<OwnedSemaphorePermit, AcquireError> {
        Arc::clone(&self.free).acquire_owned().await
    }

    /// Takes a free slot for an address. None if it has too many already.
    pub fn take(&self, permit: OwnedSemaphorePermit, address: IpAddr) -> Option<Slot> {
        let address = network(address);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let count = open.entry(address).or_default();
        if *count >= self.most_of_one {
            return None;
        }
        *count += 1;
        Some(Slot {
            open: Arc::clone(&self.open),
            address,
            _permit: permit,
        })
    }
}

#[cfg(test)]
impl Connections {
    /// How many slots are free.
    pub fn left(&self) -> usize {
        self.free.available_permits()
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = open.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_address_leaves_slots_for_the_others() {
        let connections = Connections::new(4);
        let address = |text: &str| -> IpAddr { text.parse().unwrap() };
        let take = async |text| {
            let permit = connections.free().await.unwrap();
            connections.take(permit, address(text))
        };
        let first = take("192.0.2.1").await.unwrap();
        let second = take("::ffff:192.0.2.1").await.unwrap();
        assert!(take("192.0.2.1").await.is_none());
        let other = take("192.0.2.2").await.unwrap();
        drop(first);
        let third = take("192.0.2.1").await.unwrap();
        drop((second, third, other));
        assert!(connections.open.lock().unwrap().is_empty());
        assert_eq!(connections.left(), 4);
        let only = Connections::new(1);
        let permit = only.free().await.unwrap();
        assert!(only.take(permit, address("192.0.2.1")).is_some());
    }
}
