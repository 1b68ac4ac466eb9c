//! How it went with what was to be done, where not all of it was.

use maud::html;

use crate::{Mood, Shown, View, element, link};

/// How it went with an object.
pub struct Outcome<'a> {
    /// Its cluster.
    pub cluster: &'a str,
    /// Its kind.
    pub kind: &'a str,
    /// Its namespace.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Why it was not done; None if it was.
    pub failed: Option<&'a str>,
}

/// Shows it, with the way back.
pub fn show(view: &View, outcomes: &[Outcome<'_>], back: &str) -> Shown {
    let texts = view.texts;
    let main = html! {
        h1 { (texts.not_done) }
        section.needs {
            ul role="list" {
                @for outcome in outcomes {
                    li {
                        div.head {
                            @match outcome.failed {
                                None => (element::badge("ready", texts.done)),
                                Some(_) => (element::badge("failed", texts.not_done)),
                            }
                            a.name href=(link::object(outcome.cluster, outcome.kind, outcome.namespace, outcome.name)) { (outcome.name) }
                            span.place { (outcome.kind) " · " (outcome.namespace) " · " (outcome.cluster) }
                        }
                        @if let Some(message) = outcome.failed { p.why { (message) } }
                    }
                }
            }
        }
        p { a.button href=(back) { (texts.back) } }
    };
    Shown {
        title: texts.not_done.to_owned(),
        mood: Mood::Bad,
        main,
        parts: Vec::new(),
        frame: None,
    }
}
