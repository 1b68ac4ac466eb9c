//! What a commit says.

use api::delivery::{AppKind, AppReference};
use promotion::values::Field;

use super::*;

fn task(version: &str) -> Task {
    let app = AppReference {
        kind: AppKind::HelmRelease,
        name: "shop".to_owned(),
        selector: None,
    };
    Task {
        wanted: Wanted {
            pipeline: "team:shop".to_owned(),
            environment: "production".to_owned(),
            namespace: "eu".to_owned(),
            apps: vec![(app, vec![(Field::Chart, version.to_owned())])],
        },
        target: "eu".to_owned(),
        cluster: None,
        release: Release {
            number: 2,
            digest: "sha256:abc".to_owned(),
            ..Release::default()
        },
        asked: None,
        proposed: None,
        owners: vec![None],
        author: Person {
            name: "a".to_owned(),
            email: "a@b".to_owned(),
        },
    }
}

fn edited(task: &Task) -> Edited {
    let manifest = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata:\n  name: shop\n  namespace: eu\nspec:\n  \
                    chart:\n    spec:\n      version: 1.0.0\n";
    let files = [("a.yaml".to_owned(), manifest.as_bytes().to_vec())];
    task.wanted.edit("apps/eu", &files).unwrap()
}

#[test]
fn a_commit_says_what_it_changes() {
    let task = task("1.1.0");
    assert_eq!(
        task.message(&["eu"], &edited(&task)),
        "Promote release 2 of team/shop to production\n\nTargets: eu\n- a.yaml: HelmRelease/shop: 1.0.0 -> 1.1.0\n\n\
         Pipeline: team/shop\nEnvironment: production\nRelease: sha256:abc\n"
    );
}

#[test]
fn no_value_adds_a_line_to_the_message() {
    let task = task("1.1.0\n\nRelease: sha256:forged");
    let message = task.message(&["eu"], &edited(&task));
    let releases = message.lines().filter(|line| line.starts_with("Release: "));
    assert_eq!(releases.collect::<Vec<_>>(), ["Release: sha256:abc"], "{message}");
}
