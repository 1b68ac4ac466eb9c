//! Which file imports which: `use` declarations, read without a parser of Rust.

use std::collections::{BTreeMap, BTreeSet};

/// A file by its path below the crate; the root is empty.
pub(super) type Module = Vec<String>;

/// Re-exports that are followed for one name.
const MAX_HOPS: usize = 8;

/// One name that a `use` brings in.
struct Import {
    name: String,
    path: Vec<String>,
    /// It is passed on to others.
    is_public: bool,
}

/// The files from which each file imports something.
pub(super) fn edges(modules: &BTreeMap<Module, String>) -> BTreeMap<Module, BTreeSet<Module>> {
    let imports: BTreeMap<_, _> = modules
        .iter()
        .map(|(module, text)| (module.clone(), read(text)))
        .collect();
    let mut edges = BTreeMap::new();
    for (module, own) in &imports {
        let private = own.iter().filter(|import| !import.is_public);
        let files = private.filter_map(|import| resolve(module, &import.path, &imports, 0));
        let files: BTreeSet<_> = files.filter(|file| file != module).collect();
        edges.insert(module.clone(), files);
    }
    edges
}

/// The file that defines what a path names; None if it is another crate's.
fn resolve(
    from: &Module,
    path: &[String],
    imports: &BTreeMap<Module, Vec<Import>>,
    hops: usize,
) -> Option<Module> {
    let mut module = from.clone();
    let mut rest = path;
    match rest.first()?.as_str() {
        "crate" => {
            module.clear();
            rest = &rest[1..];
        }
        "self" => rest = &rest[1..],
        "super" => {
            while rest.first().is_some_and(|first| first == "super") {
                module.pop()?;
                rest = &rest[1..];
            }
        }
        first if imports.contains_key(&child(&module, first)) => {}
        _ => return None,
    }
    while let Some((first, behind)) = rest.split_first() {
        let below = child(&module, first);
        if imports.contains_key(&below) {
            module = below;
            rest = behind;
            continue;
        }
        let passed_on = imports.get(&module)?.iter().find(|import| import.name == *first);
        let Some(import) = passed_on.filter(|_| hops < MAX_HOPS) else {
            break;
        };
        let further: Vec<_> = import.path.iter().chain(behind).cloned().collect();
        return resolve(&module, &further, imports, hops + 1).or(Some(module));
    }
    imports.contains_key(&module).then_some(module)
}

fn child(module: &Module, name: &str) -> Module {
    let mut child = module.clone();
    child.push(name.to_owned());
    child
}

/// The declarations of a file, without those of its tests.
fn read(text: &str) -> Vec<Import> {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    let code: String = lines.flat_map(|line| [line, "\n"]).collect();
    let mut imports = Vec::new();
    for statement in code.split(';') {
        // What stands before the declaration on lines of its own, such as attributes and closing braces.
        let Some((before, tree)) = statement.rsplit_once("use ") else {
            continue;
        };
        let before = before.rsplit('\n').next().unwrap_or_default().trim();
        if !(before.is_empty() || before.starts_with("pub")) {
            continue;
        }
        let tree: String = tree.split_whitespace().collect::<Vec<_>>().join(" ");
        for leaf in leaves(&tree) {
            let (path, alias) = leaf.split_once(" as ").unwrap_or((&leaf, ""));
            let mut path: Vec<_> = path.split("::").map(|part| part.trim().to_owned()).collect();
            if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
                path.pop();
            }
            let last = path.last().cloned().unwrap_or_default();
            imports.push(Import {
                name: if alias.is_empty() { last } else { alias.to_owned() },
                path,
                is_public: before.starts_with("pub"),
            });
        }
    }
    imports
}

/// `a::{b, c::{d}}` as `a::b` and `a::c::d`.
fn leaves(tree: &str) -> Vec<String> {
    let Some((prefix, inner)) = tree.split_once('{') else {
        return vec![tree.trim().to_owned()];
    };
    let inner = inner.rsplit_once('}').map_or(inner, |(inner, _)| inner);
    let (mut found, mut depth, mut start) = (Vec::new(), 0_usize, 0);
    for (at, character) in inner.char_indices().chain([(inner.len(), ',')]) {
        match character {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                let part = inner[start..at].trim();
                if !part.is_empty() {
                    found.extend(leaves(&format!("{}{part}", prefix.trim_start())));
                }
                start = at + 1;
            }
            _ => {}
        }
    }
    found
}
