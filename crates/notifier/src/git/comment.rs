//! Comments on a change request (pull request, merge request): one for each Provider and object, found by an
//! HTML comment in it. Flux writes and finds the same.

use event::{Event, keys};

use crate::error::Error;
use crate::markdown;
use crate::notification::{Notification, Sent, Thread};
use crate::target::ProviderRef;
use forge::api::Api;
use forge::comment::{Mine, Places};

/// GitHub takes 65,536 characters, of which the marker has some hundred.
const MAX_TEXT: usize = 60_000;
/// Names of objects have at most 253 characters each.
const MAX_MARKER: usize = 2_000;

/// As GitHub and Gitea are marked.
pub(super) const PULL_REQUEST: &str = "flux-pr-comment-key";
/// As GitLab is marked.
pub(super) const MERGE_REQUEST: &str = "flux-mr-comment-key";

/// A comment to make or to change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Comment {
    /// The number of the change request.
    pub(super) number: u64,
    /// The whole text, which begins with the marker.
    pub(super) body: String,
    marker: String,
}

impl Comment {
    /// Builds the comment, marked with this key.
    pub(super) fn new(
        notification: &Notification,
        provider: &ProviderRef,
        key: &'static str,
    ) -> Result<Self, Error> {
        if provider.uid.is_empty() {
            return Err(Error::invalid("provider UID cannot be empty"));
        }
        let object = &notification.event.involved_object;
        let marker = format!(
            "<!-- {key}:{}/{}/{}/{} -->",
            provider.uid, object.kind, object.namespace, object.name
        );
        if marker.len() > MAX_MARKER {
            return Err(Error::invalid("the name of the object is too long for a comment"));
        }
        Ok(Self {
            number: number(&notification.event)?,
            body: format!("{marker}\n\n{}", markdown::post(notification, MAX_TEXT)),
            marker,
        })
    }

    /// Explains why a change request is not found.
    pub(super) fn missing(&self, what: &str, repository: &str) -> String {
        format!(
            "there is no {what} {} in repository {repository}, or the token may not see it",
            self.number
        )
    }

    /// Changes the comment that is there, or makes one. `me` wrote it: comments of others stay theirs.
    pub(super) async fn put(
        &self,
        api: &Api<'_>,
        places: &Places<'_>,
        notification: &Notification,
        me: impl Future<Output = Result<String, Error>>,
    ) -> Result<Sent, Error> {
        let comment = forge::comment::Comment {
            marker: &self.marker,
            body: &self.body,
        };
        let mine = async { me.await.map(Mine::Named) };
        let id = comment.put(api, places, self.known(notification), mine).await?;
        Ok(id.map_or_else(Sent::default, |id| self.sent(notification, id)))
    }

    /// The comment that was made before, if it is on the same change request.
    fn known(&self, notification: &Notification) -> Option<u64> {
        let number = notification.thread_text("change_request")?;
        let id: u64 = notification.thread_text("comment")?.parse().ok()?;
        (number == self.number.to_string()).then_some(id)
    }

    fn sent(&self, notification: &Notification, id: u64) -> Sent {
        let (number, id) = (self.number.to_string(), id.to_string());
        let thread = Thread::of_texts(&[("change_request", Some(&number)), ("comment", Some(&id))]);
        Sent {
            thread: thread.filter(|_| notification.threaded),
        }
    }
}

fn number(event: &Event) -> Result<u64, Error> {
    let key = keys::CHANGE_REQUEST;
    let text = event.metadata.get(key);
    let text = text.ok_or_else(|| Error::invalid(format!("missing \"{key}\" metadata key")))?;
    text.trim().parse().map_err(|_| {
        let quoted: String = text.chars().filter(|c| !c.is_control()).take(40).collect();
        Error::invalid(format!(
            "invalid \"{key}\" metadata value \"{quoted}\": it must be a number"
        ))
    })
}
