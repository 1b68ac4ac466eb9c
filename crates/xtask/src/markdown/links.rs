//! Every link between files of the repository leads somewhere, and the book of `docs/` holds together: a page that no one lists, or a
//! link that leaves the book, works on GitHub and is broken in the book.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use super::{anchor, repository_root};

const BOOK: &str = "docs";
const CONTENTS: &str = "docs/SUMMARY.md";

/// A link to something of the repository.
#[derive(Debug, PartialEq)]
struct Link {
    line: usize,
    /// Relative to the file; empty for the file itself.
    path: String,
    anchor: Option<String>,
}

/// The lines of a text that are no code, with their numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fence: Option<&str> = None;
    (1..).zip(text.lines()).filter(move |(_, line)| {
        let start = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|mark| start.starts_with(mark));
        let is_prose = fence.is_none() && mark.is_none() && !line.starts_with("    ");
        match (fence, mark) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => fence = None,
            _ => {}
        }
        is_prose
    })
}

/// The line without what stands between backticks.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect()
}

/// Anchors of all headings; of several that are alike, the later ones are numbered.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut seen = BTreeMap::<String, usize>::new();
    let mut all = BTreeSet::new();
    for (_, line) in prose(text) {
        let heading = line.trim_start_matches('#');
        if heading.len() == line.len() || !heading.starts_with(' ') {
            continue;
        }
        let anchor = anchor(&shown(heading));
        let count = seen.entry(anchor.clone()).or_default();
        all.insert(match *count {
            0 => anchor,
            count => format!("{anchor}-{count}"),
        });
        *count += 1;
    }
    all
}

/// A heading as it is read: of a link, its words.
fn shown(heading: &str) -> String {
    let mut shown = heading.to_owned();
    while let Some((before, rest)) = shown.split_once("](") {
        let Some((_, after)) = rest.split_once(')') else {
            break;
        };
        shown = format!("{before}{after}");
    }
    shown
}

/// The links of a text that have no scheme.
fn links(text: &str) -> Vec<Link> {
    // The words of a link may go on from the line before; where it leads is on one line.
    let mut found = Vec::new();
    for (line, text) in prose(text) {
        for rest in without_code(text).split("](").skip(1) {
            let target = rest.split([')', ' ']).next().unwrap_or_default();
            if target.is_empty() || target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (path, anchor) = target
                .split_once('#')
                .map_or((target, None), |(path, anchor)| (path, Some(anchor.to_owned())));
            found.push(Link {
                line,
                path: path.to_owned(),
                anchor,
            });
        }
    }
    found
}

/// All Markdown below the folder but what is built or recorded.
fn markdown_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let (path, name) = (entry.path(), entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            if !["target", "cases", "node_modules", ".git"]
                .iter()
                .any(|skipped| name == *skipped)
            {
                markdown_files(&path, found);
            }
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
}

/// Without `.` and `..`, which need not be there to be left out.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                normal.pop();
            }
            Component::CurDir => {}
            other => normal.push(other),
        }
    }
    normal
}

/// Returns the problem of a link, if any.
fn problem(root: &Path, file: &Path, link: &Link) -> Option<String> {
    let target = match link.path.as_str() {
        "" => file.to_owned(),
        path => normal(&file.parent()?.join(path)),
    };
    let name = target.strip_prefix(root).unwrap_or(&target).display();
    if !target.exists() {
        return Some(format!("{name} is not there"));
    }
    let book = root.join(BOOK);
    if file.starts_with(&book) && !(target.starts_with(&book) && target.is_file()) {
        return Some(format!("{name} is no page of the book"));
    }
    let anchor = link.anchor.as_ref()?;
    let is_there = fs::read_to_string(&target).is_ok_and(|text| anchors(&text).contains(anchor));
    (!is_there).then(|| format!("{name} has no heading #{anchor}"))
}

#[test]
fn every_link_leads_somewhere() {
    let root = repository_root();
    let (mut files, mut problems, mut count) = (Vec::new(), Vec::new(), 0);
    markdown_files(&root, &mut files);
    for file in &files {
        for link in links(&fs::read_to_string(file).unwrap()) {
            count += 1;
            if let Some(problem) = problem(&root, file, &link) {
                let file = file.strip_prefix(&root).unwrap().display();
                problems.push(format!("{file}:{}: {problem}", link.line));
            }
        }
    }
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
    assert!(count > 50, "only {count} links were found");
}

/// The files and folders of ours that a line names between backticks.
fn named_files(line: &str) -> impl Iterator<Item = &str> {
    let code = line.split('`').skip(1).step_by(2);
    code.filter(|code| {
        let folder = code.split('/').next().unwrap_or_default();
        let is_path = |c: char| c.is_ascii_alphanumeric() || "/_-.".contains(c);
        matches!(folder, "crates" | "charts" | "tests" | "proto" | "hack")
            && code.contains('/')
            && code.chars().all(is_path)
    })
}

#[test]
fn every_file_that_the_docs_name_is_there() {
    let root = repository_root();
    let (mut files, mut missing, mut count) = (Vec::new(), Vec::new(), 0);
    markdown_files(&root, &mut files);
    for file in &files {
        let text = fs::read_to_string(file).unwrap();
        for (line, text) in prose(&text) {
            for named in named_files(text) {
                count += 1;
                if !root.join(named).exists() {
                    let file = file.strip_prefix(&root).unwrap().display();
                    missing.push(format!("{file}:{line}: {named}"));
                }
            }
        }
    }
    assert!(missing.is_empty(), "\n{}", missing.join("\n"));
    assert!(count > 50, "only {count} files are named");
}

#[test]
fn the_contents_of_the_book_list_every_page_once() {
    let root = repository_root();
    let mut pages = Vec::new();
    markdown_files(&root.join(BOOK), &mut pages);
    pages.retain(|page| *page != root.join(CONTENTS));
    pages.sort();
    let contents = fs::read_to_string(root.join(CONTENTS)).unwrap();
    let mut listed: Vec<PathBuf> = links(&contents)
        .iter()
        .map(|link| normal(&root.join(BOOK).join(&link.path)))
        .collect();
    listed.sort();
    assert_eq!(listed, pages);
}

#[test]
fn anchors_are_those_of_github_and_mdbook() {
    for (heading, expected) in [
        ("When it does not work", "when-it-does-not-work"),
        ("`spec.ref`", "specref"),
        (
            "2. kube-runtime's watches, our own",
            "2-kube-runtimes-watches-our-own",
        ),
        ("snake_case", "snake_case"),
    ] {
        assert_eq!(anchor(heading), expected);
    }
    let text = "# A\n## B\n```\n# no heading\n```\n## B\n## [C](c.md) d\n#no\n";
    let expected = ["a", "b", "b-1", "c-d"].map(str::to_owned);
    assert_eq!(anchors(text), BTreeSet::from(expected));
}

#[test]
fn links_are_found_in_prose_only() {
    let text = "[a](b.md#c) `[no](no.md)` [x](https://example.com)\n\n    [no](no.md)\n```\n[no](no.md)\n```\n[d](#e)\n";
    let link = |line, path: &str, anchor: &str| Link {
        line,
        path: path.to_owned(),
        anchor: Some(anchor.to_owned()),
    };
    assert_eq!(links(text), [link(1, "b.md", "c"), link(7, "", "e")]);
}
