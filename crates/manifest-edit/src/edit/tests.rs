use std::cell::RefCell;

use super::*;

const RELEASE: &str = "# of the shop\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\nspec:\n  replicas: 1 # for now\n";
const SERVICE: &str = "apiVersion: v1\nkind: Service\nmetadata:\n  name: web\n";

fn web() -> ManifestReference {
    ManifestReference {
        api_version: "apps/v1".to_owned(),
        kind: "Deployment".to_owned(),
        name: "web".to_owned(),
        namespace: Some("shop".to_owned()),
    }
}

fn replaced(path: &str, old: &str, content: &str) -> FileChange {
    FileChange {
        path: path.to_owned(),
        object: Some(web()),
        digest: Some(digest(old)),
        content: content.to_owned(),
    }
}

fn new(path: &str, content: &str) -> FileChange {
    FileChange {
        path: path.to_owned(),
        content: content.to_owned(),
        ..FileChange::default()
    }
}

fn edited(files: &[(&str, &str)], changes: &[FileChange]) -> Result<BTreeMap<String, String>, Error> {
    edit("apps", changes, |path| {
        let found = files.iter().find(|(known, _)| *known == path);
        Ok(found.map(|(_, text)| (*text).to_owned()))
    })
}

#[test]
fn a_manifest_is_replaced_where_it_stands() {
    let file = format!("{SERVICE}---\n{RELEASE}---\n{}", SERVICE.replace("web", "api"));
    let wanted = RELEASE.replace("replicas: 1", "replicas: 2");
    let done = edited(
        &[("apps/web.yaml", &file)],
        &[replaced("apps/web.yaml", RELEASE, &wanted)],
    )
    .unwrap();
    assert_eq!(done["apps/web.yaml"], file.replace("replicas: 1", "replicas: 2"));
    // A browser's ends of lines are those of the file.
    let sent = wanted.replace('\n', "\r\n");
    let again = edited(
        &[("apps/web.yaml", &file)],
        &[replaced("apps/web.yaml", RELEASE, &sent)],
    )
    .unwrap();
    assert_eq!(again, done);
    // A base may be outside of the folder: it is there already, and has the manifest.
    let base = edited(
        &[("base/web.yaml", &file)],
        &[replaced("base/web.yaml", RELEASE, &wanted)],
    );
    assert!(base.unwrap().contains_key("base/web.yaml"));
    // What is as asked for changes nothing, whatever it was before.
    let done = edited(
        &[("apps/web.yaml", &wanted)],
        &[replaced("apps/web.yaml", RELEASE, &wanted)],
    )
    .unwrap();
    assert!(done.is_empty());
}

#[test]
fn a_file_with_other_ends_of_lines_keeps_them() {
    let file = RELEASE.replace('\n', "\r\n");
    let wanted = RELEASE.replace("replicas: 1", "replicas: 2");
    let done = edited(
        &[("apps/web.yaml", &file)],
        &[replaced("apps/web.yaml", RELEASE, &wanted)],
    )
    .unwrap();
    assert_eq!(done["apps/web.yaml"], wanted.replace('\n', "\r\n"));
}

#[test]
fn what_was_changed_in_the_meantime_is_not_overwritten() {
    let file = RELEASE.replace("replicas: 1", "replicas: 5");
    let wanted = RELEASE.replace("replicas: 1", "replicas: 2");
    let error = edited(
        &[("apps/web.yaml", &file)],
        &[replaced("apps/web.yaml", RELEASE, &wanted)],
    )
    .unwrap_err();
    assert!(matches!(error, Error::Stale { .. }), "{error}");
    for files in [&[][..], &[("apps/web.yaml", SERVICE)]] {
        let error = edited(files, &[replaced("apps/web.yaml", RELEASE, &wanted)]).unwrap_err();
        assert!(matches!(error, Error::Missing { .. }), "{error}");
    }
}

#[test]
fn a_manifest_stays_the_object_that_it_is() {
    for content in [
        RELEASE.replace("name: web", "name: other"),
        RELEASE.replace("name: web", "name: web\n  namespace: kube-system"),
        RELEASE.replace("Deployment", "StatefulSet"),
        format!("{RELEASE}---\n{SERVICE}"),
        "# nothing\n".to_owned(),
        format!("---\n{RELEASE}---\n---\n{SERVICE}"),
    ] {
        let error = edited(
            &[("apps/web.yaml", RELEASE)],
            &[replaced("apps/web.yaml", RELEASE, &content)],
        );
        assert!(
            matches!(error, Err(Error::Renamed { .. })),
            "{content}: {error:?}"
        );
    }
}

#[test]
fn what_is_encrypted_is_left_to_sops() {
    let sealed = format!("{RELEASE}sops:\n  mac: x\n");
    let error = edited(
        &[("apps/web.yaml", &sealed)],
        &[replaced("apps/web.yaml", &sealed, RELEASE)],
    );
    assert!(matches!(error, Err(Error::Encrypted(_))), "{error:?}");
}

#[test]
fn a_new_file_is_listed_where_files_are_listed() {
    let list = "resources:\n- web.yaml\n";
    let files = [("apps/kustomization.yaml", list), ("apps/shop/web.yaml", RELEASE)];
    let done = edited(
        &files,
        &[
            new("apps/shop/service.yaml", SERVICE),
            new("apps/b.yaml", SERVICE),
        ],
    )
    .unwrap();
    assert_eq!(done["apps/shop/service.yaml"], SERVICE);
    assert_eq!(
        done["apps/kustomization.yaml"],
        "resources:\n- web.yaml\n- shop/service.yaml\n- b.yaml\n"
    );
    // The nearest one counts.
    let files = [
        ("apps/kustomization.yaml", list),
        ("apps/shop/kustomization.yaml", ""),
    ];
    let done = edited(&files, &[new("apps/shop/service.yaml", SERVICE)]).unwrap();
    assert_eq!(
        done["apps/shop/kustomization.yaml"],
        "resources:\n- service.yaml\n"
    );
    assert!(!done.contains_key("apps/kustomization.yaml"));
    // Where none lists them, all are taken. One above the folder is another one's.
    let files = [("kustomization.yaml", list)];
    let done = edited(&files, &[new("apps/service.yaml", SERVICE)]).unwrap();
    assert_eq!(done.keys().collect::<Vec<_>>(), ["apps/service.yaml"]);
    // Merged, and looked at again.
    let files = [
        ("apps/service.yaml", SERVICE),
        ("apps/kustomization.yaml", "resources: [service.yaml]\n"),
    ];
    assert!(
        edited(&files, &[new("apps/service.yaml", SERVICE)])
            .unwrap()
            .is_empty()
    );
}

#[test]
fn new_files_are_manifests_below_the_folder() {
    let refused =
        |path: &str, content: &str| edited(&[("apps/a.yaml", RELEASE)], &[new(path, content)]).unwrap_err();
    assert!(matches!(refused("other/a.yaml", SERVICE), Error::Outside { .. }));
    assert!(matches!(
        refused("apps/../.github/workflows/a.yaml", SERVICE),
        Error::Path(_)
    ));
    assert!(matches!(refused("apps/.github/a.yaml", SERVICE), Error::Path(_)));
    assert!(matches!(refused("apps/a.yaml", SERVICE), Error::Exists(_)));
    assert!(matches!(
        refused("apps/azure-pipelines.yml", SERVICE),
        Error::Path(_)
    ));
    // What lists the files of a folder decides what is built and pruned.
    assert!(matches!(
        refused("apps/new/kustomization.yaml", SERVICE),
        Error::Kustomization(_)
    ));
    for content in [
        "on: push\n",
        "# nothing\n",
        "a: [\n",
        "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n",
        "apiVersion: v1\nkind: List\nmetadata: {name: a}\nitems: [{apiVersion: v1, kind: Secret, metadata: {name: a}}]\n",
    ] {
        assert!(
            matches!(refused("apps/b.yaml", content), Error::Content { .. }),
            "{content}"
        );
    }
    let twice = edited(&[], &[new("apps/b.yaml", SERVICE), new("apps/b.yaml", RELEASE)]);
    assert_eq!(twice, Err(Error::Twice("apps/b.yaml".to_owned())));
}

#[test]
fn no_file_is_read_that_is_not_named() {
    let read = RefCell::new(Vec::new());
    let result = edit("apps", &[new("../x.yaml", SERVICE)], |path| {
        read.borrow_mut().push(path.to_owned());
        Ok(None)
    });
    assert!(result.is_err() && read.borrow().is_empty());
}
