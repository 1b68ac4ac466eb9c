//! The tags of images that a call reports as pushed, so that a registry need not be asked for all tags.
//!
//! A hint only: what is not understood has no tags, and whoever gets a tag asks the registry for it.

use serde::Deserialize;

/// Tags of one call; with more, all tags are better listed.
const MAX_TAGS: usize = 10;
/// Bytes of a tag, by the specification of registries.
const MAX_TAG: usize = 128;

/// The parts of the messages of all services. Their names differ, so one shape reads them all.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Message {
    /// Docker Hub.
    push_data: Option<Tagged>,
    /// Quay.
    updated_tags: Vec<String>,
    /// Azure.
    target: Option<Tagged>,
    /// Google, as it lies in the envelope: the whole name of the image.
    tag: Option<String>,
    /// Harbor.
    event_data: Option<Resources>,
    /// The distribution registry, and what is built upon it.
    events: Vec<Event>,
    /// GitHub.
    registry_package: Option<Package>,
    action: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Tagged {
    tag: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Resources {
    resources: Vec<Tagged>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Event {
    action: String,
    target: Option<Tagged>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Package {
    package_version: Option<Version>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Version {
    container_metadata: Option<Container>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Container {
    tag: Option<Name>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Name {
    name: Option<String>,
}

/// Reads the tags of a message: none if it has more than a few, or is about something else, such as a deletion.
pub(crate) fn tags(message: &[u8]) -> Vec<String> {
    let Ok(message) = serde_json::from_slice::<Message>(message) else {
        return Vec::new();
    };
    // A tag that is deleted is found by listing all.
    let is_deletion = |action: &str| action.to_ascii_lowercase().contains("delete");
    if message.action.as_deref().is_some_and(is_deletion)
        || message.events.iter().any(|event| is_deletion(&event.action))
    {
        return Vec::new();
    }
    let single = [message.push_data, message.target].into_iter().flatten();
    let harbor = message.event_data.into_iter().flat_map(|data| data.resources);
    let events = message.events.into_iter().filter_map(|event| event.target);
    let tagged = single.chain(harbor).chain(events).filter_map(|one| one.tag);
    let google = message.tag.iter().filter_map(|image| image.rsplit_once(':'));
    let google = google.map(|(_, tag)| tag.to_owned());
    let github = message
        .registry_package
        .and_then(|package| package.package_version?.container_metadata?.tag?.name);
    let mut tags: Vec<String> = tagged
        .chain(message.updated_tags)
        .chain(google)
        .chain(github)
        .filter(|tag| is_tag(tag))
        .collect();
    tags.sort_unstable();
    tags.dedup();
    if tags.len() > MAX_TAGS {
        tags.clear();
    }
    tags
}

fn is_tag(text: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.len() <= MAX_TAG
        && text.starts_with(is_word)
        && text.chars().all(|c| is_word(c) || matches!(c, '.' | '-'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_messages_of_registries_name_their_tags() {
        for (message, expected) in [
            (
                json!({"push_data": {"tag": "1.0"}, "repository": {"repo_name": "a/b"}}),
                vec!["1.0"],
            ),
            (
                json!({"docker_url": "quay.io/a/b", "updated_tags": ["v2", "latest"]}),
                vec!["latest", "v2"],
            ),
            (
                json!({"action": "push", "target": {"repository": "a", "tag": "x"}}),
                vec!["x"],
            ),
            (
                json!({"action": "INSERT", "digest": "gcr.io/p/a@sha256:1", "tag": "gcr.io/p/a:1.2"}),
                vec!["1.2"],
            ),
            (
                json!({"type": "PUSH_ARTIFACT", "event_data": {"resources": [{"tag": "a"}, {"digest": "d"}]}}),
                vec!["a"],
            ),
            (
                json!({"events": [{"action": "push", "target": {"tag": "a"}}, {"action": "push", "target": {}}]}),
                vec!["a"],
            ),
            (
                json!({"action": "published", "registry_package": {"package_version": {"container_metadata": {"tag": {"name": "v1"}}}}}),
                vec!["v1"],
            ),
            (json!({"ref": "refs/heads/main"}), vec![]),
            (
                json!({"updated_tags": ["a b", "../x", "", "-a", "x".repeat(129)]}),
                vec![],
            ),
            (json!({"action": "DELETE", "tag": "gcr.io/p/a:1.2"}), vec![]),
            (
                json!({"events": [{"action": "delete", "target": {"tag": "a"}}]}),
                vec![],
            ),
            (
                json!({"updated_tags": (0..11).map(|n| n.to_string()).collect::<Vec<_>>()}),
                vec![],
            ),
            (json!([]), vec![]),
        ] {
            assert_eq!(tags(message.to_string().as_bytes()), expected, "{message}");
        }
        assert!(tags(b"not json").is_empty());
    }

    proptest! {
        #[test]
        fn any_body_has_a_few_tags_at_most(body in "\\{(\"(tag|target|events|updated_tags)\":(\"[a-z:]{0,9}\"|\\[\\]|\\{\\}|null),?){0,3}\\}") {
            prop_assert!(tags(body.as_bytes()).len() <= MAX_TAGS);
        }
    }
}
