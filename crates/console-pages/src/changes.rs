//! Changes through Git: which kinds there are forms for, a form, and a manifest with what it would change.

use maud::{Markup, html};
use serde_json::Value;

use crate::chart_values::{ChartValue, Kind};
use crate::compared::changed;
use crate::forms::{FORMS, Field, Form, Input};
use crate::{Mood, Shown, View, element, link};

/// A change, as it is being written.
#[derive(Debug, Clone, Default)]
pub struct Draft {
    /// The cluster.
    pub cluster: String,
    /// `namespace/name` of the Kustomization.
    pub kustomization: String,
    /// Path of the file.
    pub path: String,
    /// The manifest that is replaced, as JSON; empty for a new file.
    pub object: String,
    /// Digest of its text as it was read.
    pub digest: String,
    /// The text.
    pub content: String,
    /// Title of the pull request.
    pub title: String,
    /// Why.
    pub reason: String,
    /// `namespace/name` of the ChangePolicy.
    pub policy: String,
}

/// What is known around a draft.
#[derive(Default)]
pub struct Around<'a> {
    /// The revision that was looked at.
    pub revision: &'a str,
    /// ChangePolicies under which it can be proposed.
    pub policies: &'a [String],
    /// Whether the file is outside of the folder of the Kustomization.
    pub is_outside: bool,
    /// What it would change; None before it was asked for.
    pub preview: Option<Preview<'a>>,
    /// Why it cannot be changed so.
    pub problem: Option<&'a str>,
}

/// What a draft would change.
pub struct Preview<'a> {
    /// Files with the lines that change.
    pub files: &'a [(&'a str, &'a [String])],
    /// Objects that would change, as the API has them.
    pub objects: &'a [Value],
    /// What could not be built, and limitations.
    pub notes: &'a [String],
}

/// Which kinds there are forms for.
pub fn kinds(view: &View) -> Shown {
    let texts = view.texts;
    plain(
        texts.new,
        html! {
            h1 { (texts.new) }
            p { (texts.through_git) }
            ul.cards role="list" {
                @for form in &FORMS { li { a.button href={"/new/" (form.kind)} { (form.kind) } } }
            }
            p { a href="/changes" { (texts.change_requests) } }
        },
    )
}

/// What a form offers.
#[derive(Default)]
pub struct Offered<'a> {
    /// Clusters where changes can be proposed.
    pub clusters: &'a [String],
    /// The one that is chosen.
    pub cluster: &'a str,
    /// `namespace/name` of its Kustomizations.
    pub kustomizations: &'a [String],
    /// `kind/namespace/name` of its charts, for a HelmRelease.
    pub charts: &'a [String],
    /// The one that is chosen.
    pub chart: &'a str,
    /// The values that it takes.
    pub values: &'a [ChartValue],
    /// Why they are not known.
    pub problem: Option<&'a str>,
}

/// A form for a new object.
pub fn form(view: &View, form: &Form, offered: &Offered<'_>) -> Shown {
    let texts = view.texts;
    let Offered {
        clusters,
        cluster,
        kustomizations,
        charts,
        chart,
        values,
        ..
    } = *offered;
    let chosen: Vec<&str> = chart.split('/').collect();
    let title = format!("{} {}", texts.new, form.kind);
    plain(
        &title,
        html! {
            h1 { (title) }
            p { (texts.through_git) }
            @if clusters.len() > 1 || !charts.is_empty() {
                form.filter action={"/new/" (form.kind)} {
                    label { (texts.cluster) " "
                        select name="cluster" { @for one in clusters { option selected[one == cluster] { (one) } } }
                    }
                    @if !charts.is_empty() {
                        label { (texts.chart) " "
                            select name="chart" {
                                option value="" {}
                                @for one in charts { option selected[one == chart] { (one) } }
                            }
                        }
                    }
                    button { (texts.show) }
                }
            }
            @if let Some(problem) = offered.problem { p.why { (problem) } }
            @if kustomizations.is_empty() { p.why { (texts.no_kustomizations) } }
            form.edit method="post" action="/changes" {
                input type="hidden" name="kind" value=(form.kind);
                input type="hidden" name="cluster" value=(cluster);
                (line("name", "name", "", true, ""))
                @if form.has_namespace() { (line("namespace", "namespace", "", true, "")) }
                @for field in form.fields {
                    @match (field.path, chosen.as_slice()) {
                        // The chart is chosen above.
                        ("spec.chartRef.kind", [kind, _, _]) => { input type="hidden" name=(field.path) value=(kind); },
                        ("spec.chartRef.namespace", [_, namespace, _]) => { input type="hidden" name=(field.path) value=(namespace); },
                        ("spec.chartRef.name", [_, _, name]) => { input type="hidden" name=(field.path) value=(name); },
                        (path, [_, _, _]) if path.starts_with("spec.chart.") => {},
                        _ => (typed(form, field)),
                    }
                }
                @if !values.is_empty() {
                    fieldset { legend { (texts.values) " " span.place { (chart) } }
                        @for value in values { (chart_value(value)) }
                    }
                }
                label { code { "Kustomization" } span.hint { (texts.which_kustomization) }
                    // A cluster may have thousands: what is not offered can be typed.
                    input name="kustomization" list="kustomizations" required maxlength="320" autocomplete="off" spellcheck="false" placeholder="namespace/name";
                }
                datalist #kustomizations { @for one in kustomizations { option value=(one) {} } }
                (line("path", texts.path_in_repository, "", false, texts.path_hint))
                p { button value="preview" name="step" { (texts.go_on) } }
            }
        },
    )
}

fn line(name: &str, label: &str, value: &str, is_required: bool, hint: &str) -> Markup {
    html! {
        label { code { (label) } @if !hint.is_empty() { span.hint { (hint) } }
            input name=(name) value=(value) required[is_required] maxlength="1024" autocomplete="off" spellcheck="false";
        }
    }
}

fn typed(form: &Form, field: &Field) -> Markup {
    let hint = form.hint(field);
    html! {
        @match field.input {
            Input::Text => (line(field.path, field.path, field.value, field.is_required, hint)),
            Input::Check => {
                label.check {
                    input type="checkbox" name=(field.path) value="true" checked[field.value == "true"];
                    " " code { (field.path) } span.hint { (hint) }
                }
            },
            Input::Choice(of) => {
                label { code { (field.path) } span.hint { (hint) }
                    select name=(field.path) { @for word in of { option selected[*word == field.value] { (word) } } }
                }
            },
            Input::Yaml | Input::Environments => {
                label { code { (field.path) } span.hint { (hint) }
                    textarea name=(field.path) rows="6" spellcheck="false" required[field.is_required]
                        placeholder=[(field.input == Input::Environments).then_some("dev: shop-dev\nproduction: shop-eu shop-us")] {}
                }
            },
        }
    }
}

fn chart_value(value: &ChartValue) -> Markup {
    let name = value.name();
    let words: Vec<&str> = match &value.kind {
        Kind::Boolean => vec!["true", "false"],
        Kind::Choice(words) => words.iter().map(String::as_str).collect(),
        Kind::Text | Kind::Integer | Kind::Number => Vec::new(),
    };
    html! {
        label { code { (value.path()) } span.hint { (value.hint) }
            @if words.is_empty() {
                input name=(name) maxlength="1024" autocomplete="off" spellcheck="false"
                    inputmode=[(value.kind != Kind::Text).then_some("decimal")];
            } @else {
                select name=(name) { option value="" {} @for word in words { option { (word) } } }
            }
        }
    }
}

/// A draft, with what it would change.
pub fn draft(view: &View, draft: &Draft, around: &Around<'_>) -> Shown {
    let texts = view.texts;
    let is_new = draft.object.is_empty();
    let title = match is_new {
        true => texts.new.to_owned(),
        false => format!("{} {}", texts.edit, draft.path),
    };
    let may_propose = around.preview.is_some() && around.problem.is_none() && !around.policies.is_empty();
    let main = html! {
        h1 { (title) }
        p {
            "Kustomization " (kustomization(draft)) " · " code { (draft.path) }
            @if !around.revision.is_empty() { " · " (element::revision(around.revision)) }
        }
        @if around.is_outside { p.why { (texts.outside) } }
        @if let Some(problem) = around.problem { p.problem role="alert" { (problem) } }
        @if let Some(preview) = &around.preview { (shown(view, preview)) }
        form.edit method="post" action="/changes" {
            @for (name, value) in [
                ("cluster", &draft.cluster), ("kustomization", &draft.kustomization), ("object", &draft.object), ("digest", &draft.digest),
            ] {
                input type="hidden" name=(name) value=(value);
            }
            @if is_new { (line("path", texts.path_in_repository, &draft.path, true, "")) }
            @else { input type="hidden" name="path" value=(draft.path); }
            label { (texts.manifest)
                // A browser drops the first newline of it.
                textarea.manifest name="content" rows="24" spellcheck="false" required { "\n" (draft.content) }
            }
            (line("title", texts.title, &draft.title, true, ""))
            label { (texts.reason)
                textarea name="reason" rows="3" maxlength="1000" { "\n" (draft.reason) }
            }
            @if around.policies.is_empty() { p.why { (texts.no_policies) } } @else {
                label { code { "ChangePolicy" } span.hint { (texts.which_policy) }
                    select name="policy" {
                        @for policy in around.policies { option selected[*policy == draft.policy] { (policy) } }
                    }
                }
            }
            p {
                button name="step" value="preview" { (texts.preview) }
                @if may_propose { " " button name="step" value="propose" { (texts.open_pull_request) } }
            }
        }
    };
    plain(&title, main)
}

fn kustomization(draft: &Draft) -> Markup {
    html! {
        @match draft.kustomization.split_once('/') {
            Some((namespace, name)) => a href=(link::object(&draft.cluster, "Kustomization", namespace, name)) { (draft.kustomization) },
            None => (draft.kustomization),
        }
    }
}

fn shown(view: &View, preview: &Preview<'_>) -> Markup {
    let texts = view.texts;
    html! {
        section #preview {
            h2 { (texts.in_git) }
            @if preview.files.is_empty() { p { (texts.no_differences) } }
            @for (path, lines) in preview.files {
                details.diff open {
                    summary { code { (path) } }
                    pre.lines tabindex="0" {
                        @for line in *lines {
                            @match line.chars().next() {
                                Some('+') => ins { (line) },
                                Some('-') => del { (line) },
                                _ => span { (line) },
                            }
                        }
                    }
                }
            }
            h2 { (texts.in_cluster) }
            @if preview.objects.is_empty() { p { (texts.no_differences) } }
            @for object in preview.objects { (changed(object)) }
            @for note in preview.notes { p.why { (note) } }
        }
    }
}

fn plain(title: &str, main: Markup) -> Shown {
    Shown {
        title: title.to_owned(),
        mood: Mood::Good,
        main,
        parts: Vec::new(),
        frame: None,
    }
}

/// What a ChangeRequest asks for, as a part of its page.
pub fn request(view: &View, object: &Value) -> Markup {
    use delivery_graph::object::{list, text};
    let texts = view.texts;
    let (state, url) = (
        text(object, "/status/pullRequest/state"),
        text(object, "/status/pullRequest/url"),
    );
    html! {
        section #request {
            h2 { (text(object, "/spec/title")) }
            @if !text(object, "/spec/requestedBy").is_empty() { p { (text(object, "/spec/requestedBy")) } }
            @if !text(object, "/spec/reason").is_empty() { p.why { (text(object, "/spec/reason")) } }
            @if !url.is_empty() { p { (texts.pull_request) " " (element::outside(url)) " " (state) } }
            @if let Some(revert) = object.pointer("/spec/revert") {
                p { code { (text(revert, "/from")) } " → " code { (text(revert, "/to")) } " " code { (text(revert, "/path")) } }
            }
            @for file in list(object, "/spec/files").iter().take(20) {
                details.diff {
                    summary { code { (text(file, "/path")) } " " (text(file, "/object/kind")) " " (text(file, "/object/name")) }
                    pre.lines tabindex="0" { (text(file, "/content")) }
                }
            }
        }
    }
}
