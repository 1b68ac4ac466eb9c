//! Paths of single values: what their text means, and where Flux's maps are the same on both sides of a merge. Pure.

use serde_json::{Map, Value};

/// A text in which nothing has a meaning to `--set-string`.
pub(super) fn escaped(value: &str) -> String {
    let mut escaped = String::with_capacity(value.len());
    for character in value.chars() {
        if matches!(character, '\\' | ',' | '[' | ']' | '{' | '}') {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

/// Returns whether the value that is put at a path of the merged values is in those of the spec too.
///
/// A merge makes a new map where both sides have one, and takes the spec's own where only it does: what is put into that is
/// in both. Lists are always the spec's own, as long as they need not grow.
pub(super) fn is_shared(path: &str, composed: &Map<String, Value>, inline: &Map<String, Value>) -> bool {
    let (mut below, mut above) = (Some(composed), inline);
    let mut segments = segments(path).into_iter().peekable();
    while let Some(segment) = segments.next() {
        let mine = above.get(&segment.key);
        if let Some(index) = segment.index {
            return matches!(mine, Some(Value::Array(items)) if index < items.len());
        }
        let (Some(Value::Object(mine)), true) = (mine, segments.peek().is_some()) else {
            return false;
        };
        match below.and_then(|below| below.get(&segment.key)) {
            Some(Value::Object(theirs)) => (below, above) = (Some(theirs), mine),
            _ => return true,
        }
    }
    false
}

struct Segment {
    key: String,
    /// The first index behind the key.
    index: Option<usize>,
}

fn segments(path: &str) -> Vec<Segment> {
    let mut segments = Vec::new();
    let mut key = String::new();
    let mut characters = path.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => key.extend(characters.next()),
            '.' => segments.push(Segment {
                key: std::mem::take(&mut key),
                index: None,
            }),
            '[' => {
                let digits: String = characters.by_ref().take_while(|c| *c != ']').collect();
                let index = digits.parse().ok();
                // What is behind the first index is within the list.
                segments.push(Segment { key, index });
                return segments;
            }
            other => key.push(other),
        }
    }
    segments.push(Segment { key, index: None });
    segments
}
