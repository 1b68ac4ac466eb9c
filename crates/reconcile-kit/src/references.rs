//! Who refers to what, so that a change of one object is no question to all the others: with 50,000 of them that would take
//! milliseconds for each change.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use controller_kit::ObjectKey;

/// What an object refers to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// Another object of the same kind, which it depends on.
    Object(ObjectKey),
    /// A source of this kind.
    Source(&'static str, ObjectKey),
}

/// The references of all objects of a kind, as they were when they were noted.
#[derive(Debug, Default)]
pub struct References(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    targets: HashMap<ObjectKey, Vec<Target>>,
    users: HashMap<Target, HashSet<ObjectKey>>,
}

impl References {
    /// Notes what an object refers to now; nothing once it is gone.
    pub fn note(&self, object: &ObjectKey, targets: Vec<Target>) {
        let mut known = self.lock();
        if known.targets.get(object).map_or(&[][..], Vec::as_slice) == targets {
            return;
        }
        for target in known.targets.remove(object).unwrap_or_default() {
            if let Some(users) = known.users.get_mut(&target) {
                users.remove(object);
                if users.is_empty() {
                    known.users.remove(&target);
                }
            }
        }
        for target in &targets {
            let users = known.users.entry(target.clone()).or_default();
            users.insert(object.clone());
        }
        if !targets.is_empty() {
            known.targets.insert(object.clone(), targets);
        }
    }

    /// The objects that refer to this.
    pub fn users(&self, target: &Target) -> Vec<ObjectKey> {
        let known = self.lock();
        let users = known.users.get(target);
        users
            .map(|users| users.iter().cloned().collect())
            .unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> ObjectKey {
        ObjectKey::new("apps", name)
    }

    #[test]
    fn users_are_those_that_refer_to_it_now() {
        let references = References::default();
        let (base, source) = (
            Target::Object(key("base")),
            Target::Source("GitRepository", key("base")),
        );
        references.note(&key("a"), vec![base.clone(), source.clone()]);
        references.note(&key("b"), vec![source.clone(), source.clone()]);
        let users = |target| {
            let mut users = references.users(target);
            users.sort();
            users
        };
        assert_eq!(users(&base), [key("a")]);
        assert_eq!(users(&source), [key("a"), key("b")]);
        references.note(&key("a"), vec![source.clone()]);
        assert_eq!(users(&base), []);
        references.note(&key("a"), Vec::new());
        references.note(&key("b"), Vec::new());
        assert_eq!(users(&source), []);
        let known = references.lock();
        assert!(known.targets.is_empty() && known.users.is_empty());
    }
}
