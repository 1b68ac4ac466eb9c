//! Input of a notifier: the notification to send.

use event::Event;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One message to say.
#[derive(Debug, Clone, PartialEq)]
pub struct Notification {
    /// The event, with metadata combined as Flux does: keys without prefix.
    pub event: Event,
    /// The Alert that wants it said.
    pub alert: AlertRef,
    /// State of the incident.
    pub state: State,
    /// Subject key: the same for an object, or a group of them, each time.
    pub key: String,
    /// Thread that the first message about `key` returned; None starts a new one.
    pub thread: Option<Thread>,
    /// True if messages about `key` are to be kept together, where the provider can.
    pub threaded: bool,
    /// True if a promotion is to be a deployment at the Git service as well, where it has these.
    pub deployments: bool,
    /// The text of a template, which stands in place of the event's message and, in chats, of its metadata.
    pub text: Option<String>,
    /// The name of a commit's status, for the types that set one.
    pub commit_status: Option<String>,
}

/// An Alert.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct AlertRef {
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// Its UID.
    pub uid: String,
}

/// State of the incident after a message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum State {
    /// An event and no more, told as Flux tells it.
    #[default]
    Event,
    /// It fails, until [`State::Resolved`] is said of the same key.
    Firing,
    /// It was said to fail, and does so no longer.
    Resolved,
}

/// Subject of a message, for people.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub(crate) kind: &'a str,
    pub(crate) name: &'a str,
    pub(crate) namespace: &'a str,
}

/// Where a service keeps the first message about something. It is small, and good across restarts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Thread(pub Value);

/// It was said.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sent {
    /// Thread for the next message about the same key; None if there is nothing to keep.
    pub thread: Option<Thread>,
}

impl Notification {
    /// An event to be told as Flux tells it.
    pub fn new(event: Event, alert: AlertRef) -> Self {
        let key = event.involved_object.to_string();
        Self {
            event,
            alert,
            state: State::Event,
            key,
            thread: None,
            threaded: false,
            deployments: false,
            text: None,
            commit_status: None,
        }
    }

    /// Returns whether it is about one object, and not about several at once.
    pub(crate) fn is_about_one(&self) -> bool {
        self.key == self.event.involved_object.to_string()
    }

    /// The object, or the Alert of a message about several.
    pub(crate) fn subject(&self) -> Subject<'_> {
        let object = &self.event.involved_object;
        if self.is_about_one() {
            return Subject {
                kind: &object.kind,
                name: &object.name,
                namespace: &object.namespace,
            };
        }
        Subject {
            kind: "Alert",
            name: &self.alert.name,
            namespace: &self.alert.namespace,
        }
    }

    /// A text that the thread holds under this name, if messages are kept together.
    pub(crate) fn thread_text(&self, name: &str) -> Option<&str> {
        let thread = self.thread.as_ref().filter(|_| self.threaded)?;
        thread.0.get(name)?.as_str()
    }
}

impl Thread {
    /// The longest value that is kept of an answer.
    const MAX_LENGTH: usize = 512;

    /// Keeps texts of an answer by name; None if one is missing or too long to be what it should be.
    pub(crate) fn of_texts(texts: &[(&str, Option<&str>)]) -> Option<Self> {
        let mut kept = serde_json::Map::new();
        for (name, text) in texts {
            let text = text.filter(|text| !text.is_empty() && text.len() <= Self::MAX_LENGTH)?;
            kept.insert((*name).to_owned(), Value::from(text));
        }
        Some(Self(Value::Object(kept)))
    }
}
