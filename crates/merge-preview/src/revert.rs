//! What takes back how the files of a Kustomization changed from one commit to a later one. Contents are not read: those of the earlier
//! commit are in the repository already.

use std::collections::BTreeSet;

use flux_spec::build::KUSTOMIZATION_FILES;
use git_client::edit::{Changes, Content};

use crate::reach::{self, Names, Reach};
use crate::tree::Tree;

/// Which files are taken back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// Those of builds of these folders: what is below them, and what kustomizations in them lead to.
    Built(Vec<String>),
    /// One file.
    File(String),
}

/// Why nothing is taken back.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    /// It is not known which files matter.
    #[error(
        "what the Kustomization is built from cannot be found out: a kustomization.yaml cannot be read, or leads to too many folders"
    )]
    Unknown,
    /// There is nothing to take back.
    #[error("no file that it is built from differs between the two revisions")]
    Same,
    /// Others changed the same files since.
    #[error("changed again since, so revert by hand: {}", listed(.0))]
    Changed(Vec<String>),
}

/// Names in a message; more are counted.
const MAX_NAMES: usize = 10;

fn listed(paths: &[String]) -> String {
    let shown = paths[..paths.len().min(MAX_NAMES)].join(", ");
    match paths.len().saturating_sub(MAX_NAMES) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Takes back, in the files of a commit, what changed in those of the scope from one commit to a later one. Files that `may_change` does
/// not accept stay as they are, and so do those that are neither YAML nor named by a kustomization: they are no part of a build. Returns nothing if it is taken back already. Blocks.
///
/// # Errors
/// When that cannot be told, nothing changed, or a file has been changed again since.
pub fn revert(
    now: &Tree,
    (good, bad): (&Tree, &Tree),
    scope: &Scope,
    may_change: impl Fn(&str) -> bool,
) -> Result<Changes, Error> {
    taken_back([good, bad, now], scope, may_change)
}

fn taken_back<C: Commit>(
    [good, bad, now]: [&C; 3],
    scope: &Scope,
    may_change: impl Fn(&str) -> bool,
) -> Result<Changes, Error> {
    let paths = match scope {
        Scope::File(path) => [path.clone()].into(),
        Scope::Built(folders) => built(good, bad, folders)?,
    };
    let (mut changes, mut conflicts, mut differ) = (Changes::new(), Vec::new(), false);
    for path in paths.into_iter().filter(|path| may_change(path)) {
        let [was, became, is] = [good, bad, now].map(|commit| commit.stored(&path));
        if was == became {
            continue;
        }
        differ = true;
        if is == was {
            continue;
        }
        match is == became {
            true => _ = changes.insert(path, was),
            false => conflicts.push(path),
        }
    }
    match (differ, conflicts.is_empty()) {
        (false, _) => Err(Error::Same),
        (true, false) => Err(Error::Changed(conflicts)),
        (true, true) => Ok(changes),
    }
}

/// The paths of files that builds of the folders read, in any of the commits.
fn built<C: Commit>(good: &C, bad: &C, folders: &[String]) -> Result<BTreeSet<String>, Error> {
    let mut reach = reach::places(good, folders.to_vec()).ok_or(Error::Unknown)?;
    // A kustomization that cannot be read may be what is to be taken back.
    let of_bad = reach::places(bad, folders.to_vec()).unwrap_or_default();
    reach.places.extend(of_bad.places);
    reach.named.extend(of_bad.named);
    let Reach { places, named } = reach;
    let mut paths = BTreeSet::new();
    for commit in [good, bad] {
        for place in &places {
            paths.extend(commit.below(place).map(str::to_owned));
            paths.extend(commit.stored(place).map(|_| place.clone()));
        }
    }
    paths.retain(|path| is_yaml(path) || is_kustomization(path) || named.contains(path));
    Ok(paths)
}

fn is_yaml(path: &str) -> bool {
    path.ends_with(".yaml") || path.ends_with(".yml")
}

/// One of their names has no ending.
fn is_kustomization(path: &str) -> bool {
    KUSTOMIZATION_FILES.contains(&path.rsplit('/').next().unwrap_or_default())
}

/// The files of a commit.
trait Commit: Names {
    /// What it has at a path; None if it has no file there.
    fn stored(&self, path: &str) -> Option<Content>;
}

impl Commit for Tree {
    fn stored(&self, path: &str) -> Option<Content> {
        let id = *self.files.get(path)?;
        let executable = self.programs.contains(path);
        Some(Content::Stored { id, executable })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use git_client::ObjectId;

    use super::*;
    use crate::snapshot::{below, start_of};

    struct Texts(BTreeMap<&'static str, &'static str>);

    impl Names for Texts {
        fn below<'a>(&'a self, folder: &'a str) -> impl Iterator<Item = &'a str> {
            let start = start_of(folder);
            let from = self.0.keys().copied();
            below(from.skip_while(move |path| *path < start.as_str()), folder)
        }

        fn content(&self, path: &str) -> Vec<u8> {
            self.0
                .get(path)
                .map(|text| text.as_bytes().to_vec())
                .unwrap_or_default()
        }
    }

    impl Commit for Texts {
        fn stored(&self, path: &str) -> Option<Content> {
            self.0.get(path).map(|text| stored(text))
        }
    }

    /// A name for a text.
    fn stored(text: &str) -> Content {
        let mut name = [0; 20];
        let bytes = text.as_bytes();
        name[..bytes.len().min(20)].copy_from_slice(&bytes[..bytes.len().min(20)]);
        Content::Stored {
            id: ObjectId::from(name),
            executable: text.contains("#!"),
        }
    }

    fn back(commits: [&[(&'static str, &'static str)]; 3], scope: &Scope) -> Result<Changes, Error> {
        let commits = commits.map(|files| Texts(files.iter().copied().collect()));
        taken_back(commits.each_ref(), scope, |path| !path.starts_with("app/.hidden"))
    }

    fn app() -> Scope {
        Scope::Built(vec!["app".to_owned()])
    }

    #[test]
    fn changed_added_and_deleted_files_become_what_they_were() {
        let good = [("app/a.yaml", "1"), ("app/gone.yml", "#!"), ("other", "1")];
        let bad = [("app/a.yaml", "2"), ("app/new.yaml", "1"), ("other", "2")];
        let changes = back([&good, &bad, &bad], &app()).unwrap();
        let expected = [
            ("app/a.yaml", Some(stored("1"))),
            ("app/gone.yml", Some(stored("#!"))),
            ("app/new.yaml", None),
        ];
        let expected: Changes = expected.map(|(path, content)| (path.to_owned(), content)).into();
        assert_eq!(changes, expected);
        let one = back([&good, &bad, &bad], &Scope::File("other".to_owned())).unwrap();
        assert_eq!(one.into_keys().collect::<Vec<_>>(), ["other"]);
    }

    #[test]
    fn what_kustomizations_lead_to_belongs_to_it() {
        let build = ("app/kustomization.yaml", "resources: [../base, ../one.yaml]");
        let good = [build, ("base/x.yaml", "1"), ("one.yaml", "1"), ("else", "1")];
        let bad = [build, ("base/x.yaml", "2"), ("one.yaml", "2"), ("else", "2")];
        let changes = back([&good, &bad, &bad], &app()).unwrap();
        assert_eq!(
            changes.into_keys().collect::<Vec<_>>(),
            ["base/x.yaml", "one.yaml"]
        );
        // It leads there in one of the commits only.
        let good = [("app/kustomization.yaml", "resources: []"), ("base/x.yaml", "1")];
        let changes = back([&good, &bad, &bad], &app()).unwrap();
        let expected = ["app/kustomization.yaml", "base/x.yaml", "one.yaml"];
        assert_eq!(changes.into_keys().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn programs_of_the_repository_are_no_part_of_a_build() {
        let build = (
            "app/kustomization.yaml",
            "configMapGenerator: [{name: a, files: [run=conf/run.sh, ../top.sh]}]",
        );
        let good = [
            build,
            ("app/conf/run.sh", "1"),
            ("app/ci/test.sh", "1"),
            ("top.sh", "1"),
            ("Makefile", "1"),
        ];
        let bad = [
            build,
            ("app/conf/run.sh", "2"),
            ("app/ci/test.sh", "2"),
            ("top.sh", "2"),
            ("Makefile", "2"),
        ];
        let changes = back([&good, &bad, &bad], &app()).unwrap();
        assert_eq!(
            changes.into_keys().collect::<Vec<_>>(),
            ["app/conf/run.sh", "top.sh"]
        );
    }

    #[test]
    fn what_others_changed_since_is_not_overwritten() {
        let (good, bad) = (
            [("app/a.yaml", "1"), ("app/b.yaml", "1")],
            [("app/a.yaml", "2"), ("app/b.yaml", "2")],
        );
        let now = [("app/a.yaml", "3"), ("app/b.yaml", "2")];
        let error = back([&good, &bad, &now], &app()).unwrap_err();
        assert_eq!(error, Error::Changed(vec!["app/a.yaml".to_owned()]));
        // Deleted is changed as well.
        assert!(back([&good, &bad, &[("app/b.yaml", "2")]], &app()).is_err());
        // Half of it is taken back already.
        let changes = back([&good, &bad, &[("app/a.yaml", "1"), ("app/b.yaml", "2")]], &app()).unwrap();
        assert_eq!(changes.into_keys().collect::<Vec<_>>(), ["app/b.yaml"]);
        assert_eq!(back([&good, &bad, &good], &app()).unwrap(), Changes::new());
    }

    #[test]
    fn nothing_is_taken_back_where_nothing_changed_or_may() {
        let good = [("app/a.yaml", "1"), ("app/.hidden", "1")];
        let bad = [("app/a.yaml", "1"), ("app/.hidden", "2")];
        assert_eq!(back([&good, &bad, &bad], &app()), Err(Error::Same));
        let broken = [("app/a.yaml", "2"), ("app/kustomization.yaml", "a: [")];
        assert_eq!(back([&broken, &good, &good], &app()), Err(Error::Unknown));
        let changes = back([&good, &broken, &broken], &app()).unwrap();
        let expected = ["app/a.yaml", "app/kustomization.yaml"];
        assert_eq!(changes.into_keys().collect::<Vec<_>>(), expected);
    }
}
