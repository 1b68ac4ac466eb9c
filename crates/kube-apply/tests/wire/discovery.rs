//! How often the kinds of the server are read.

use futures::future;
use kube_apply::{Class, CommonMetadata};
use manifest::GroupVersionKind;

use crate::server::{Server, object, owner, refuse};

fn reads(log: &[String]) -> usize {
    log.iter().filter(|request| *request == "GET apis").count()
}

#[tokio::test]
async fn all_who_ask_at_once_share_one_read() {
    // An unknown kind is looked for once more: the first read began before the last of them asked.
    for (kind, found, expected) in [("ConfigMap", 50, 1), ("Unknown", 0, 2)] {
        let server = Server::default();
        let engine = server.engine();
        let prepares = (0..50).map(async |_| {
            let objects = vec![object("v1", kind, "x")];
            engine
                .prepare(&owner(), objects, &CommonMetadata::default())
                .await
                .is_ok()
        });
        let prepared = future::join_all(prepares).await;
        assert_eq!(prepared.into_iter().filter(|ok| *ok).count(), found);
        assert_eq!(reads(&server.log()), expected);
    }
}

#[tokio::test]
async fn an_unknown_kind_is_looked_for_once_and_then_left_for_a_while() {
    let server = Server::default();
    let mapper_of = server.engine();
    let mapper = mapper_of.mapper();
    mapper
        .resolve(&GroupVersionKind::new("v1", "ConfigMap"))
        .await
        .unwrap();
    let unknown = GroupVersionKind::new("example.com/v1", "Widget");
    for _ in 0..5 {
        let error = mapper.resolve(&unknown).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "no matches for kind \"Widget\" in version \"example.com/v1\""
        );
    }
    assert_eq!(reads(&server.log()), 2);
    mapper.invalidate();
    mapper.resolve(&unknown).await.unwrap_err();
    assert_eq!(reads(&server.log()), 1);
}

#[tokio::test]
async fn a_server_without_an_answer_is_a_transient_failure_and_asked_again() {
    let server = Server::scripted(|request| {
        if request == "GET apis" {
            refuse(503, "ServiceUnavailable", "away")
        } else {
            None
        }
    });
    let engine = server.engine();
    for _ in 0..2 {
        let prepared = engine
            .prepare(
                &owner(),
                vec![object("v1", "ConfigMap", "x")],
                &CommonMetadata::default(),
            )
            .await;
        let error = prepared.unwrap_err();
        assert!(error.is_transient() && error.errors[0].class == Class::Transient);
        assert!(
            error
                .to_string()
                .contains("failed to discover the kinds of the API server: away"),
            "{error}"
        );
    }
    assert_eq!(reads(&server.log()), 2);
}
