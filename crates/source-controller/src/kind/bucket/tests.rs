//! From real object stores into a real store.

mod writes;

use std::collections::BTreeMap;
use std::time::Duration;

use api::source::Bucket;
use artifact::store::{Options, Record, Store};
use bucket_client::azure::{Azure, Credential};
use bucket_client::remote::Remote;
use cloud_identity::Identity;
use cloud_identity::azure::SharedKey;
use controller_kit::ObjectKey;
use oci_client::credentials::Credentials;
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::bucket::{AZURE_ACCOUNT, AZURE_KEY, ObjectStore};
use testkit::tools::Package;
use transport::auth::SecretData;
use transport::http;
use workload_identity::Exchange;

use super::*;
use crate::kind::Fetch;
use remote_access::identity::{Identities, registry_credentials};

struct World {
    remote: ObjectStore,
    store: Store,
    fetcher: Fetcher,
    _directory: TempDir,
}

/// Result of a fetch.
#[expect(clippy::large_enum_variant, reason = "one at a time")]
#[derive(Debug)]
enum Taken {
    Unchanged(String),
    Stored(Record),
}

impl Taken {
    fn record(self) -> Record {
        match self {
            Self::Stored(record) => record,
            Self::Unchanged(revision) => panic!("unchanged: {revision}"),
        }
    }
}

fn secret(pairs: &[(&str, &str)]) -> SecretData {
    let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), value.as_bytes().to_vec());
    pairs.iter().map(owned).collect()
}

impl World {
    async fn start(package: Package) -> Self {
        Self::start_with(package, &[]).await
    }

    async fn start_with(package: Package, arguments: &[&str]) -> Self {
        let remote = ObjectStore::start_with(package, arguments).await.unwrap();
        let directory = tempfile::tempdir().unwrap();
        let folder = |name: &str| {
            let path = directory.path().join(name);
            std::fs::create_dir(&path).unwrap();
            path
        };
        let mut identities = Identities::new(10, Duration::from_secs(3600), false, "");
        identities.storage_emulator = Some(remote.address());
        let fetcher = Fetcher::new(folder("fetching"), folder("indexes"), identities);
        let (store, _) = Store::open(&directory.path().join("store"), Options::default()).unwrap();
        Self {
            remote,
            store,
            fetcher,
            _directory: directory,
        }
    }

    async fn s3() -> Self {
        let world = Self::start(Package::Moto).await;
        world.remote.make_s3("app").await.unwrap();
        world
    }

    fn references(&self, secret: Option<SecretData>) -> References {
        References {
            secret,
            ..References::from_store(self.store.clone())
        }
    }

    fn bucket(&self, spec: Value) -> Bucket {
        let mut whole = json!({
            "interval": "1m", "bucketName": "app", "endpoint": self.remote.address(), "insecure": true,
        });
        whole
            .as_object_mut()
            .unwrap()
            .extend(spec.as_object().unwrap().clone());
        serde_json::from_value(json!({"metadata": {"name": "app", "namespace": "apps"}, "spec": whole}))
            .unwrap()
    }

    /// Fetches and stores; what was stored before is known.
    async fn take(&self, spec: Value, references: References) -> Result<Taken, String> {
        let object = self.bucket(spec);
        let known = self.store.current("Bucket", "apps", "app");
        let fetch = object
            .fetch(&references, known.map(|record| record.revision), &self.fetcher)
            .await
            .map_err(|failure| failure.error.message())?;
        let fetched = match fetch {
            Fetch::Unchanged { revision } => return Ok(Taken::Unchanged(revision)),
            Fetch::New(fetched) => fetched,
        };
        let stored = crate::reconcile::store::store::<Bucket>(
            &ObjectKey::from_object(&object),
            fetched,
            &self.store,
            &self.fetcher,
        )
        .await;
        assert_eq!(
            std::fs::read_dir(&self.fetcher.directory).unwrap().count(),
            0,
            "temporary files are gone"
        );
        stored
            .map(Taken::Stored)
            .map_err(|failure| failure.error.message())
    }

    async fn take_s3(&self, spec: Value) -> Result<Taken, String> {
        let keys = secret(&[("accesskey", "test"), ("secretkey", "test")]);
        self.take(spec, self.references(Some(keys))).await
    }

    /// Files of an artifact with their content.
    fn files(&self, record: &Record) -> BTreeMap<String, String> {
        let archive = self.store.open_archive(&record.digest).unwrap();
        let mut tar = tar::Archive::new(flate2::read::GzDecoder::new(archive));
        let mut files = BTreeMap::new();
        for entry in tar.entries().unwrap() {
            let mut entry = entry.unwrap();
            if entry.header().entry_type().is_file() {
                let mut content = String::new();
                std::io::Read::read_to_string(&mut entry, &mut content).unwrap();
                files.insert(entry.path().unwrap().display().to_string(), content);
            }
        }
        files
    }

    /// Number of requests in the log with this text.
    fn requests(&self, text: &str) -> usize {
        self.remote
            .log()
            .lines()
            .filter(|line| line.contains(text))
            .count()
    }
}

fn files(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs
        .iter()
        .map(|(path, text)| ((*path).to_owned(), (*text).to_owned()))
        .collect()
}

#[tokio::test]
async fn a_bucket_becomes_an_artifact_and_only_changed_objects_are_fetched() {
    let world = World::s3().await;
    for (key, content) in [
        ("a.yaml", "a"),
        ("b/c.yaml", "c"),
        ("b/d%20%2B%C3%A4.png", "d"),
        ("folder/", ""),
    ] {
        world.remote.put_s3("app", key, content).await.unwrap();
    }
    let record = world.take_s3(json!({})).await.unwrap().record();
    // Names and MD5 sums, as Flux's index has them; pictures are not left out for buckets.
    let lines = "a.yaml 0cc175b9c0f1b6a831c399e269772661\nb/c.yaml 4a8a08f09d37b73795649038408b5f33\n\
                 b/d +ä.png 8277e0910d750195b448797616e091ad\n";
    let revision = artifact::digest::Digest::from_content(lines.as_bytes());
    assert_eq!(record.revision, revision.to_string());
    assert_eq!(record.path, format!("bucket/apps/app/{}.tar.gz", revision.hex()));
    assert_eq!(
        world.files(&record),
        files(&[("a.yaml", "a"), ("b/c.yaml", "c"), ("b/d +ä.png", "d")])
    );

    let before = world.requests("GET /app");
    let again = world.take_s3(json!({})).await.unwrap();
    assert!(matches!(again, Taken::Unchanged(known) if known == record.revision));
    assert_eq!(world.requests("GET /app") - before, 1, "one listing tells it");

    world.remote.put_s3("app", "b/c.yaml", "new").await.unwrap();
    world
        .remote
        .delete_s3("app", "b/d%20%2B%C3%A4.png")
        .await
        .unwrap();
    let before = world.requests("GET /app");
    let record = world.take_s3(json!({})).await.unwrap().record();
    assert_eq!(world.requests("GET /app") - before, 2, "a listing and one object");
    assert_eq!(
        world.files(&record),
        files(&[("a.yaml", "a"), ("b/c.yaml", "new")])
    );
}

#[tokio::test]
async fn ignore_rules_and_prefixes_leave_objects_out() {
    let world = World::s3().await;
    for key in ["app/a.yaml", "app/a.md", "other/b.yaml", "top.txt"] {
        world.remote.put_s3("app", key, key).await.unwrap();
    }
    let names = |record: &Record| world.files(record).into_keys().collect::<Vec<_>>();
    let record = world.take_s3(json!({"prefix": "app/"})).await.unwrap().record();
    assert_eq!(names(&record), ["app/a.md", "app/a.yaml"]);
    let record = world
        .take_s3(json!({"ignore": "*.md\n/other"}))
        .await
        .unwrap()
        .record();
    assert_eq!(names(&record), ["app/a.yaml", "top.txt"]);
    world
        .remote
        .put_s3("app", ".sourceignore", "*.txt\n*.md\n")
        .await
        .unwrap();
    let record = world
        .take_s3(json!({"ignore": "!top.txt"}))
        .await
        .unwrap()
        .record();
    assert_eq!(
        names(&record),
        [".sourceignore", "app/a.yaml", "other/b.yaml", "top.txt"]
    );
    // The ignore file holds for a part of the bucket, too, and is not a part of the revision.
    let record = world.take_s3(json!({"prefix": "app/"})).await.unwrap().record();
    assert_eq!(names(&record), [".sourceignore", "app/a.yaml"]);
    let lines = "app/a.yaml f628cf6f69cf5a3be1c2514404c67ada\n";
    assert_eq!(
        record.revision,
        artifact::digest::Digest::from_content(lines.as_bytes()).to_string()
    );
}

#[tokio::test]
async fn a_listing_of_several_pages_is_read_whole() {
    let world = World::s3().await;
    let puts = (0..1100).map(|number| {
        let remote = &world.remote;
        async move { remote.put_s3("app", &format!("f{number:04}"), "x").await.unwrap() }
    });
    futures::StreamExt::collect::<Vec<()>>(futures::StreamExt::buffer_unordered(
        futures::stream::iter(puts),
        8,
    ))
    .await;
    let record = world.take_s3(json!({})).await.unwrap().record();
    assert_eq!(world.files(&record).len(), 1100);
    assert!(matches!(
        world.take_s3(json!({})).await.unwrap(),
        Taken::Unchanged(_)
    ));
}

#[tokio::test]
async fn hostile_names_stay_inside_or_are_refused() {
    let world = World::s3().await;
    world.remote.put_s3("app", "a//b", "1").await.unwrap();
    world.remote.put_s3("app", "/etc/passwd", "2").await.unwrap();
    let record = world.take_s3(json!({})).await.unwrap().record();
    assert_eq!(world.files(&record), files(&[("a/b", "1"), ("etc/passwd", "2")]));
    world.remote.put_s3("app", "a", "3").await.unwrap();
    let error = world.take_s3(json!({})).await.unwrap_err();
    assert!(
        error.starts_with("unable to archive artifact to storage"),
        "{error}"
    );
}

#[tokio::test]
async fn what_is_wrong_with_a_bucket_is_told() {
    let world = World::s3().await;
    let error = world.take_s3(json!({"bucketName": "gone"})).await.unwrap_err();
    assert_eq!(error, "bucket 'gone' not found");
    let error = world
        .take_s3(json!({"endpoint": "http://minio:9000"}))
        .await
        .unwrap_err();
    assert!(
        error.starts_with("Endpoint: http://minio:9000 does not follow"),
        "{error}"
    );
    let error = world
        .take_s3(json!({"endpoint": "127.0.0.1:1"}))
        .await
        .unwrap_err();
    assert!(
        error.starts_with(
            "failed to confirm existence of 'app' bucket: failed to reach 'http://127.0.0.1:1/app/'"
        ),
        "{error}"
    );
    let references = world.references(Some(secret(&[("accesskey", "hunter2")])));
    let spec = json!({"secretRef": {"name": "keys"}});
    let error = world.take(spec, references).await.unwrap_err();
    assert_eq!(
        error,
        "invalid 'keys' secret data: required fields 'accesskey' and 'secretkey'"
    );
}

/// Makes a user who may do everything, and answers their keys.
async fn user(remote: &ObjectStore) -> (String, String) {
    let authorization = "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/iam/aws4_request, \
                         SignedHeaders=host, Signature=0";
    let headers = [
        ("authorization", authorization),
        ("content-type", "application/x-www-form-urlencoded"),
    ];
    let call = |form: &'static str| remote.send(reqwest::Method::POST, "/", &headers, form);
    call("Action=CreateUser&Version=2010-05-08&UserName=u")
        .await
        .unwrap();
    let allow = "%7B%22Version%22%3A%222012-10-17%22%2C%22Statement%22%3A%5B%7B%22Effect%22%3A%22Allow%22%2C\
                 %22Action%22%3A%22*%22%2C%22Resource%22%3A%22*%22%7D%5D%7D";
    let policy = "Action=PutUserPolicy&Version=2010-05-08&UserName=u&PolicyName=p&PolicyDocument=";
    let policy = Box::leak(format!("{policy}{allow}").into_boxed_str());
    call(policy).await.unwrap();
    let keys = call("Action=CreateAccessKey&Version=2010-05-08&UserName=u")
        .await
        .unwrap();
    let text = |name: &str| {
        let (_, rest) = keys.split_once(&format!("<{name}>")).unwrap();
        rest.split_once("</").unwrap().0.to_owned()
    };
    (text("AccessKeyId"), text("SecretAccessKey"))
}

#[tokio::test]
async fn signatures_are_accepted_by_a_server_that_checks_them() {
    let world = World::s3().await;
    world.remote.put_s3("app", "dir/a%20b.yaml", "a").await.unwrap();
    let (id, key) = user(&world.remote).await;
    // From here on moto checks signatures and permissions.
    world
        .remote
        .send(reqwest::Method::POST, "/moto-api/reset-auth", &[], "0")
        .await
        .unwrap();
    let with = |id: &str, key: &str| world.references(Some(secret(&[("accesskey", id), ("secretkey", key)])));
    let record = world.take(json!({}), with(&id, &key)).await.unwrap().record();
    assert_eq!(world.files(&record), files(&[("dir/a b.yaml", "a")]));
    for (id, key, code) in [
        (id.as_str(), "wrong", "SignatureDoesNotMatch"),
        ("AKIAX", "x", "InvalidAccessKeyId"),
    ] {
        let error = world.take(json!({}), with(id, key)).await.unwrap_err();
        assert!(
            error.starts_with("failed to confirm existence of 'app' bucket: ") && error.contains(code),
            "{error}"
        );
    }
}

/// A container of azurite.
struct Container {
    world: World,
    key: SharedKey,
}

impl Container {
    async fn start() -> Self {
        let container = Self {
            world: World::start(Package::Azurite).await,
            key: SharedKey::parse(AZURE_ACCOUNT, AZURE_KEY).unwrap(),
        };
        container.put("?restype=container", "").await;
        container
    }

    fn endpoint(&self) -> String {
        format!("http://{}/{AZURE_ACCOUNT}", self.world.remote.address())
    }

    async fn put(&self, rest: &str, content: &str) {
        let path = format!("/{AZURE_ACCOUNT}/app{rest}");
        let url = url::Url::parse(&format!("http://{}{path}", self.world.remote.address())).unwrap();
        let date = jiff::Timestamp::now()
            .strftime("%a, %d %b %Y %H:%M:%S GMT")
            .to_string();
        let mut headers = vec![("x-ms-date", date.as_str()), ("x-ms-version", "2021-12-02")];
        if !rest.starts_with('?') {
            headers.push(("x-ms-blob-type", "BlockBlob"));
        }
        let mut signed = reqwest::header::HeaderMap::new();
        for (name, value) in &headers {
            signed.insert(
                reqwest::header::HeaderName::from_static(name),
                value.parse().unwrap(),
            );
        }
        let authorization =
            self.key
                .authorization(&reqwest::Method::PUT, &url, &signed, content.len() as u64);
        headers.push(("authorization", &authorization));
        self.world
            .remote
            .send(reqwest::Method::PUT, &path, &headers, content.to_owned())
            .await
            .unwrap();
    }

    /// A shared access signature of the account, for reading and listing.
    fn signature(&self, key: &str) -> String {
        self.signature_for("rl", key)
    }

    fn signature_for(&self, permissions: &str, key: &str) -> String {
        use base64::Engine as _;
        use base64::engine::general_purpose::STANDARD;
        let end = "2099-01-01T00:00:00Z";
        let text = format!("{AZURE_ACCOUNT}\n{permissions}\nb\nco\n\n{end}\n\n\n2021-12-02\n\n");
        let key = STANDARD.decode(key).unwrap();
        let key = aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, &key);
        let signature = STANDARD.encode(aws_lc_rs::hmac::sign(&key, text.as_bytes()));
        let signature = cloud_identity::aws::encode(&signature, false);
        format!("?sv=2021-12-02&ss=b&srt=co&sp={permissions}&se={end}&sig={signature}")
    }
}

#[tokio::test]
async fn a_container_of_azure_becomes_an_artifact() {
    let container = Container::start().await;
    let world = &container.world;
    container.put("/a.yaml", "a").await;
    container.put("/b/c%20d.yaml", "c").await;
    let spec = json!({"provider": "azure", "endpoint": container.endpoint(), "secretRef": {"name": "azure"}});
    let with = |pairs: &[(&str, &str)]| world.references(Some(secret(pairs)));
    let signature = container.signature(AZURE_KEY);
    let take = || world.take(spec.clone(), with(&[("sasKey", &signature)]));
    let record = take().await.unwrap().record();
    assert_eq!(
        world.files(&record),
        files(&[("a.yaml", "a"), ("b/c d.yaml", "c")])
    );
    // Those of the listing, in the quotes that those of the objects have.
    assert!(matches!(take().await.unwrap(), Taken::Unchanged(_)));
    container.put("/a.yaml", "new").await;
    assert_eq!(world.files(&take().await.unwrap().record())["a.yaml"], "new");

    let wrong = container.signature("d3Jvbmc=");
    let error = world
        .take(spec.clone(), with(&[("sasKey", &wrong)]))
        .await
        .unwrap_err();
    assert!(
        error.starts_with("failed to confirm existence of 'app' bucket: "),
        "{error}"
    );
    assert!(!error.contains("sig="), "{error}");
    let error = world
        .take(spec.clone(), with(&[("accountKey", AZURE_KEY)]))
        .await
        .unwrap_err();
    assert!(
        error.starts_with("failed to extract account name from endpoint: "),
        "{error}"
    );
    let error = world.take(spec.clone(), with(&[("x", "y")])).await.unwrap_err();
    assert!(
        error.starts_with("invalid 'azure' secret data: requires a 'clientId'"),
        "{error}"
    );
    let error = world
        .take(spec, with(&[("clientId", "node-identity")]))
        .await
        .unwrap_err();
    assert!(
        error.contains("is no storage account in a cloud of Microsoft"),
        "{error}"
    );
}

#[tokio::test]
async fn the_key_of_an_account_opens_its_containers() {
    let container = Container::start().await;
    container.put("/dir/a%20b.yaml", "a").await;
    let (store, fetcher) = (&container.world.store, &container.world.fetcher);
    let client = fetcher
        .clients
        .get(&http::Settings::default().towards("127.0.0.1"))
        .unwrap();
    let remote = Azure::new(
        container.endpoint().parse().unwrap(),
        "app",
        Some("dir/"),
        Credential::Key(SharedKey::parse(AZURE_ACCOUNT, AZURE_KEY).unwrap()),
        (*client).clone(),
    );
    let request = bucket_client::Request {
        remote: Remote::Azure(remote.unwrap()),
        bucket: "app".to_owned(),
        has_prefix: true,
        ignore: None,
        memory: Memory::new(&fetcher.indexes, "apps", "app", store.clone()),
        deadline: tokio::time::Instant::now() + Duration::from_secs(20),
        directory: fetcher.directory.clone(),
    };
    let bucket_client::Fetched::Changed(content) = bucket_client::fetch(request, None).await.unwrap() else {
        panic!("nothing is known yet")
    };
    assert_eq!(content.files.keys().collect::<Vec<_>>(), ["dir/a b.yaml"]);
}

#[tokio::test]
async fn the_controller_gets_temporary_keys_for_its_role() {
    let mut world = World::s3().await;
    world.remote.put_s3("app", "a.yaml", "a").await.unwrap();
    let token = world.fetcher.indexes.join("token");
    std::fs::write(&token, "header.claims.signature").unwrap();
    let url = format!("http://{}", world.remote.address());
    let environment = cloud_identity::Environment::from_variables(&[
        ("AWS_REGION", "us-east-1"),
        ("AWS_WEB_IDENTITY_TOKEN_FILE", token.to_str().unwrap()),
        ("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/reader"),
        ("AWS_ENDPOINT_URL_STS", &url),
        ("AWS_ENDPOINT_URL_ECR", &url),
    ]);
    world.fetcher.identities = world.fetcher.identities.clone().within(environment);
    for _ in 0..2 {
        let taken = world
            .take(json!({"provider": "aws"}), world.references(None))
            .await;
        taken.unwrap();
    }
    assert_eq!(world.requests("POST / HTTP"), 1, "the keys are kept");

    let exchange = Exchange {
        clients: world.fetcher.clients.clone(),
        settings: http::Settings::default(),
        deadline: Some(tokio::time::Instant::now() + Duration::from_secs(20)),
    };
    let credentials = registry_credentials(
        api::source::OCIProvider::Aws,
        "123456789012.dkr.ecr.us-east-1.amazonaws.com",
        &Identity::Controller,
        &world.fetcher.identities,
        &exchange,
    );
    let Some(Credentials::Basic(username, password)) = credentials.await.unwrap() else {
        panic!("ECR gives a name and a password")
    };
    assert_eq!((username.as_str(), password.is_empty()), ("AWS", false));
}

#[tokio::test]
async fn a_user_of_ldap_gets_temporary_keys() {
    let world = World::s3().await;
    world.remote.put_s3("app", "a.yaml", "a").await.unwrap();
    // moto does not know this call; the answer is that of MinIO's documentation.
    let answer = "<AssumeRoleWithLDAPIdentityResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\">\
        <AssumeRoleWithLDAPIdentityResult><Credentials><AccessKeyId>Y4RJU1RNFGK48LGO9I2S</AccessKeyId>\
        <SecretAccessKey>sYLRKS1Z7hSjluf6gEbb9066hnx315wHTiACPAjg</SecretAccessKey>\
        <Expiration>2099-08-08T20:26:12Z</Expiration><SessionToken>eyJhbGciOiJIUzUxMiIs</SessionToken></Credentials>\
        </AssumeRoleWithLDAPIdentityResult></AssumeRoleWithLDAPIdentityResponse>";
    let service = axum::Router::new().route(
        "/",
        axum::routing::post(move |body: String| async move {
            let expected =
                "Action=AssumeRoleWithLDAPIdentity&Version=2011-06-15&LDAPUsername=u&LDAPPassword=p%26w";
            if body == expected {
                (axum::http::StatusCode::OK, answer)
            } else {
                (
                    axum::http::StatusCode::FORBIDDEN,
                    "<E><Code>No</Code><Message>wrong user</Message></E>",
                )
            }
        }),
    );
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, service).await });
    let spec = json!({
        "provider": "generic",
        "sts": {"provider": "ldap", "endpoint": endpoint, "secretRef": {"name": "ldap"}},
    });
    let with = |password: &str| References {
        sts_secret: Some(secret(&[("username", "u"), ("password", password)])),
        ..world.references(None)
    };
    world.take(spec.clone(), with("p&w")).await.unwrap().record();
    let error = world.take(spec.clone(), with("hunter2")).await.unwrap_err();
    assert_eq!(
        error,
        format!("LDAP authentication failed: '{endpoint}/' answered 403 Forbidden: No: wrong user")
    );
    let error = world.take(spec, with("")).await.unwrap_err();
    assert_eq!(
        error,
        "invalid 'ldap' secret data: required fields username, password for the 'ldap' STS provider"
    );
}

#[test]
fn what_the_spec_cannot_have_is_refused_for_good() {
    let refusal = |spec: Value| {
        let mut whole = json!({"interval": "1m", "bucketName": "app", "endpoint": "minio"});
        whole
            .as_object_mut()
            .unwrap()
            .extend(spec.as_object().unwrap().clone());
        let object = json!({"metadata": {"name": "app", "namespace": "apps"}, "spec": whole});
        let object: Bucket = serde_json::from_value(object).unwrap();
        let error = object.refusal()?;
        Some((error.condition().1, error.message()))
    };
    let sts = |provider: &str| json!({"provider": provider, "endpoint": "https://sts.amazonaws.com"});
    assert_eq!(refusal(json!({})), None);
    assert_eq!(refusal(json!({"provider": "aws", "sts": sts("aws")})), None);
    assert_eq!(refusal(json!({"provider": "generic", "sts": sts("ldap")})), None);
    let cases = [
        (
            json!({"provider": "aws", "sts": sts("ldap")}),
            "InvalidSTSConfiguration",
            "STS provider 'ldap' is not supported for 'aws' bucket provider",
        ),
        (
            json!({"provider": "gcp", "sts": sts("aws")}),
            "InvalidSTSConfiguration",
            "STS configuration is not supported for 'gcp' bucket provider",
        ),
        (
            json!({"provider": "generic", "sts": {"provider": "ldap", "endpoint": "http://[x"}}),
            "URLInvalid",
            "failed to parse STS endpoint 'http://[x': invalid IPv6 address",
        ),
    ];
    for (spec, reason, message) in cases {
        assert_eq!(refusal(spec), Some((reason, message.to_owned())));
    }
}

#[tokio::test]
async fn a_bucket_of_google_becomes_an_artifact() {
    let world = World::start(Package::FakeGcsServer).await;
    world.remote.make_gcs("app").await.unwrap();
    for (name, content) in [
        ("a.yaml", "a"),
        ("b%2Fc%20d.yaml", "c"),
        (".sourceignore", "*.md"),
        ("x.md", "x"),
    ] {
        world.remote.put_gcs("app", name, content).await.unwrap();
    }
    let spec = json!({"provider": "gcp", "endpoint": "storage.googleapis.com"});
    let record = world
        .take(spec.clone(), world.references(None))
        .await
        .unwrap()
        .record();
    assert_eq!(
        world.files(&record),
        files(&[(".sourceignore", "*.md"), ("a.yaml", "a"), ("b/c d.yaml", "c")])
    );
    let again = world.take(spec.clone(), world.references(None)).await.unwrap();
    assert!(matches!(again, Taken::Unchanged(_)));
    let gone = json!({"provider": "gcp", "bucketName": "gone"});
    let error = world.take(gone, world.references(None)).await.unwrap_err();
    assert_eq!(error, "bucket 'gone' not found");
}

#[tokio::test]
async fn a_store_with_an_authority_of_its_own_is_trusted_by_it_only() {
    let folder = tempfile::tempdir().unwrap();
    let made = testkit::certificates::write(folder.path(), &["127.0.0.1"]).unwrap();
    let file = |path: &std::path::Path| path.display().to_string();
    let (certificate, key) = (file(&made.server_certificate_file), file(&made.server_key_file));
    let arguments = ["--ssl-cert", certificate.as_str(), "--ssl-key", key.as_str()];
    let world = World::start_with(Package::Moto, &arguments).await;
    let spec = json!({"insecure": false, "bucketName": "gone"});
    let error = world
        .take(spec.clone(), world.references(None))
        .await
        .unwrap_err();
    assert!(error.contains("certificate"), "{error}");
    let references = References {
        tls: http::Settings {
            ca: Some(made.authority.into_bytes()),
            ..Default::default()
        },
        ..world.references(None)
    };
    let error = world.take(spec, references).await.unwrap_err();
    assert_eq!(error, "bucket 'gone' not found");
}
