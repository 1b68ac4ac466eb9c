//! Every way in which a remote can fail, for every kind of remote: what the condition says, and when it is tried again.

use std::net::SocketAddr;
use std::time::Duration;

use api::source::{Bucket, HelmRepository, Source as _};
use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Redirect, Response};
use testkit::tls_front::TlsFront;
use tokio::net::TcpListener;
use verification_policy::sources::Admission;

use super::*;
use crate::error::Disposition;

const SECRET: &str = "letmein";

/// How a remote fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Failing {
    /// Its name does not exist, or there is no one to ask about it.
    Name,
    Refused,
    /// Its certificate is signed by no one known.
    Authority,
    Status(u16),
    /// 429 with a pause.
    Busy(&'static str),
    /// Takes requests, and answers none.
    Silent,
    /// Ends the connection in the middle of the answer.
    Broken,
    /// Shows a page for people.
    Page,
    /// Leads from one address to another.
    Round,
}

/// A remote that fails.
struct Remote {
    address: String,
    is_tls: bool,
    _front: Option<TlsFront>,
    _silent: Option<TcpListener>,
}

async fn serve<F, R>(answer: F) -> SocketAddr
where
    F: Fn(String) -> R + Clone + Send + Sync + 'static,
    R: Future<Output = Response> + Send + 'static,
{
    let router = Router::new().fallback(move |uri: axum::http::Uri| answer(uri.path().to_owned()));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

impl Remote {
    async fn start(failing: Failing) -> Self {
        let (mut front, mut silent) = (None, None);
        let address = match failing {
            Failing::Name => "windlass-test.invalid".to_owned(),
            Failing::Refused => format!("127.0.0.1:{}", testkit::ports::free_port().unwrap()),
            Failing::Silent => {
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                let address = listener.local_addr().unwrap();
                silent = Some(listener);
                address.to_string()
            }
            Failing::Authority => {
                let behind = serve(|_| async { StatusCode::OK.into_response() }).await;
                let started = TlsFront::start(behind, false).await.unwrap();
                let address = started.address();
                front = Some(started);
                address.to_string()
            }
            failing => serve(move |path| async move { answer(failing, &path) })
                .await
                .to_string(),
        };
        Self {
            address,
            is_tls: failing == Failing::Authority,
            _front: front,
            _silent: silent,
        }
    }

    fn url(&self, path: &str) -> String {
        let scheme = if self.is_tls { "https" } else { "http" };
        format!("{scheme}://user:{SECRET}@{}/{path}?token={SECRET}", self.address)
    }
}

fn answer(failing: Failing, path: &str) -> Response {
    match failing {
        Failing::Status(status) => StatusCode::from_u16(status).unwrap().into_response(),
        Failing::Busy(pause) => {
            (StatusCode::TOO_MANY_REQUESTS, [(header::RETRY_AFTER, pause)]).into_response()
        }
        Failing::Page => axum::response::Html("<!DOCTYPE html><title>Sign in</title>").into_response(),
        Failing::Round => Redirect::temporary(&format!("{path}/x")).into_response(),
        _ => {
            let broken = [Ok("#"), Err(std::io::Error::other("the end"))];
            axum::body::Body::from_stream(futures::stream::iter(broken)).into_response()
        }
    }
}

/// Returns the failure of one kind.
async fn refusal<K: Kind>(mut spec: Value, references: K::References, peer: &Peer) -> Error {
    spec["interval"] = "1m".into();
    spec["timeout"] = "700ms".into();
    let object = json!({"metadata": {"name": "app", "namespace": "apps"}, "spec": spec});
    let object: K = serde_json::from_value(object).unwrap();
    match object.fetch(&references, None, &peer.fetcher).await {
        Err(failure) => failure.error.after(object.timeout()),
        Ok(_) => panic!("{spec} was fetched"),
    }
}

/// Returns the failures of all kinds, with the reason that Flux has for the kind.
async fn refusals(failing: Failing) -> Vec<(&'static str, Error)> {
    let (peer, remote) = (Peer::new(), Remote::start(failing).await);
    let git = json!({"url": remote.url("app.git"), "ref": {"branch": "main"}});
    let oci = json!({"url": format!("oci://{}/app", remote.address), "insecure": !remote.is_tls});
    let helm = json!({"url": remote.url("charts")});
    let bucket = json!({"bucketName": "app", "endpoint": remote.address, "insecure": !remote.is_tls});
    let references = crate::kind::bucket::References::from_store(peer.store.clone());
    vec![
        (
            "GitOperationFailed",
            refusal::<GitRepository>(git, Default::default(), &peer).await,
        ),
        (
            "OCIArtifactPullFailed",
            refusal::<OCIRepository>(oci, Default::default(), &peer).await,
        ),
        (
            "Failed",
            refusal::<HelmRepository>(helm, Default::default(), &peer).await,
        ),
        (
            "BucketOperationFailed",
            refusal::<Bucket>(bucket, references, &peer).await,
        ),
    ]
}

#[tokio::test]
async fn every_kind_says_what_is_wrong_and_what_to_do() {
    let retry = Disposition::Retry;
    let pause = |seconds| Disposition::RetryAfter(Duration::from_secs(seconds));
    let unanswered = ["in time: context deadline exceeded; spec.timeout is 700ms"];
    // One word for all kinds, or one for each.
    let cases: Vec<(Failing, &[&str], Disposition)> = vec![
        (
            Failing::Refused,
            &["connection refused: nothing listens there"],
            retry,
        ),
        (
            Failing::Authority,
            &[
                "x509: certificate signed by unknown authority; put the authority's certificate under 'ca.crt'",
            ],
            retry,
        ),
        (
            Failing::Status(401),
            &["401 Unauthorized; the credentials are missing or wrong, see spec.secretRef"],
            retry,
        ),
        (
            Failing::Status(403),
            &["403 Forbidden; the credentials do not allow it"],
            retry,
        ),
        (
            Failing::Status(404),
            &[
                "repository not found: ",
                "404 Not Found; check the address",
                "404 Not Found; check the address",
                "bucket 'app' not found",
            ],
            retry,
        ),
        (
            Failing::Status(503),
            &["503 Service Unavailable; the server is in trouble"],
            retry,
        ),
        (
            Failing::Busy("120"),
            &["429 Too Many Requests; it had too many requests"],
            pause(120),
        ),
        (
            Failing::Busy("Wed, 21 Oct 2015 07:28:00 GMT"),
            &["it asks for a pause of 1 s"],
            pause(1),
        ),
        (
            Failing::Busy("99999999999999999999"),
            &["429 Too Many Requests"],
            retry,
        ),
        (
            Failing::Busy("86400"),
            &["it asks for a pause of 3600 s"],
            pause(3600),
        ),
        (Failing::Silent, &unanswered, retry),
        (
            Failing::Broken,
            &["the other side broke the connection off"],
            retry,
        ),
        (
            Failing::Page,
            &[
                "with a web page instead of Git's list of refs; is the URL that of a page in a browser",
                "with a web page instead of a manifest",
                "with a web page instead of an index of charts",
                "is no listing of a bucket; is spec.endpoint the address of an object store?",
            ],
            retry,
        ),
        (
            Failing::Round,
            &[
                "it does not end; stopped after 10 redirects",
                "it does not end; stopped after 10 redirects",
                "it does not end; stopped after 10 redirects",
                // A signature is for one address.
                "answered 307 Temporary Redirect",
            ],
            retry,
        ),
    ];
    for (failing, words, disposition) in cases {
        for (index, (reason, error)) in refusals(failing).await.into_iter().enumerate() {
            let words = words.get(index).unwrap_or(&words[0]);
            let message = error.message();
            let what = format!("{failing:?}: {message}");
            assert!(message.contains(words), "{what}");
            assert_eq!(error.condition(), (Some("FetchFailed"), reason), "{what}");
            assert_eq!(error.disposition(), disposition, "{what}");
            assert!(!message.contains(SECRET) && !message.contains('\n'), "{what}");
            assert!(!format!("{error:?}").contains(SECRET), "{what}: {error:?}");
        }
    }
}

/// Returns whether name servers answer at all depends on where the test runs; it may take them longer than other tests wait.
#[tokio::test]
async fn a_name_that_does_not_exist_is_no_server_that_is_down() {
    for (_, error) in refusals(Failing::Name).await {
        let message = error.message();
        let known = [
            "no such host: the name does not exist",
            "temporary failure in name resolution",
            "spec.timeout",
        ];
        assert!(known.iter().any(|words| message.contains(words)), "{message}");
    }
}

fn archive(kind: tar::EntryType, name: &str, link: Option<&str>, content: &[u8]) -> Vec<u8> {
    let gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    let mut tar = tar::Builder::new(gzip);
    let mut header = tar::Header::new_gnu();
    header.as_gnu_mut().unwrap().name[..name.len()].copy_from_slice(name.as_bytes());
    header.set_entry_type(kind);
    if let Some(link) = link {
        header.set_link_name(link).unwrap();
    }
    header.set_size(content.len() as u64);
    header.set_cksum();
    tar.append(&header, content).unwrap();
    tar.into_inner().unwrap().finish().unwrap()
}

#[tokio::test]
async fn an_archive_that_is_refused_is_told_with_the_entry() {
    use tar::EntryType;
    let cases = [
        (
            archive(EntryType::Regular, "/etc/passwd", None, b"x"),
            "\"/etc/passwd\": it is absolute",
        ),
        (
            archive(EntryType::Regular, "a/../../x", None, b"x"),
            "\"a/../../x\": it leaves its folder",
        ),
        (
            archive(EntryType::Link, "in", Some("../../etc/passwd"), b""),
            "\"in\": it is a link",
        ),
        (
            archive(EntryType::Char, "null", None, b""),
            "\"null\": it is not a file",
        ),
        (
            archive(EntryType::Regular, "bomb", None, &vec![0; 64 << 20]),
            "\"bomb\": ",
        ),
        (
            b"no archive".to_vec(),
            "failed to read the archive after 0 entries",
        ),
    ];
    for (layer, words) in cases {
        let (peer, registry, _) = oci(layer).await;
        let spec = json!({"url": registry.url("app"), "interval": "1m"});
        let object = json!({"metadata": {"name": "app", "namespace": "apps"}, "spec": spec});
        let object: OCIRepository = serde_json::from_value(object).unwrap();
        let fetched = object
            .fetch(&Default::default(), None, &peer.fetcher)
            .await
            .unwrap();
        let Fetch::New(fetched) = fetched else {
            panic!("nothing is known yet")
        };
        let failure = store::<OCIRepository>(
            &ObjectKey::from_object(&object),
            fetched,
            &peer.store,
            &peer.fetcher,
        )
        .await
        .unwrap_err();
        let message = failure.error.message();
        assert!(message.contains(words), "{message}");
        let condition = (Some("FetchFailed"), "OCIArtifactLayerOperationFailed");
        assert_eq!(failure.error.condition(), condition, "{message}");
        assert_eq!(peer.store.records().len(), 0, "{message}");
    }
}

#[tokio::test]
async fn an_artifact_is_not_made_when_the_time_of_its_run_is_over() {
    let (peer, _server, repository) = git().await;
    repository
        .commit("main", "one", &[Change::write("app.yaml", "a")])
        .unwrap();
    let spec = json!({"url": repository.url(), "ref": {"branch": "main"}, "interval": "1m"});
    let object = json!({"metadata": {"name": "app", "namespace": "apps"}, "spec": spec});
    let object: GitRepository = serde_json::from_value(object).unwrap();
    // Whether or not what was fetched belongs to the run that is over, nothing of it is stored.
    let fetch = || async {
        let run = peer.fetcher.for_run(Admission::default(), None);
        let fetch = object.fetch(&Default::default(), None, &run).await;
        let Ok(Fetch::New(fetched)) = fetch.map_err(|failure| failure.error.message()) else {
            panic!("nothing is known yet")
        };
        (run, fetched)
    };
    let key = ObjectKey::from_object(&object);
    let (_, fetched) = fetch().await;
    let over = peer.fetcher.for_run(Admission::default(), None);
    over.stop.now();
    let failure = store::<GitRepository>(&key, fetched, &peer.store, &over)
        .await
        .unwrap_err();
    let late = failure.error.after(object.timeout());
    assert_eq!(
        late.message(),
        "timed out: failed to store the artifact in time: context deadline exceeded; spec.timeout is 1m0s"
    );
    let (run, fetched) = fetch().await;
    run.stop.now();
    let failure = store::<GitRepository>(&key, fetched, &peer.store, &run)
        .await
        .unwrap_err();
    assert!(
        matches!(failure.error, Error::StoreInTime(_)),
        "{}",
        failure.error.message()
    );
    assert!(peer.store.records().is_empty());
    let (run, fetched) = fetch().await;
    assert!(
        store::<GitRepository>(&key, fetched, &peer.store, &run)
            .await
            .is_ok()
    );
}
