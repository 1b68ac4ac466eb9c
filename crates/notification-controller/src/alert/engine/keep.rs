//! Kept form of a waiting event: enough to report it, and bounded, since thousands may wait.

use event::Event;

/// Bytes kept of metadata, names and values.
const MOST_METADATA_BYTES: usize = 4 << 10;

/// Cuts the message, and drops the longest metadata until the rest is short enough.
pub(super) fn shorten(event: &mut Event, most_message_bytes: usize) {
    let message = &mut event.message;
    message.truncate(message.floor_char_boundary(most_message_bytes));
    let mut total: usize = event.metadata.iter().map(size).sum();
    while total > MOST_METADATA_BYTES {
        let longest = event.metadata.iter().max_by_key(|pair| size(*pair));
        let Some((key, bytes)) = longest.map(|pair| (pair.0.clone(), size(pair))) else {
            return;
        };
        event.metadata.remove(&key);
        total -= bytes;
    }
}

fn size((key, value): (&String, &String)) -> usize {
    key.len() + value.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_metadata_goes_and_the_rest_stays() {
        let metadata = [("a", 5_000), ("b", 3_000), ("c", 2_000), ("d", 100), ("e", 0)];
        let mut event = Event {
            message: "ä".repeat(600),
            metadata: metadata
                .iter()
                .map(|(key, length)| ((*key).to_owned(), "x".repeat(*length)))
                .collect(),
            ..Event::default()
        };
        shorten(&mut event, 1_001);
        assert_eq!(event.message.len(), 1_000);
        let keys: Vec<_> = event.metadata.keys().map(String::as_str).collect();
        assert_eq!(keys, ["c", "d", "e"]);
    }
}
