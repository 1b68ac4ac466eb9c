//! Access to a source from other namespaces: the annotation `windlass.dev/access-from` (ADR 8).
//!
//! Pure. It narrows and never widens: a source without it may be referred to as the flags say, and what the flags refuse
//! stays refused.

/// The annotation of a source.
pub const ANNOTATION: &str = "windlass.dev/access-from";
/// Longer values are no list that someone wrote.
const MAX_LENGTH: usize = 16 * 1024;

/// A reference that the source's owner does not want.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// The namespace is not listed.
    #[error("the annotation {ANNOTATION} of the source does not list the namespace '{namespace}'")]
    NotListed {
        /// Of the object that refers to the source.
        namespace: String,
    },
    /// A rule of the cluster forbids it.
    #[error("{0}")]
    Forbidden(String),
    /// The list cannot be read, so no one else may refer to the source.
    #[error(
        "the annotation {ANNOTATION} of the source lists {entry:?}, which is neither a namespace, nor a prefix of namespaces \
         that ends in '*'"
    )]
    Malformed {
        /// The first entry that is wrong, shortened.
        entry: String,
    },
}

/// Returns whether an object in the namespace `from` may refer to a source in `namespace` that has this annotation.
///
/// The value is a list of namespaces, separated by commas: names, prefixes that end in `*`, or `*` for all. Empty means
/// no one else. The source's own namespace needs no permission.
///
/// # Errors
/// When it may not.
///
/// # Examples
/// ```
/// use controller_kit::access_from::check;
///
/// assert!(check(None, "team-a", "sources").is_ok());
/// assert!(check(Some("team-*, ops"), "team-a", "sources").is_ok());
/// assert!(check(Some("ops"), "team-a", "sources").is_err());
/// ```
pub fn check(annotation: Option<&str>, from: &str, namespace: &str) -> Result<(), Denied> {
    let Some(list) = annotation.filter(|_| from != namespace) else {
        return Ok(());
    };
    if list.len() > MAX_LENGTH {
        return Err(malformed(list));
    }
    let entries = || list.split(',').map(str::trim).filter(|entry| !entry.is_empty());
    // First, so that a mistake does not depend on who asks.
    if let Some(entry) = entries().find(|entry| !is_entry(entry)) {
        return Err(malformed(entry));
    }
    let is_listed = entries().any(|entry| match entry.strip_suffix('*') {
        Some(prefix) => from.starts_with(prefix),
        None => entry == from,
    });
    if is_listed {
        return Ok(());
    }
    Err(Denied::NotListed {
        namespace: from.to_owned(),
    })
}

/// A name as namespaces have them, or the beginning of one and a `*`.
fn is_entry(entry: &str) -> bool {
    let name = entry.strip_suffix('*').unwrap_or(entry);
    let is_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    name.len() <= 63 && name.bytes().all(is_name) && !name.starts_with('-')
}

fn malformed(entry: &str) -> Denied {
    Denied::Malformed {
        entry: entry.chars().take(80).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_the_annotation_the_flags_alone_decide() {
        assert_eq!(check(None, "team-a", "sources"), Ok(()));
    }

    #[test]
    fn names_prefixes_and_all_are_let_in_and_others_are_not() {
        for (list, allowed, denied) in [
            ("team-a", &["team-a"][..], &["team-b", "team", "team-a-x", ""][..]),
            (
                "team-a,team-b , ops",
                &["team-a", "team-b", "ops"],
                &["op", "team-c"],
            ),
            ("team-*", &["team-a", "team-"], &["team", "a-team-b"]),
            ("*", &["team-a", "kube-system"], &[]),
            ("", &[], &["team-a"]),
            (" , ", &[], &["team-a", ""]),
        ] {
            for from in allowed {
                assert_eq!(check(Some(list), from, "sources"), Ok(()), "{list} {from}");
            }
            for from in denied {
                let namespace = (*from).to_owned();
                assert_eq!(
                    check(Some(list), from, "sources"),
                    Err(Denied::NotListed { namespace }),
                    "{list}"
                );
            }
            assert_eq!(
                check(Some(list), "sources", "sources"),
                Ok(()),
                "its own namespace"
            );
        }
    }

    #[test]
    fn what_cannot_be_read_lets_nobody_else_in() {
        for list in [
            "Team-A",
            "team-a, *-b",
            "te*am",
            "{\"namespaceSelectors\":[]}",
            "a;b",
            "-a",
            "a\u{0}",
        ] {
            let denied = check(Some(list), "team-a", "sources").unwrap_err();
            assert!(matches!(denied, Denied::Malformed { .. }), "{list}");
            assert_eq!(check(Some(list), "sources", "sources"), Ok(()));
        }
        let long = "a,".repeat(MAX_LENGTH);
        assert!(check(Some(&long), "a", "sources").unwrap_err().to_string().len() < 300);
    }
}
