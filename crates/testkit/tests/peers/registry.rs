//! The registry as a plain HTTP client sees it through the counting proxy.

use std::io::Read as _;

use flate2::read::GzDecoder;
use reqwest::header::{ACCEPT, WWW_AUTHENTICATE};
use reqwest::{Client, Method, Response};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use testkit::Registry;
use testkit::registry::{Access, CONFIG_MEDIA_TYPE, CONTENT_MEDIA_TYPE, Fault, Kind};

const FILES: &[(&str, &str)] = &[
    ("deploy/app.yaml", "kind: ConfigMap\n"),
    ("README.md", "# hello\n"),
];

fn http() -> Client {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    Client::builder().no_proxy().build().unwrap()
}

async fn ask(registry: &Registry, method: Method, path: &str) -> Response {
    let url = format!("http://{}/v2/{path}", registry.address());
    let request = http()
        .request(method, url)
        .header(ACCEPT, "application/vnd.oci.image.manifest.v1+json");
    request.send().await.unwrap()
}

fn digest_of(data: &[u8]) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(data)))
}

#[tokio::test]
async fn a_pushed_artifact_is_pulled_with_its_files_and_annotations() {
    let registry = Registry::start().await.unwrap();
    let digest = registry
        .push_files("org/app", &["latest", "1.0.0"], "main@sha1:abc", FILES)
        .await
        .unwrap();
    assert_eq!(registry.requests("org/app"), []);

    let head = ask(&registry, Method::HEAD, "org/app/manifests/latest").await;
    assert_eq!(head.headers()["docker-content-digest"].to_str().unwrap(), digest);
    let manifest = ask(&registry, Method::GET, &format!("org/app/manifests/{digest}"))
        .await
        .bytes()
        .await
        .unwrap();
    assert_eq!(digest_of(&manifest), digest);
    let manifest: Value = serde_json::from_slice(&manifest).unwrap();
    assert_eq!(manifest["config"]["mediaType"], CONFIG_MEDIA_TYPE);
    assert_eq!(
        manifest["annotations"]["org.opencontainers.image.revision"],
        "main@sha1:abc"
    );
    assert_eq!(manifest["layers"][0]["mediaType"], CONTENT_MEDIA_TYPE);

    let layer = manifest["layers"][0]["digest"].as_str().unwrap();
    let blob = ask(&registry, Method::GET, &format!("org/app/blobs/{layer}"))
        .await
        .bytes()
        .await
        .unwrap();
    assert_eq!(digest_of(&blob), layer);
    let mut archive = tar::Archive::new(GzDecoder::new(blob.as_ref()));
    let files: Vec<(String, String)> = archive
        .entries()
        .unwrap()
        .map(|entry| {
            let mut entry = entry.unwrap();
            let mut contents = String::new();
            entry.read_to_string(&mut contents).unwrap();
            (entry.path().unwrap().display().to_string(), contents)
        })
        .collect();
    assert_eq!(
        files,
        FILES
            .iter()
            .map(|(p, c)| ((*p).to_owned(), (*c).to_owned()))
            .collect::<Vec<_>>()
    );

    let tags: Value = ask(&registry, Method::GET, "org/app/tags/list")
        .await
        .json()
        .await
        .unwrap();
    assert_eq!(tags["tags"], serde_json::json!(["1.0.0", "latest"]));
    assert_eq!(
        registry.kinds("org/app"),
        [Kind::ManifestHead, Kind::ManifestGet, Kind::BlobGet, Kind::Tags]
    );
}

#[tokio::test]
async fn a_deleted_manifest_is_gone() {
    let registry = Registry::start().await.unwrap();
    let digest = registry.push_files("app", &["latest"], "r", FILES).await.unwrap();
    registry.delete("app", &digest).await.unwrap();
    assert_eq!(
        ask(&registry, Method::HEAD, "app/manifests/latest")
            .await
            .status(),
        404
    );
}

#[tokio::test]
async fn a_corrupted_blob_keeps_its_length_and_loses_its_digest() {
    let registry = Registry::start().await.unwrap();
    registry.push_files("app", &["latest"], "r", FILES).await.unwrap();
    let manifest: Value = ask(&registry, Method::GET, "app/manifests/latest")
        .await
        .json()
        .await
        .unwrap();
    let layer = &manifest["layers"][0];
    let path = format!("app/blobs/{}", layer["digest"].as_str().unwrap());

    registry.set_fault("app", Fault::CorruptBlobs);
    let blob = ask(&registry, Method::GET, &path).await.bytes().await.unwrap();
    assert_eq!(blob.len() as u64, layer["size"].as_u64().unwrap());
    assert_ne!(digest_of(&blob), layer["digest"].as_str().unwrap());

    registry.set_fault("app", Fault::BlobStatus(503));
    assert_eq!(ask(&registry, Method::GET, &path).await.status(), 503);
    assert_eq!(
        ask(&registry, Method::GET, "app/manifests/latest").await.status(),
        200
    );
    registry.set_fault("app", Fault::Status(404));
    assert_eq!(
        ask(&registry, Method::GET, "app/manifests/latest").await.status(),
        404
    );
    registry.set_fault("app", None);
    let blob = ask(&registry, Method::GET, &path).await.bytes().await.unwrap();
    assert_eq!(digest_of(&blob), layer["digest"].as_str().unwrap());
}

#[tokio::test]
async fn credentials_are_checked_as_registries_do_it() {
    let registry = Registry::start().await.unwrap();
    registry.push_files("app", &["latest"], "r", FILES).await.unwrap();
    let manifest = format!("http://{}/v2/app/manifests/latest", registry.address());
    let accept = (ACCEPT, "application/vnd.oci.image.manifest.v1+json");

    registry.set_access(Access::Basic {
        username: "ann".to_owned(),
        password: "secret".to_owned(),
    });
    let refused = ask(&registry, Method::GET, "app/manifests/latest").await;
    assert_eq!(refused.status(), 401);
    assert!(
        refused.headers()[WWW_AUTHENTICATE]
            .to_str()
            .unwrap()
            .starts_with("Basic ")
    );
    let given = http()
        .get(&manifest)
        .header(accept.0.clone(), accept.1)
        .basic_auth("ann", Some("secret"));
    assert_eq!(given.send().await.unwrap().status(), 200);

    registry.set_access(Access::Token(None));
    let refused = ask(&registry, Method::GET, "app/manifests/latest").await;
    let challenge = refused.headers()[WWW_AUTHENTICATE].to_str().unwrap().to_owned();
    let realm = challenge.split('"').nth(1).unwrap();
    let token: Value = http().get(realm).send().await.unwrap().json().await.unwrap();
    let given = http()
        .get(&manifest)
        .header(accept.0, accept.1)
        .bearer_auth(token["token"].as_str().unwrap());
    assert_eq!(given.send().await.unwrap().status(), 200);
}
