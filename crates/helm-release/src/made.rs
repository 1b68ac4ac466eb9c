//! From what was rendered to the release that Helm stores before it applies anything.

use std::fmt::Write as _;

use helm_render::Rendered;
use helm_render::manifest::{self, Manifest};
use serde_json::{Map, Value};

use crate::chart::Chart;
use crate::release::{Hook, Release};

/// Makes a release of what was rendered for it; what became of it ([`Release::info`], but for the notes) and how it is
/// applied are the action's to say. `config` are the values that were given.
#[must_use]
pub fn release(
    rendered: Rendered,
    (name, namespace): (&str, &str),
    version: i64,
    config: Map<String, Value>,
) -> Release {
    let mut release = Release {
        name: name.to_owned(),
        namespace: namespace.to_owned(),
        version,
        config,
        manifest: manifest(&rendered.manifests),
        hooks: rendered.hooks.into_iter().map(hook).collect(),
        chart: Some(Chart::from_chart(rendered.chart)),
        ..Release::default()
    };
    release.info.notes = rendered.notes;
    release
}

/// Joins manifests, in their order, to the text that stands in the record and is read again for every later action.
#[must_use]
pub fn manifest(manifests: &[Manifest]) -> String {
    let mut text = String::new();
    for manifest in manifests {
        let written = writeln!(text, "---\n# Source: {}\n{}", manifest.path, manifest.content);
        debug_assert!(written.is_ok(), "a text takes everything");
    }
    text
}

fn hook(hook: manifest::Hook) -> Hook {
    Hook {
        name: hook.name,
        kind: hook.kind,
        path: hook.path.to_string(),
        manifest: hook.content,
        events: hook.events.iter().map(ToString::to_string).collect(),
        weight: hook.weight,
        delete_policies: hook.delete_policies,
        output_log_policies: hook.output_log_policies,
        ..Hook::default()
    }
}
