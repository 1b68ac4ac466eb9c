//! Server-sent events of the API, read from the body of an answer.

use axum::Error;
use axum::body::Bytes;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use serde_json::Value;
use tonic::Status;

/// Bytes of an event; they are rows of ours.
const MAX_EVENT: usize = 64 << 20;

/// An event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub name: String,
    /// 0 if it has none.
    pub id: u64,
    pub data: Value,
}

/// The events of a stream.
pub struct Events {
    pieces: BoxStream<'static, Result<Bytes, Error>>,
    /// What has arrived and is not read yet.
    text: Vec<u8>,
}

impl Events {
    /// Reads those of a body.
    pub fn new(pieces: BoxStream<'static, Result<Bytes, Error>>) -> Self {
        Self {
            pieces,
            text: Vec::new(),
        }
    }

    /// The next event; None at the end.
    pub async fn next(&mut self) -> Result<Option<Event>, Status> {
        let lost = |_| Status::unavailable("the stream was cut; resume");
        let mut searched = 0;
        loop {
            if let Some(end) = end_of_event(&self.text, searched) {
                let text: Vec<u8> = self.text.drain(..end).collect();
                searched = 0;
                if let Some(event) = read(&String::from_utf8_lossy(&text)) {
                    return Ok(Some(event));
                }
                continue;
            }
            searched = self.text.len().saturating_sub(1);
            let Some(piece) = self.pieces.next().await else {
                return Ok(None);
            };
            self.text.extend_from_slice(&piece.map_err(lost)?);
            if self.text.len() > MAX_EVENT {
                return Err(Status::internal("an event is too large"));
            }
        }
    }
}

/// Where an event ends: behind an empty line. What stands before `from` was searched already.
fn end_of_event(text: &[u8], from: usize) -> Option<usize> {
    let at = text[from..].windows(2).position(|pair| pair == b"\n\n")?;
    Some(from + at + 2)
}

/// Reads an event; None if it is a comment, which keeps a connection open.
fn read(text: &str) -> Option<Event> {
    let (mut name, mut id, mut data) = (String::new(), 0, String::new());
    for line in text.lines() {
        let Some((field, value)) = line.split_once(':') else {
            continue;
        };
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut name),
            "id" => id = value.parse().unwrap_or_default(),
            "data" => data.push_str(value),
            _ => {}
        }
    }
    let data = serde_json::from_str(&data).ok()?;
    Some(Event { name, id, data })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn events_are_read_however_they_are_cut() {
        let text = ":\n\nevent: rows\nid: 7\ndata: {\"a\":\"\\n\"}\n\n:\n\nevent:reset\nid:8\ndata:{}\n\nevent: rows\n";
        let wanted = [("rows", 7, json!({"a": "\n"})), ("reset", 8, json!({}))];
        for size in 1..text.len() {
            let pieces: Vec<_> = text.as_bytes().chunks(size).map(Bytes::copy_from_slice).collect();
            let mut events = Events::new(futures::stream::iter(pieces).map(Ok).boxed());
            for (name, id, data) in wanted.clone() {
                let name = name.to_owned();
                assert_eq!(
                    events.next().await.unwrap(),
                    Some(Event { name, id, data }),
                    "{size}"
                );
            }
            // What was cut short is no event.
            assert_eq!(events.next().await.unwrap(), None);
        }
    }
}
