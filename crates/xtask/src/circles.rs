//! Which files of a crate import each other in a circle, and whether they are few enough.
//!
//! In a circle, no file can be understood before the others. An edge goes from a file to the one that defines what a `use`
//! names; re-exports on the way are followed and are no edges themselves, and tests do not count.

mod graph;
mod imports;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};

use self::imports::Module;

/// Share of the files that may be in circles, in percent. Types that are defined by each other (values of templates, nodes of
/// a schema) need some.
const MAX_PERCENT: usize = 8;

/// Fails when too many files are in circles, and lists them.
#[expect(clippy::print_stdout, reason = "the report is this tool's output")]
pub(crate) fn run() -> Result<()> {
    let (mut all, mut circles) = (0, Vec::new());
    for entry in fs::read_dir("crates").context("run this in the root of the repository")? {
        let source = entry?.path().join("src");
        let modules = read(&source)?;
        all += modules.len();
        let crate_name = source.parent().and_then(Path::file_name).unwrap_or_default();
        let found = graph::circles(&imports::edges(&modules)).into_iter();
        circles.extend(found.map(|circle| (crate_name.to_string_lossy().into_owned(), circle)));
    }
    let within: usize = circles.iter().map(|(_, circle)| circle.len()).sum();
    let summary = format!(
        "{within} of {all} files are in circles of imports ({} %, at most {MAX_PERCENT} % may be)",
        within * 100 / all.max(1)
    );
    let lines = circles.iter().map(|(name, circle)| {
        let names: Vec<_> = circle.iter().map(|module| module.join("::")).collect();
        format!("{name}: {}", names.join(", "))
    });
    ensure!(
        within * 100 <= all * MAX_PERCENT,
        "{summary}:\n{}\nmove what several of them need into a file below them",
        lines.collect::<Vec<_>>().join("\n")
    );
    println!("{summary}");
    Ok(())
}

/// The files below a folder, by their paths as modules.
fn read(folder: &Path) -> Result<BTreeMap<Module, String>> {
    let mut modules = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).with_context(|| format!("failed to list {}", next.display()))? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if let Some(module) = module_of(path.strip_prefix(folder)?) {
                let text = fs::read_to_string(&path);
                let text = text.with_context(|| format!("failed to read {}", path.display()))?;
                modules.insert(module, text);
            }
        }
    }
    Ok(modules)
}

/// The path of a file as a module; None for tests, other programs, and what is no code.
fn module_of(file: &Path) -> Option<Module> {
    let path = file.to_str()?.strip_suffix(".rs")?;
    let mut parts: Vec<_> = path.split('/').map(str::to_owned).collect();
    if parts.first().is_some_and(|first| first == "bin") || parts.iter().any(|part| part == "tests") {
        return None;
    }
    if parts.len() == 1 {
        parts.retain(|part| part != "lib" && part != "main");
    }
    Some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        let modules = files.iter().filter_map(|(path, text)| {
            let module = module_of(Path::new(path))?;
            Some((module, (*text).to_owned()))
        });
        let circles = graph::circles(&imports::edges(&modules.collect()));
        let names = |circle: Vec<Module>| circle.iter().map(|module| module.join("::")).collect();
        circles.into_iter().map(names).collect()
    }

    #[test]
    fn a_child_that_needs_its_parent_is_in_a_circle_with_it() {
        let parent = "mod child;\nuse self::child::work;\npub struct Error;";
        let circle = found(&[
            ("a.rs", parent),
            ("a/child.rs", "use super::Error;\npub fn work() {}"),
            ("lib.rs", "mod a;\npub use a::Error;"),
        ]);
        assert_eq!(circle, [["a", "a::child"]]);
    }

    #[test]
    fn what_is_only_passed_on_is_followed_to_its_file() {
        let none = found(&[
            (
                "a.rs",
                "mod child;\nmod error;\npub use error::Error;\nuse self::child::{work, other as more};",
            ),
            ("a/child.rs", "use super::Error;\npub fn work() {}"),
            ("a/error.rs", "pub struct Error;"),
        ]);
        assert!(none.is_empty(), "{none:?}");
    }

    #[test]
    fn circles_lead_over_several_files_and_braces() {
        let circle = found(&[
            ("a.rs", "use crate::{b::{self, B}, d};"),
            ("b.rs", "use crate::c::C;\n// use crate::d;"),
            ("c.rs", "use crate::a::A;"),
            ("d.rs", "#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}"),
        ]);
        assert_eq!(circle, [["a", "b", "c"]]);
    }

    #[test]
    fn tests_and_other_programs_do_not_count() {
        for path in ["tests.rs", "a/tests/b.rs", "bin/x.rs", "data.json"] {
            assert_eq!(module_of(Path::new(path)), None, "{path}");
        }
        assert_eq!(module_of(Path::new("main.rs")), Some(Vec::new()));
    }
}
