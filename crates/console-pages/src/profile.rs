//! Who the reader is to the clusters.

use jiff::Timestamp;
use maud::html;

use crate::{Mood, Shown, View, element};

/// Who someone is.
pub struct Profile<'a> {
    /// The name that clusters know them by.
    pub username: &'a str,
    /// Their groups.
    pub groups: &'a [String],
    /// `token`, `session` or `anonymous`.
    pub signed_in_by: &'a str,
    /// When the session ends; None if there is none.
    pub until: Option<Timestamp>,
}

/// Shows it.
pub fn show(view: &View, profile: &Profile<'_>) -> Shown {
    let texts = view.texts;
    let main = html! {
        h1 { (texts.profile) }
        dl.facts {
            dt { (texts.you_are) } dd { (profile.username) }
            dt { (texts.groups) } dd { @for group in profile.groups { div { (group) } } }
            dt { (texts.signed_in_by) } dd { (profile.signed_in_by) }
            @if let Some(until) = profile.until {
                dt { (texts.session_until) } dd { (until.strftime("%Y-%m-%d %H:%M UTC").to_string()) }
            }
            dt { (texts.language) } dd { (texts.code) }
        }
        @if profile.until.is_some() {
            form method="post" action="/oauth2/sign-out" { button { (texts.sign_out) } }
        }
        (element::command(view, "windlass query"))
    };
    Shown {
        title: texts.profile.to_owned(),
        mood: Mood::Good,
        main,
        parts: Vec::new(),
        frame: None,
    }
}
