//! Writes what was rendered into a folder, a file for each template.

use std::collections::HashSet;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;

use helm_render::Rendered;
use helm_render::printed::add_document;

use super::flags::Settings;
use super::helm_version::print;
use super::{Failure, name};

/// Writes the files, and prints the name of each.
pub(super) fn write(rendered: &Rendered, folder: &str, settings: &Settings) -> Result<(), Failure> {
    let of_release = match settings.use_release_name {
        true => format!(
            "{}/{}",
            folder.trim_end_matches('/'),
            name::name_and_chart(settings)?.0
        ),
        false => folder.to_owned(),
    };
    let mut written = HashSet::new();
    if settings.shown.crds {
        // CRDs belong to no release.
        for crd in &rendered.crds {
            let appended = !written.insert((false, crd.path.clone()));
            write_file(folder, &crd.path, &crd.content, appended)?;
        }
    }
    for manifest in &rendered.manifests {
        let appended = !written.insert((true, manifest.path.to_string()));
        write_file(&of_release, &manifest.path, &manifest.content, appended)?;
    }
    for hook in rendered.shown_hooks(settings.shown) {
        // Helm adds hooks to whatever file is there, even from another time.
        let appended = Path::new(&of_release).join(&*hook.path).exists();
        write_file(&of_release, &hook.path, &hook.content, appended)?;
    }
    Ok(())
}

fn write_file(folder: &str, path: &str, content: &str, append: bool) -> Result<(), Failure> {
    let name = format!("{folder}/{path}");
    let failure = |operation| move |error: std::io::Error, name: &str| Failure::path(operation, name, &error);
    if let Some(parent) = Path::new(&name).parent() {
        fs::create_dir_all(parent).map_err(|error| failure("mkdir")(error, &parent.to_string_lossy()))?;
    }
    let mut options = OpenOptions::new();
    if append {
        options.append(true);
    } else {
        options.write(true).create(true).truncate(true);
    }
    let mut text = String::new();
    add_document(&mut text, path, content);
    let file = options.open(&name);
    file.and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|error| failure("open")(error, &name))?;
    print(format!("wrote {name}\n").as_bytes())
}
