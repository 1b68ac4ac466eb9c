//! Logs of the Pods of an object, as a part of its page that is asked for: which containers there are, and the end of one.

use fleet::row::Row;
use maud::{Markup, html};

use crate::{Mood, Shown, View, element, link};

/// A Pod.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pod {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Running, Pending, Succeeded, Failed, or Unknown.
    pub phase: String,
    /// Its containers, those that run first.
    pub containers: Vec<Container>,
}

/// A container.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Container {
    /// Its name.
    pub name: String,
    /// How often it was restarted.
    pub restarts: i32,
    /// Whether it is ready, or has ended without an error.
    pub is_well: bool,
    /// Why it waits or has ended.
    pub reason: String,
}

impl Pod {
    /// Whether all of it is.
    pub fn is_well(&self) -> bool {
        self.containers.iter().all(|container| container.is_well)
    }

    /// A container, as addresses name it.
    pub fn address(&self, container: &Container) -> String {
        format!("{}/{}/{}", self.namespace, self.name, container.name)
    }
}

/// The end of a log.
pub struct Tail<'a> {
    /// Whose it is.
    pub container: &'a str,
    /// The lines, or why there are none.
    pub lines: Result<String, String>,
}

/// Shows containers, and the end of the log of the first.
pub fn show(view: &View, row: &Row, pods: &[Pod], tail: Option<&Tail<'_>>) -> Shown {
    let texts = view.texts;
    let address = format!("/api/v1{}/logs", link::row(row));
    let main = html! {
        h1 { (element::name(row)) " " (element::place(row)) }
        section #logs {
            h2 { (texts.logs) }
            @if pods.is_empty() { p { (texts.no_pods) } } @else {
                (containers(view, &address, pods))
                form.filter method="get" action=(address) {
                    label { (texts.container) " "
                        select name="container" {
                            @for (pod, container) in all(pods) {
                                @let value = pod.address(container);
                                option value=(value) { (value) }
                            }
                        }
                    }
                    label { (texts.lines_with) " " input name="grep" maxlength="200"; }
                    label { input type="checkbox" name="follow" value="true"; " " (texts.follow) }
                    button { (texts.show_logs) }
                }
            }
            @if let Some(tail) = tail {
                h3 { code { (tail.container) } }
                @match &tail.lines {
                    Ok(lines) if lines.is_empty() => p { (texts.no_lines) },
                    Ok(lines) => pre tabindex="0" { (lines) },
                    Err(why) => p.why { (why) },
                }
            }
        }
    };
    Shown {
        title: format!("{} {}", row.name, texts.logs),
        mood: Mood::Good,
        main,
        parts: Vec::new(),
        frame: None,
    }
}

fn all(pods: &[Pod]) -> impl Iterator<Item = (&Pod, &Container)> {
    pods.iter()
        .flat_map(|pod| pod.containers.iter().map(move |container| (pod, container)))
}

fn containers(view: &View, address: &str, pods: &[Pod]) -> Markup {
    let texts = view.texts;
    html! {
        div.wide tabindex="0" {
            table {
                thead { tr { th { (texts.container) } th { (texts.status) } th { (texts.restarts) } th { (texts.logs) } } }
                tbody {
                    @for (pod, container) in all(pods) {
                        @let name = pod.address(container);
                        @let query = |more: &[(&str, &str)]| link::with(address, &[&[("container", name.as_str())], more].concat());
                        tr {
                            td { code { (name) } }
                            td {
                                @let word = if container.reason.is_empty() { &pod.phase } else { &container.reason };
                                (element::badge(if container.is_well { "ready" } else { "failed" }, word))
                            }
                            td.number { (container.restarts) }
                            td {
                                a href=(query(&[])) { (texts.lines) } " · "
                                a href=(query(&[("follow", "true")])) { (texts.follow) }
                                @if container.restarts > 0 { " · " a href=(query(&[("previous", "true")])) { (texts.before_restart) } }
                            }
                        }
                    }
                }
            }
        }
    }
}
