//! A message in Markdown, as Flux writes comments on pull requests and messages for Zulip. Pure.

use event::keys;

use crate::notification::Notification;
use crate::said::{Fields, Said, cut};

/// The message of at most so many characters.
pub(crate) fn post(notification: &Notification, longest: usize) -> String {
    let said = Said::from_notification(notification);
    let subject = notification.subject();
    let parts = [subject.kind, subject.namespace, subject.name];
    let object = parts.map(|text| cut(text, 600)).join("/");
    let head = format!(
        "## Flux Status\n\n{} {}\n\n",
        said.pick("ℹ️", "⚠️"),
        cut(&object, 600)
    );
    let mut tail = String::from("\n");
    if notification.text.is_none() {
        tail.push_str("\nMetadata:\n");
        for (name, value) in said.fields(Fields::MANY) {
            if name != keys::CHANGE_REQUEST {
                tail.push_str(&format!("* `{name}`: {value}\n"));
            }
        }
    }
    let tail = cut(&tail, longest / 2);
    let rest = longest.saturating_sub(head.chars().count() + tail.chars().count());
    format!("{head}{}{tail}", cut(said.text(), rest))
}
