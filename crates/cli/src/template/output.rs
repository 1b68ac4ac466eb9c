//! Prints what was rendered, or writes it to files.

use helm_render::Rendered;

use super::flags::Settings;
use super::helm_version::print;
use super::{Failure, output_folder, show_only};

/// Writes to standard output, or to files.
pub(super) fn write(rendered: &Rendered, settings: &Settings) -> Result<(), Failure> {
    let text = match &settings.output_folder {
        None => rendered.printed(settings.shown),
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
