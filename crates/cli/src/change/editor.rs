//! The user's editor.

use std::fs;
use std::io::Write as _;
use std::process::Command;

use crate::cluster::Failure;

/// What is started if neither $VISUAL nor $EDITOR names another one.
const EDITOR: &str = "vi";

/// Has a text edited, in a file with the ending of its own.
pub(super) fn edit(path: &str, text: &str) -> Result<String, Failure> {
    let failed = |what: &str, why: &dyn std::fmt::Display| Failure::Usage(format!("failed to {what}: {why}"));
    let file = tempfile::Builder::new()
        .prefix("windlass-")
        .suffix(".yaml")
        .tempfile();
    let mut file = file.map_err(|error| failed("make a file for the editor", &error))?;
    file.write_all(text.as_bytes())
        .and_then(|()| file.flush())
        .map_err(|error| failed("write the file for the editor", &error))?;
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
    let editor = variable("VISUAL")
        .or_else(|| variable("EDITOR"))
        .unwrap_or_else(|| EDITOR.to_owned());
    // As Git does: the variable may have arguments.
    let mut words = editor.split_whitespace();
    let program = words.next().unwrap_or(EDITOR);
    let ended = Command::new(program).args(words).arg(file.path()).status();
    let ended = ended.map_err(|error| failed(&format!("start {program}"), &error))?;
    if !ended.success() {
        return Err(Failure::Usage(format!(
            "{program} ended with {ended}: {path} is left as it is"
        )));
    }
    // Editors may have put another file in its place.
    fs::read_to_string(file.path()).map_err(|error| failed("read what was edited", &error))
}
