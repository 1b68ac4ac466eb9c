use std::collections::BTreeMap;

use super::*;

const DIGEST: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
const ID: &str = "apps_web__ConfigMap";
const ARTIFACT: &str = "sha256:ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb";

fn delivery() -> Delivery<'static> {
    Delivery {
        object: object(),
        controller: "kustomize-controller",
        account: Some("system:serviceaccount:apps:deployer"),
        is_remote: false,
        source: "GitRepository/apps/web",
        revision: "main@sha1:0123456789012345678901234567890123456789",
        origin: None,
        artifact: Some(ARTIFACT),
        succeeded: true,
        reason: "ReconciliationSucceeded",
    }
}

fn object() -> Object<'static> {
    Object {
        kind: "Kustomization",
        namespace: "apps",
        name: "web",
        uid: "u",
        generation: 3,
    }
}

fn made(delivery: &Delivery<'_>) -> Value {
    let object = json!({"kind": "ConfigMap"});
    let objects = [(ID.to_owned(), object.as_object().unwrap(), false)];
    let images = [("ghcr.io/org/web".to_owned(), ARTIFACT.to_owned())];
    let contents = Contents::of(objects).with_images(images);
    statement(
        delivery,
        DIGEST,
        Some(&contents),
        (Timestamp::UNIX_EPOCH, Timestamp::UNIX_EPOCH),
    )
}

#[test]
fn a_statement_names_what_came_from_elsewhere() {
    assert_eq!(made(&delivery())["predicate"].get("fetched"), None);
    let fetched = BTreeMap::from([("https://example.com/base".to_owned(), "v1@sha1:abc".to_owned())]);
    let contents = Contents::default().with_fetched(fetched);
    let time = Timestamp::UNIX_EPOCH;
    let statement = statement(&delivery(), DIGEST, Some(&contents), (time, time));
    let predicate = &statement["predicate"];
    assert_eq!(
        predicate["fetched"],
        json!({"https://example.com/base": "v1@sha1:abc"})
    );
    assert_eq!(predicate["fetchedCount"], 1);
    assert_eq!(Contents::of_statement(predicate), Some(contents));
    // A status must not grow by what a tenant writes.
    let long = BTreeMap::from([(
        format!("https://example.com/{}", "a".repeat(5000)),
        "v1".to_owned(),
    )]);
    let contents = Contents::default().with_fetched(long);
    let statement = super::statement(&delivery(), DIGEST, Some(&contents), (time, time));
    assert_eq!(statement["predicate"].get("fetched"), None);
    assert_eq!(statement["predicate"]["fetchedCount"], 1);
}

#[test]
fn a_statement_names_objects_artifact_commit_and_images() {
    let statement = made(&delivery());
    let subject = statement["subject"].as_array().unwrap().iter();
    let names: Vec<_> = subject
        .map(|one| format!("{} {}", one["name"], one["digest"]))
        .collect();
    let hex = |digest: &str| digest.strip_prefix("sha256:").unwrap().to_owned();
    assert_eq!(
        names,
        [
            format!(r#""objects" {{"sha256":"{}"}}"#, hex(DIGEST)),
            format!(r#""artifact" {{"sha256":"{}"}}"#, hex(ARTIFACT)),
            r#""commit" {"gitCommit":"0123456789012345678901234567890123456789"}"#.to_owned(),
            format!(r#""ghcr.io/org/web" {{"sha256":"{}"}}"#, hex(ARTIFACT)),
        ]
    );
    assert_eq!(
        statement["predicate"]["account"],
        "system:serviceaccount:apps:deployer"
    );
    assert_eq!(lists(&statement["predicate"], ID), Some(true));
    assert_eq!(
        lists(&statement["predicate"], "apps_other__ConfigMap"),
        Some(false)
    );
    assert_eq!(lists(&json!({}), ID), None);
    let contents = Contents::of_statement(&statement["predicate"]).unwrap();
    assert_eq!((contents.count, contents.images.len()), (1, 1));
}

#[test]
fn a_statement_is_about_one_delivery() {
    let predicate = &made(&delivery())["predicate"];
    assert!(says(predicate, &delivery()));
    for other in [
        Delivery {
            revision: "main@sha1:1",
            ..delivery()
        },
        Delivery {
            account: None,
            ..delivery()
        },
        Delivery {
            origin: Some("main@sha1:1"),
            ..delivery()
        },
        Delivery {
            succeeded: false,
            ..delivery()
        },
        Delivery {
            object: Object {
                generation: 4,
                ..object()
            },
            ..delivery()
        },
    ] {
        assert!(!says(predicate, &other), "{other:?}");
        assert!(!says(&made(&other)["predicate"], &delivery()), "{other:?}");
    }
    let revision = delivery().revision;
    assert_eq!(check(predicate, &object(), revision), Ok(()));
    let other = Object {
        uid: "another",
        ..object()
    };
    assert_eq!(
        check(predicate, &other, revision),
        Err("it is about another object".to_owned())
    );
    assert!(
        check(predicate, &object(), "main@sha1:2")
            .unwrap_err()
            .contains("revision")
    );
    let failed = made(&Delivery {
        succeeded: false,
        ..delivery()
    });
    assert!(
        check(&failed["predicate"], &object(), revision)
            .unwrap_err()
            .contains("failed")
    );
}
