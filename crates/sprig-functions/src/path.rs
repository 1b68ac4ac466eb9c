//! Paths with slashes: `base`, `dir`, `clean`, `ext`, `isAbs`, and the same for those of the system.
//!
//! Charts are rendered as on Linux, where both kinds of path are the same.

use go_template::{Functions, Type};

use crate::arguments::{add, made, text};

const PATH: &[Type] = &[Type::STRING];

pub(crate) fn register(functions: &mut Functions) {
    add(
        functions,
        &[
            ("base", PATH, |_, arguments| {
                made(base(text(arguments, 0)).to_vec())
            }),
            ("dir", PATH, |_, arguments| made(directory(text(arguments, 0)))),
            ("clean", PATH, |_, arguments| made(clean(text(arguments, 0)))),
            ("ext", PATH, |_, arguments| {
                made(extension(text(arguments, 0)).to_vec())
            }),
            ("isAbs", PATH, |_, arguments| {
                Ok(text(arguments, 0).starts_with(b"/").into())
            }),
            ("osBase", PATH, |_, arguments| {
                made(base(text(arguments, 0)).to_vec())
            }),
            ("osDir", PATH, |_, arguments| made(directory(text(arguments, 0)))),
            ("osClean", PATH, |_, arguments| made(clean(text(arguments, 0)))),
            ("osExt", PATH, |_, arguments| {
                made(extension(text(arguments, 0)).to_vec())
            }),
            ("osIsAbs", PATH, |_, arguments| {
                Ok(text(arguments, 0).starts_with(b"/").into())
            }),
        ],
    );
}

/// The last element (path.Base).
fn base(path: &[u8]) -> &[u8] {
    if path.is_empty() {
        return b".";
    }
    let end = path.iter().rposition(|&b| b != b'/').map_or(0, |at| at + 1);
    match path[..end].rsplit(|&b| b == b'/').next() {
        Some(b"") | None => b"/",
        Some(last) => last,
    }
}

/// Returns the path before the last element, cleaned (path.Dir).
fn directory(path: &[u8]) -> Vec<u8> {
    let end = path.iter().rposition(|&b| b == b'/').map_or(0, |at| at + 1);
    clean(&path[..end])
}

/// The last element from its last point on (path.Ext).
fn extension(path: &[u8]) -> &[u8] {
    let last = path.rsplit(|&b| b == b'/').next().unwrap_or_default();
    let point = last.iter().rposition(|&b| b == b'.');
    point.map_or(b"", |point| &last[point..])
}

/// The shortest path of the same meaning (path.Clean).
fn clean(path: &[u8]) -> Vec<u8> {
    let is_rooted = path.starts_with(b"/");
    let mut elements: Vec<&[u8]> = Vec::new();
    for element in path.split(|&b| b == b'/') {
        match element {
            b"" | b"." => {}
            b".." if elements.last().is_some_and(|last| *last != b"..") => {
                elements.pop();
            }
            b".." if is_rooted => {}
            element => elements.push(element),
        }
    }
    let cleaned = elements.join(&b'/');
    match (is_rooted, cleaned.is_empty()) {
        (true, _) => [b"/", cleaned.as_slice()].concat(),
        (false, true) => b".".to_vec(),
        (false, false) => cleaned,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_taken_apart_as_go_does() {
        for (path, [base_, directory_, clean_, extension_]) in [
            ("", [".", ".", ".", ""]),
            ("/", ["/", "/", "/", ""]),
            ("///", ["/", "/", "/", ""]),
            ("a", ["a", ".", "a", ""]),
            ("a/b.c.d/", ["b.c.d", "a/b.c.d", "a/b.c.d", ""]),
            ("/x/y.z", ["y.z", "/x", "/x/y.z", ".z"]),
            ("a/./b/../c//d", ["d", "a/c", "a/c/d", ""]),
            ("/../a", ["a", "/", "/a", ""]),
            ("../../a", ["a", "../..", "../../a", ""]),
            ("a/..", ["..", "a", ".", "."]),
            (".x", [".x", ".", ".x", ".x"]),
        ] {
            let path = path.as_bytes();
            assert_eq!(base(path), base_.as_bytes(), "base {path:?}");
            assert_eq!(directory(path), directory_.as_bytes(), "dir {path:?}");
            assert_eq!(clean(path), clean_.as_bytes(), "clean {path:?}");
            assert_eq!(extension(path), extension_.as_bytes(), "ext {path:?}");
        }
    }

    #[test]
    fn paths_of_the_system_are_the_same() {
        let template = r#"{{ osBase "/x/y.z" }} {{ osDir "/x/y.z" }} {{ osExt "y.z" }} {{ osClean "a/./b" }} {{ osIsAbs "/x" }} {{ isAbs "x" }}"#;
        crate::testing::check(template, &go_template::Value::Nil, "y.z /x .z a/b true false");
    }
}
