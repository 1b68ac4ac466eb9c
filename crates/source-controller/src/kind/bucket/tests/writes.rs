//! What is put into real object stores.

use std::io::{Seek as _, Write as _};

use bucket_client::Upload;
use tokio::time::Instant;

use super::*;

/// Puts objects, lists, reads and deletes them.
async fn keep(world: &World, spec: Value, secret: Option<SecretData>) {
    let (object, references) = (world.bucket(spec), world.references(secret));
    let remote = access::remote(&object, &references, &world.fetcher, Purpose::Write);
    let remote = remote.await.unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    let large = vec![7; 3 << 20];
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&large).unwrap();
    file.rewind().unwrap();
    let digest = artifact::Digest::from_content(&large);
    let size = large.len() as u64;
    let put = remote.put(
        "p/archives/a b.tar.gz",
        Upload::from_file(file, size, digest),
        deadline,
    );
    put.await.unwrap();
    for content in ["old", "new"] {
        let upload = Upload::from_bytes(content.as_bytes());
        remote.put("p/records/x-1.json", upload, deadline).await.unwrap();
    }
    // moto takes no signature for a listing with a slash in it, not even that of boto3.
    let listed = remote.names("p", deadline).await.unwrap();
    let keys: Vec<&str> = listed.iter().map(|listed| listed.key.as_str()).collect();
    assert_eq!(keys, ["p/archives/a b.tar.gz", "p/records/x-1.json"]);
    for listed in &listed {
        let age = jiff::Timestamp::now().duration_since(listed.modified.unwrap());
        assert!(age.abs().as_secs() < 600, "{listed:?}");
    }
    assert!(remote.names("q", deadline).await.unwrap().is_empty());
    let read = remote.read("p/records/x-1.json", 100, deadline).await.unwrap();
    assert_eq!(read.unwrap(), "new");
    assert!(
        remote.read("p/archives/a b.tar.gz", 100, deadline).await.is_err(),
        "it is too large"
    );
    let mut into = tokio::fs::File::from_std(tempfile::tempfile().unwrap());
    let there = remote
        .download("p/archives/a b.tar.gz", size, &mut into, deadline)
        .await;
    assert!(there.unwrap());
    assert_eq!(into.metadata().await.unwrap().len(), size);
    for key in ["p/archives/a b.tar.gz", "p/records/x-1.json", "p/never"] {
        remote.delete(key, deadline).await.unwrap();
    }
    assert!(remote.names("p", deadline).await.unwrap().is_empty());
    assert_eq!(
        remote.read("p/records/x-1.json", 100, deadline).await.unwrap(),
        None
    );
}

#[tokio::test]
async fn objects_are_put_and_deleted_at_each_provider() {
    let world = World::s3().await;
    let (id, key) = user(&world.remote).await;
    // From here on moto checks signatures and permissions.
    let reset = world
        .remote
        .send(reqwest::Method::POST, "/moto-api/reset-auth", &[], "0");
    reset.await.unwrap();
    let keys = secret(&[("accesskey", &id), ("secretkey", &key)]);
    keep(&world, json!({}), Some(keys)).await;

    let container = Container::start().await;
    let signature = container.signature_for("rwdl", AZURE_KEY);
    let spec = json!({"provider": "azure", "endpoint": container.endpoint(), "secretRef": {"name": "azure"}});
    keep(&container.world, spec, Some(secret(&[("sasKey", &signature)]))).await;

    let world = World::start(Package::FakeGcsServer).await;
    world.remote.make_gcs("app").await.unwrap();
    let spec = json!({"provider": "gcp", "endpoint": "storage.googleapis.com"});
    keep(&world, spec, None).await;
}
