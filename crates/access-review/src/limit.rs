//! How much one caller may have running at once, so that none of them takes the room of the others.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

/// Counts what is running for each caller. A clone counts with it.
#[derive(Debug, Clone)]
pub struct Limiter {
    /// None: no limit.
    most: Option<usize>,
    running: Arc<Mutex<HashMap<String, usize>>>,
}

/// One thing that is running; dropping it says that it ended.
#[derive(Debug)]
pub struct Permit {
    caller: String,
    running: Arc<Mutex<HashMap<String, usize>>>,
}

impl Limiter {
    /// Lets each caller have this many things running; 0 means any number.
    pub fn new(most: usize) -> Self {
        Self {
            most: Some(most).filter(|most| *most > 0),
            running: Arc::default(),
        }
    }

    /// The limit, for messages.
    pub fn most(&self) -> usize {
        self.most.unwrap_or(usize::MAX)
    }

    /// Counts one more, or gives None if the caller has as many as it may.
    pub fn begin(&self, caller: &str) -> Option<Permit> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let count = running.entry(caller.to_owned()).or_default();
        if self.most.is_some_and(|most| *count >= most) {
            return None;
        }
        *count += 1;
        Some(Permit {
            caller: caller.to_owned(),
            running: self.running.clone(),
        })
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = running.get_mut(&self.caller) {
            *count -= 1;
            // Callers come and go: only those with something running are kept.
            if *count == 0 {
                running.remove(&self.caller);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_caller_has_its_own_count_and_nothing_is_kept_of_those_who_left() {
        let limiter = Limiter::new(2);
        let first = limiter.begin("a").unwrap();
        let _second = limiter.begin("a").unwrap();
        assert!(limiter.begin("a").is_none());
        let other = limiter.begin("b").unwrap();
        drop((first, other));
        assert!(limiter.begin("a").is_some());
        assert_eq!(limiter.running.lock().unwrap().len(), 1);
        let unlimited = Limiter::new(0);
        let all: Vec<_> = (0..1000).map(|_| unlimited.begin("a").unwrap()).collect();
        assert_eq!(all.len(), 1000);
    }
}
