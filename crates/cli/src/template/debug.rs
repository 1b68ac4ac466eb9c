//! `--debug`: shows what was rendered although it is no YAML.

use helm_render::Error;
use helm_render::printed::add_document;

use super::flags::Settings;
use super::helm_version::print;
use super::{Failure, show_only};

/// Prints the rendered files, if the error is about one of them.
pub(super) fn write(error: &Error, settings: &Settings) -> Result<(), Failure> {
    let mut text = String::new();
    for (path, content) in error.rendered() {
        let content = String::from_utf8_lossy(content);
        if !content.trim().is_empty() {
            add_document(&mut text, path, &content);
        }
    }
    let text = format!("{}\n", text.trim());
    if settings.show_only.is_empty() {
        return print(text.as_bytes());
    }
    let (shown, missing) = show_only::choose(&text, settings);
    match missing {
        // What is asked for may be what could not be rendered.
        Some(_) => Ok(()),
        None => print(shown.as_bytes()),
    }
}
