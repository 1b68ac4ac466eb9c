//! Records on a real API server.

use helm_action::{Error, ErrorKind, StorageError};
use helm_release::record::{self, SECRET_TYPE};
use helm_release::{Labels, Record, Release, Status};
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use serde_json::json;
use testkit::ControlPlane;

use crate::scene::Scene;

pub fn release(scene: &Scene, name: &str, version: i64, status: Status) -> Record {
    let mut release = Release {
        name: name.to_owned(),
        namespace: scene.namespace.clone(),
        version,
        manifest: "---\n# Source: demo/templates/a.yaml\nkind: ConfigMap\n".to_owned(),
        ..Release::default()
    };
    release.set_status(status, "made for a test");
    Record {
        release,
        labels: Labels::new(),
    }
}

async fn versions(scene: &Scene, name: &str) -> Vec<(i64, Status)> {
    let history = scene.storage.history(name).await.unwrap();
    history
        .iter()
        .map(|revision| (revision.version, revision.status.clone()))
        .collect()
}

#[tokio::test]
async fn what_is_stored_is_read_again_and_lies_where_helm_looks() {
    let scene = Scene::new("storage").await;
    let storage = &scene.storage;
    assert_eq!(storage.last("web").await.unwrap(), None);
    assert_eq!(storage.get("web", 1).await.unwrap(), None);

    let mut record = release(&scene, "web", 1, Status::PendingInstall);
    record.labels.insert("team".to_owned(), "a".to_owned());
    storage.create(&record).await.unwrap();
    assert_eq!(storage.get("web", 1).await.unwrap().as_ref(), Some(&record));

    let secrets: Api<Secret> = Api::namespaced(scene.client.clone(), &scene.namespace);
    let secret = secrets.get("sh.helm.release.v1.web.v1").await.unwrap();
    assert_eq!(secret.type_.as_deref(), Some(SECRET_TYPE));
    let labels = secret.metadata.labels.unwrap();
    for (label, value) in [
        ("owner", "helm"),
        ("name", "web"),
        ("status", "pending-install"),
        ("version", "1"),
        ("team", "a"),
    ] {
        assert_eq!(labels.get(label).map(String::as_str), Some(value), "{label}");
    }
    assert!(labels.contains_key("createdAt") && !labels.contains_key("modifiedAt"));

    record.release.set_status(Status::Deployed, "done");
    storage.update(&record).await.unwrap();
    assert_eq!(storage.last("web").await.unwrap(), Some(record));
    let secret = secrets.get("sh.helm.release.v1.web.v1").await.unwrap();
    let labels = secret.metadata.labels.unwrap();
    assert_eq!(labels.get("status").map(String::as_str), Some("deployed"));
    assert!(labels.contains_key("modifiedAt"));
}

#[tokio::test]
async fn of_two_who_make_the_same_revision_the_second_is_told() {
    let scene = Scene::new("storage-twice").await;
    let record = release(&scene, "web", 1, Status::PendingInstall);
    scene.storage.create(&record).await.unwrap();
    let error = scene.storage.create(&record).await.unwrap_err();
    assert!(matches!(error, StorageError::Exists), "{error}");
    assert_eq!(Error::from(error).kind(), ErrorKind::Pending);
}

#[tokio::test]
async fn a_revision_that_is_gone_is_not_made_again_by_an_update() {
    let scene = Scene::new("storage-gone").await;
    let record = release(&scene, "web", 3, Status::Deployed);
    let error = scene.storage.update(&record).await.unwrap_err();
    assert!(
        matches!(&error, StorageError::Gone(name) if name == "sh.helm.release.v1.web.v3"),
        "{error}"
    );
    scene.storage.delete("web", 3).await.unwrap();
    assert_eq!(versions(&scene, "web").await, []);
}

#[tokio::test]
async fn what_has_no_room_in_a_secret_is_refused_before_anything_is_asked() {
    let scene = Scene::new("storage-large").await;
    let mut record = release(&scene, "web", 1, Status::PendingInstall);
    let mut random = 1_u64;
    record.release.manifest = std::iter::repeat_with(|| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        char::from(b' ' + (random >> 57) as u8 % 90)
    })
    .take(1_200_000)
    .collect();
    let error = Error::from(scene.storage.create(&record).await.unwrap_err());
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    assert!(error.to_string().contains("a Secret holds 1048576"), "{error}");
    assert_eq!(scene.requests(), [""; 0]);
}

#[tokio::test]
async fn a_history_costs_one_request_and_none_of_its_records_is_read() {
    let scene = Scene::new("storage-history").await;
    for (version, status) in [
        (9, Status::Superseded),
        (10, Status::Failed),
        (2, Status::Deployed),
    ] {
        scene
            .storage
            .create(&release(&scene, "web", version, status))
            .await
            .unwrap();
    }
    scene
        .storage
        .create(&release(&scene, "web2", 1, Status::Deployed))
        .await
        .unwrap();
    // A record that cannot be read is no reason not to know of it.
    let broken = json!({
        "apiVersion": "v1", "kind": "Secret", "type": SECRET_TYPE,
        "metadata": {"name": "sh.helm.release.v1.web.v11", "namespace": scene.namespace,
            "labels": {"owner": "helm", "name": "web", "version": "11", "status": "deployed"}},
        "stringData": {"release": "?"},
    });
    testkit::objects::apply(&scene.client, &broken).await.unwrap();
    scene.requests();
    assert_eq!(
        versions(&scene, "web").await,
        [
            (2, Status::Deployed),
            (9, Status::Superseded),
            (10, Status::Failed),
            (11, Status::Deployed)
        ]
    );
    assert_eq!(
        scene.requests(),
        [format!("GET /api/v1/namespaces/{}/secrets", scene.namespace)]
    );
    let error = Error::from(scene.storage.last("web").await.unwrap_err());
    assert_eq!(
        error.to_string(),
        "get: failed to decode data \"sh.helm.release.v1.web.v11\": failed to decode the release: its data is not base64"
    );
}

#[tokio::test]
async fn a_name_that_is_none_does_not_choose_other_secrets() {
    let scene = Scene::new("storage-name").await;
    scene
        .storage
        .create(&release(&scene, "web", 1, Status::Deployed))
        .await
        .unwrap();
    let error = scene.storage.history("x,name in (web)").await.unwrap_err();
    assert!(matches!(error, StorageError::Name(_)), "{error}");
}

#[tokio::test]
async fn the_oldest_make_room() {
    let scene = Scene::new("storage-room").await;
    let statuses = [
        Status::Deployed,
        Status::Superseded,
        Status::Failed,
        Status::Failed,
    ];
    for (index, status) in statuses.into_iter().enumerate() {
        let record = release(&scene, "web", index as i64 + 1, status);
        scene.storage.create(&record).await.unwrap();
    }
    scene.storage.make_room("web", 0).await.unwrap();
    assert_eq!(versions(&scene, "web").await.len(), 4);
    scene.storage.make_room("web", 3).await.unwrap();
    assert_eq!(
        versions(&scene, "web").await,
        [(1, Status::Deployed), (4, Status::Failed)]
    );
}

#[tokio::test]
async fn who_may_not_read_secrets_is_told_so() {
    let scene = Scene::new("storage-denied").await;
    let mut config = ControlPlane::shared().await.unwrap().config().clone();
    config.auth_info.impersonate = Some("system:serviceaccount:nobody:nobody".to_owned());
    let client = Client::try_from(config).unwrap();
    let storage = helm_action::Storage::new(client, &scene.namespace);
    for error in [
        storage.history("web").await.unwrap_err(),
        storage
            .create(&release(&scene, "web", 1, Status::Deployed))
            .await
            .unwrap_err(),
    ] {
        let text = Error::from(error).to_string();
        assert!(text.contains("secrets") && text.contains("forbidden"), "{text}");
        assert!(
            text.starts_with("query: failed to query with labels: ")
                || text.starts_with("create: failed to create: ")
        );
    }
    assert_eq!(record::name("web", 1), "sh.helm.release.v1.web.v1");
}
