//! The document around a page.

use std::sync::Arc;

use fleet::row::Row;
use maud::{DOCTYPE, Markup, html};

use crate::{Mood, Shown, View, assets, element, link};

/// The pages that the header leads to.
fn places(view: &View) -> Vec<(&'static str, &'static str)> {
    let texts = view.texts;
    let mut places = vec![
        ("/", texts.home),
        ("/apps", texts.applications),
        ("/sources", texts.sources),
        ("/images", texts.images),
        ("/notifications", texts.notifications),
        ("/fleet", texts.fleet),
        ("/graph", texts.graph),
        ("/change", texts.change),
    ];
    if view.has_pipelines {
        places.insert(2, ("/pipelines", texts.pipelines));
    }
    if view.has_ledger {
        places.push(("/history", texts.history));
    }
    places
}

/// A whole page.
pub fn document(view: &View, shown: &Shown) -> Markup {
    let texts = view.texts;
    let path = view.address.split('?').next().unwrap_or_default();
    html! {
        (DOCTYPE)
        html lang=(texts.code) {
            (head(shown))
            body {
                a.skip href="#main" { (texts.skip) }
                header.top {
                    a.brand href="/" { "Windlass" }
                    nav aria-label="Windlass" {
                        @for (place, word) in places(view) {
                            a href=(place) aria-current=[(place == path).then_some("page")] { (word) }
                        }
                    }
                    form.find action="/apps" role="search" {
                        input type="search" name="q" placeholder=(texts.search) aria-label=(texts.search) title=(texts.search_hint);
                    }
                    a.user href="/me" { (view.user) }
                }
                main #main tabindex="-1" { (shown.main) }
                footer {
                    span #live.live role="status" data-stale=(texts.stale) {}
                    span { (texts.search_shortcut) }
                }
                (state(shown))
                @if !shown.parts.is_empty() {
                    // Outside of what is sent again, so that it stays.
                    div hidden hx-sse:connect=(link::with("/live", &[("at", &view.address), ("since", &view.change.to_string())])) hx-swap="none" {}
                }
                (keys(view))
                (palette(view))
            }
        }
    }
}

/// What a tab shows of a page: an element that scripts read, which is sent again like other parts.
pub fn state(shown: &Shown) -> Markup {
    html! { span #state hidden data-title=(title(shown)) data-icon=(icon(shown.mood)) {} }
}

/// A part that is to stand where the element with its id is.
pub fn patch(id: &str, part: &Markup) -> Markup {
    html! { hx-partial hx-target={"#" (id)} hx-swap="outerHTML" { (part) } }
}

fn title(shown: &Shown) -> String {
    format!("{} – Windlass", shown.title)
}

fn icon(mood: Mood) -> String {
    assets::address(match mood {
        Mood::Good => "good.svg",
        Mood::Busy => "busy.svg",
        Mood::Bad => "bad.svg",
    })
}

fn head(shown: &Shown) -> Markup {
    html! {
        head {
            meta charset="utf-8";
            title { (title(shown)) }
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="color-scheme" content="light dark";
            // Its own style would be one that is written into the page, which the policy for content forbids.
            meta name="htmx-config" content="{\"includeIndicatorCSS\":false,\"extensions\":\"sse\",\"prefix\":\"\"}";
            link rel="icon" href=(icon(shown.mood));
            link rel="stylesheet" href=(assets::address("style.css"));
            script src=(assets::address("htmx.js")) defer {}
            script src=(assets::address("hx-sse.js")) defer {}
            script src=(assets::address("page.js")) defer {}
        }
    }
}

fn keys(view: &View) -> Markup {
    let texts = view.texts;
    let keys = [
        ("/", texts.key_search),
        ("Ctrl K", texts.find),
        ("g h", texts.key_home),
        ("g a", texts.key_apps),
        ("g s", texts.key_sources),
        ("g f", texts.key_fleet),
        ("g p", texts.pipelines),
        ("g c", texts.key_change),
        ("g l", texts.key_history),
        ("g n", texts.new),
        ("j k", texts.key_move),
        ("x", texts.key_select),
        ("Enter", texts.key_open),
        ("?", texts.help),
    ];
    html! {
        dialog #keys aria-labelledby="keys-title" {
            h2 #keys-title { (texts.keys) }
            dl {
                @for (key, word) in keys {
                    dt { kbd { (key) } }
                    dd { (word) }
                }
            }
            form method="dialog" { button { (texts.close) } }
        }
    }
}

/// Where one types where to go.
fn palette(view: &View) -> Markup {
    let texts = view.texts;
    html! {
        dialog #palette aria-label=(texts.find) {
            input name="q" type="search" autocomplete="off" placeholder=(texts.find_hint) aria-label=(texts.find_hint);
            div #found { (found(view, "", &[])) }
        }
    }
}

/// Pages whose name has what was typed, and objects.
pub fn found(view: &View, typed: &str, rows: &[Arc<Row>]) -> Markup {
    let typed = typed.to_lowercase();
    let is_meant = |(_, word): &(&str, &str)| word.to_lowercase().contains(&typed);
    let mut places = places(view);
    if view.has_changes {
        places.extend([("/new", view.texts.new), ("/changes", view.texts.change_requests)]);
    }
    html! {
        ul role="list" {
            @for (place, word) in places.into_iter().filter(is_meant) { li { a href=(place) { (word) } } }
            @for row in rows { li { (element::name(row)) " " (element::place(row)) } }
        }
    }
}

/// A page for what cannot be shown.
pub fn problem(view: &View, title: &str, message: &str, sign_in: Option<&str>) -> Shown {
    let main = html! {
        h1 { (title) }
        p.cause { (message) }
        @if let Some(address) = sign_in {
            p { a.button href=(address) { (view.texts.sign_in) } }
        }
    };
    Shown {
        title: title.to_owned(),
        mood: Mood::Bad,
        main,
        parts: Vec::new(),
        frame: None,
    }
}
