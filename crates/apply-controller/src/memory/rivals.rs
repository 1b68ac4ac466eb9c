//! Owners that apply the same objects, and how Ready names them.

use std::collections::BTreeMap;

use controller_kit::ObjectKey;
use manifest::ObjectId;

use reconcile_kit::fights;

/// So many objects are named; the rest are counted.
const NAMED: usize = 3;

/// How it begins.
const SAID: &str = "; applied by others, too: ";

/// Objects that others apply, too.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rivals {
    /// Who else applies each object.
    pub objects: BTreeMap<ObjectId, ObjectKey>,
    /// True if the status still has to name them.
    pub untold: bool,
}

impl Rivals {
    /// Addition to the message of Ready; None without rivals.
    pub fn ready_suffix(&self) -> Option<String> {
        let named = self.objects.iter().take(NAMED);
        let named: Vec<String> = named
            .map(|(id, other)| format!("{id} by Kustomization/{other}"))
            .collect();
        let rest = self.objects.len().saturating_sub(NAMED);
        let rest = if rest == 0 {
            String::new()
        } else {
            format!(" and {rest} more")
        };
        (!named.is_empty()).then(|| format!("{SAID}{}{rest}", named.join(", ")))
    }
}

/// A message without what an earlier run said of rivals and of others.
pub fn without_rivals(message: &str) -> &str {
    let begins = [SAID, fights::SAID]
        .into_iter()
        .filter_map(|said| message.find(said));
    begins.min().map_or(message, |at| &message[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rivals_are_named_after_what_is_said_anyway() {
        let mut rivals = Rivals::default();
        assert_eq!(rivals.ready_suffix(), None);
        for number in 0..5 {
            let id = ObjectId {
                group: String::new(),
                kind: "ConfigMap".into(),
                namespace: "ns".into(),
                name: format!("m{number}"),
            };
            rivals.objects.insert(id, ObjectKey::new("ns", "other"));
        }
        let told = rivals.ready_suffix().unwrap();
        assert!(
            told.starts_with("; applied by others, too: ConfigMap/ns/m0 by Kustomization/ns/other, "),
            "{told}"
        );
        assert!(
            told.ends_with("ConfigMap/ns/m2 by Kustomization/ns/other and 2 more"),
            "{told}"
        );
        assert_eq!(
            without_rivals(&format!("Applied revision: r{told}")),
            "Applied revision: r"
        );
        assert_eq!(without_rivals("Applied revision: r"), "Applied revision: r");
    }
}
