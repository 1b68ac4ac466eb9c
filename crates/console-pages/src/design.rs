//! The design system, shown by itself: type, spacing, colours, states and elements.

use maud::html;

use crate::{Mood, Shown, View, element};

const SIZES: [(&str, &str); 4] = [
    ("t3", "1.75 rem: the title of a page"),
    ("t2", "1.2 rem: a section"),
    ("t1", "1 rem: text"),
    ("t0", "0.85 rem: places and times"),
];
const COLOURS: [(&str, &str); 8] = [
    ("ground", "the page"),
    ("raised", "what lies on it"),
    ("line", "edges"),
    ("ink", "text"),
    ("faint", "text beside text"),
    ("accent", "links, focus, buttons"),
    ("good", "as it should be"),
    ("bad", "needs a person"),
];
const SPACES: [(&str, &str); 4] = [
    ("s1", "0.25 rem"),
    ("s2", "0.5 rem"),
    ("s3", "1 rem"),
    ("s4", "2 rem"),
];

/// Shows it.
pub fn show(view: &View) -> Shown {
    let texts = view.texts;
    let states = [
        ("ready", texts.ready, "a filled circle"),
        ("failed", texts.failed, "a cross"),
        ("busy", texts.in_progress, "a half circle"),
        ("suspended", texts.suspended, "two bars"),
        ("unknown", texts.unknown, "an empty circle"),
    ];
    let main = html! {
        h1 { (texts.design) }
        p { "Each state has a shape and a word besides its colour. Text passes 4.5 to 1 on its ground, in light and in dark." }
        section { h2 { "Type" } @for (class, use_) in SIZES { p class=(class) { (use_) } } }
        section {
            h2 { "Colours" }
            ul.swatches role="list" { @for (name, use_) in COLOURS { li { i class={"swatch " (name)} {} (name) ": " (use_) } } }
        }
        section { h2 { "Spacing" } @for (name, size) in SPACES { p { i class={"space " (name)} {} " " (size) } } }
        section {
            h2 { "States" }
            ul role="list" { @for (class, word, shape) in states { li { (element::badge(class, word)) " " (shape) } } }
        }
        section {
            h2 { "Elements" }
            p { button type="button" { (texts.reconcile) } " " a.button href="/design" { (texts.show_differences) } " " a href="/design" { "link" } }
            p { label { (texts.reason) " " input name="sample"; } }
            (element::command(view, "windlass why ks/app"))
            p.cause { "A cause, which a page begins with." }
        }
    };
    Shown {
        title: texts.design.to_owned(),
        mood: Mood::Good,
        main,
        parts: Vec::new(),
        frame: None,
    }
}
