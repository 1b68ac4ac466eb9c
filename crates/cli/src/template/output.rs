//! Prints what was rendered: CRDs, manifests, then hooks, each with the file that it came from.

use helm_render::Rendered;
use helm_render::manifest::Hook;

use super::flags::Settings;
use super::helm_version::print;
use super::{Failure, output_folder, show_only};

/// Writes to standard output, or to files.
pub(super) fn write(rendered: &Rendered, settings: &Settings) -> Result<(), Failure> {
    let text = match &settings.output_folder {
        None => whole(rendered, settings),
        Some(folder) => {
            output_folder::write(rendered, folder, settings)?;
            "\n".to_owned()
        }
    };
    if settings.show_only.is_empty() {
        return print(text.as_bytes());
    }
    let (shown, missing) = show_only::choose(&text, settings);
    match missing {
        Some(name) => Err(Failure::Flag(format!("could not find template {name} in chart"))),
        None => print(shown.as_bytes()),
    }
}

fn whole(rendered: &Rendered, settings: &Settings) -> String {
    let mut text = String::new();
    if settings.include_crds {
        for crd in &rendered.crds {
            add(&mut text, &crd.path, &crd.content);
        }
    }
    for manifest in &rendered.manifests {
        add(&mut text, &manifest.path, &manifest.content);
    }
    let mut text = format!("{}\n", text.trim());
    for hook in hooks(rendered, settings) {
        add(&mut text, &hook.path, &hook.content);
    }
    text
}

/// Returns the hooks that are to be shown.
pub(super) fn hooks<'a>(rendered: &'a Rendered, settings: &Settings) -> impl Iterator<Item = &'a Hook> {
    let (without_hooks, skip_tests) = (settings.without_hooks, settings.skip_tests);
    let hooks = rendered.hooks.iter();
    hooks.filter(move |hook| !(without_hooks || skip_tests && hook.is_test()))
}

/// Adds a document below the name of its file.
pub(super) fn add(text: &mut String, path: &str, content: &str) {
    text.reserve(path.len() + content.len() + 16);
    text.push_str("---\n# Source: ");
    text.push_str(path);
    text.push('\n');
    text.push_str(content);
    text.push('\n');
}
