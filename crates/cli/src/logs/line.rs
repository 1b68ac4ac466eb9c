//! A line of a log: what it is about, whether it is wanted, and how it reads. Pure.

use clap::ValueEnum;
use delivery_graph::object::text;
use delivery_graph::one_line;
use serde_json::Value;

use crate::cluster::output::{Colours, Tone};

/// How bad the news is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(super) enum Level {
    /// Details for troubleshooting the controllers
    Debug,
    /// Normal operation
    Info,
    /// Errors only
    Error,
}

/// A line, and the Pod that logged it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) pod: String,
    /// When, as the node says it: they order lines of different controllers.
    pub(super) time: String,
    pub(super) raw: String,
}

/// Which lines are wanted.
#[derive(Debug, Default)]
pub(super) struct Filter {
    pub(super) kind: Option<String>,
    pub(super) name: Option<String>,
    pub(super) namespace: Option<String>,
    pub(super) level: Option<Level>,
}

impl Line {
    /// Reads a line with the time that the API server puts before it.
    pub(super) fn read(pod: &str, line: &str) -> Self {
        let (time, raw) = match line.split_once(' ') {
            Some((time, raw)) if time.parse::<jiff::Timestamp>().is_ok() => (time, raw),
            _ => ("", line),
        };
        Self {
            pod: pod.to_owned(),
            time: time.to_owned(),
            raw: raw.to_owned(),
        }
    }

    /// When; lines without a time stay where they are.
    pub(super) fn instant(&self) -> Option<jiff::Timestamp> {
        self.time.parse().ok()
    }

    fn value(&self) -> Option<Value> {
        let value: Value = serde_json::from_str(&self.raw).ok()?;
        value.is_object().then_some(value)
    }

    /// For people: `2026-01-01T00:00:00Z info Kustomization/shop/web: done`.
    pub(super) fn shown(&self, colours: Colours) -> String {
        let Some(value) = self.value() else {
            return format!("{} {} {}\n", self.time, self.pod, one_line(&self.raw));
        };
        let level = text(&value, "/level");
        let tone = match level {
            "error" => Tone::Bad,
            "info" => Tone::Good,
            _ => Tone::Plain,
        };
        let time = match text(&value, "/ts") {
            "" => &self.time,
            time => time,
        };
        let about = match about(&value) {
            about if about.is_empty() => self.pod.clone(),
            about => about,
        };
        let mut said = one_line(text(&value, "/msg"));
        let error = one_line(text(&value, "/error"));
        if !error.is_empty() {
            said = format!("{said}: {error}");
        }
        format!("{time} {} {about}: {said}\n", colours.paint(level, tone))
    }
}

/// Names the object of a line.
fn about(value: &Value) -> String {
    let parts = [kind(value), text(value, "/namespace"), text(value, "/name")];
    let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("/")
}

fn kind(value: &Value) -> &str {
    match text(value, "/reconciler kind") {
        "" => text(value, "/controllerKind"),
        kind => kind,
    }
}

impl Filter {
    /// Returns whether a line is wanted. What is no line of a controller, as what a crash leaves, is about no object.
    pub(super) fn lets_through(&self, line: &Line) -> bool {
        let is_any = self.kind.is_none() && self.name.is_none() && self.namespace.is_none();
        let Some(value) = line.value() else {
            return is_any && !line.raw.trim().is_empty();
        };
        let is = |wanted: &Option<String>, found: &str| {
            wanted
                .as_ref()
                .is_none_or(|wanted| wanted.eq_ignore_ascii_case(found))
        };
        is(&self.kind, kind(&value))
            && is(&self.name, text(&value, "/name"))
            && is(&self.namespace, text(&value, "/namespace"))
            && self.level.is_none_or(|wanted| level(&value) >= wanted)
    }
}

fn level(value: &Value) -> Level {
    match text(value, "/level") {
        "error" | "warn" | "warning" | "dpanic" | "panic" | "fatal" => Level::Error,
        "debug" | "trace" => Level::Debug,
        _ => Level::Info,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const APPLIED: &str = r#"{"level":"info","ts":"2026-01-01T00:00:01.000Z","msg":"applied\nit","controller":"kustomization","controllerKind":"Kustomization","namespace":"shop","name":"web"}"#;
    const FAILED: &str = r#"{"level":"error","ts":"2026-01-01T00:00:02.000Z","msg":"Reconciler error","controllerKind":"GitRepository","namespace":"infra","name":"app","error":"no such branch"}"#;

    fn line(raw: &str) -> Line {
        Line::read("apply-1", &format!("2026-01-01T00:00:03.123456789Z {raw}"))
    }

    #[test]
    fn lines_are_told_by_their_object() {
        assert_eq!(
            line(APPLIED).shown(Colours::none()),
            "2026-01-01T00:00:01.000Z info Kustomization/shop/web: applied it\n"
        );
        assert_eq!(
            line(FAILED).shown(Colours::none()),
            "2026-01-01T00:00:02.000Z error GitRepository/infra/app: Reconciler error: no such branch\n"
        );
        let start = r#"{"level":"info","ts":"2026-01-01T00:00:00.000Z","msg":"starting"}"#;
        assert_eq!(
            line(start).shown(Colours::none()),
            "2026-01-01T00:00:00.000Z info apply-1: starting\n"
        );
        assert_eq!(
            line("thread panicked\u{1b}[0m").shown(Colours::none()),
            "2026-01-01T00:00:03.123456789Z apply-1 thread panicked[0m\n"
        );
    }

    #[test]
    fn only_what_is_wanted_is_let_through() {
        let text = |text: &str| Some(text.to_owned());
        let all = Filter::default();
        assert!(all.lets_through(&line(APPLIED)) && all.lets_through(&line("panic")));
        for (filter, applied, failed) in [
            (
                Filter {
                    kind: text("kustomization"),
                    ..Filter::default()
                },
                true,
                false,
            ),
            (
                Filter {
                    name: text("app"),
                    ..Filter::default()
                },
                false,
                true,
            ),
            (
                Filter {
                    namespace: text("shop"),
                    ..Filter::default()
                },
                true,
                false,
            ),
            (
                Filter {
                    level: Some(Level::Error),
                    ..Filter::default()
                },
                false,
                true,
            ),
            (
                Filter {
                    level: Some(Level::Debug),
                    ..Filter::default()
                },
                true,
                true,
            ),
        ] {
            assert_eq!(filter.lets_through(&line(APPLIED)), applied, "{filter:?}");
            assert_eq!(filter.lets_through(&line(FAILED)), failed, "{filter:?}");
        }
        let about_one = Filter {
            name: text("web"),
            ..Filter::default()
        };
        assert!(!about_one.lets_through(&line("panic")));
    }
}
