use std::io::Read as _;
use std::time::Duration;

use testkit::HelmRepository;

use super::*;

struct Peer {
    server: HelmRepository,
    fetcher: Fetcher,
    _directory: tempfile::TempDir,
}

impl Peer {
    async fn start(tls: bool) -> Self {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let directory = tempfile::tempdir().unwrap();
        let server = if tls {
            HelmRepository::start_tls().await
        } else {
            HelmRepository::start().await
        };
        Self {
            server: server.unwrap(),
            fetcher: Fetcher::alone(directory.path().to_owned()),
            _directory: directory,
        }
    }

    fn repository(&self, secrets: &Secrets, pass_credentials: bool) -> Result<Repository, Error> {
        let deadline = Instant::now() + Duration::from_secs(20);
        Repository::new(
            self.server.url(),
            secrets,
            pass_credentials,
            deadline,
            &self.fetcher,
        )
    }

    async fn index(&self, secrets: &Secrets) -> Result<Index, String> {
        let repository = self
            .repository(secrets, false)
            .map_err(|error| error_chain::chain(&error))?;
        match repository.fetch_index(None).await {
            Ok(Answer::New(index)) => Ok(index),
            Ok(Answer::Unchanged(_)) => panic!("nothing was known"),
            Err(error) => Err(error_chain::chain(&error)),
        }
    }
}

fn secret(pairs: &[(&str, &str)]) -> Option<SecretData> {
    let pairs = pairs
        .iter()
        .map(|(key, value)| ((*key).to_owned(), value.as_bytes().to_vec()));
    Some(pairs.collect())
}

fn credentials() -> Secrets {
    Secrets {
        authentication: secret(&[("username", "user"), ("password", "pass")]),
        certificates: None,
    }
}

#[tokio::test]
async fn an_index_is_fetched_once_and_then_only_asked_about() {
    let peer = Peer::start(false).await;
    let mut index = peer.index(&Secrets::default()).await.unwrap();
    let raw = peer.server.file("index.yaml").unwrap();
    assert_eq!(index.revision, Digest::from_content(&raw));
    assert_eq!((index.summary.charts, index.summary.versions), (2, 4));
    let mut json = String::new();
    index.file.read_to_string(&mut json).unwrap();
    assert!(json.starts_with("{\n  \"apiVersion\": \"v1\",\n"), "{json}");

    let repository = peer.repository(&Secrets::default(), false).unwrap();
    for with_etag in [true, false] {
        peer.server.set_etag(with_etag);
        let index = peer.index(&Secrets::default()).await.unwrap();
        peer.server.take_requests();
        let again = repository.fetch_index(Some(&index.validators)).await.unwrap();
        assert!(matches!(again, Answer::Unchanged(None)));
        assert_eq!(peer.server.take_requests()[0].status, 304);
    }

    // As after a restart: only the digest is known.
    let key = artifact::store::ObjectKey::new("HelmRepository", "apps", "charts");
    let revision_only = peer.fetcher.helm.recall(&key, peer.server.url(), &index.revision);
    let again = repository.fetch_index(Some(&revision_only)).await.unwrap();
    assert!(matches!(again, Answer::Unchanged(Some(_))));

    peer.server
        .set_file("index.yaml", Some([raw, b"# new\n".to_vec()].concat()));
    peer.server.set_etag(true);
    let again = repository.fetch_index(Some(&index.validators)).await.unwrap();
    assert!(matches!(again, Answer::New(_)));
}

#[tokio::test]
async fn a_compressed_index_is_the_same_index() {
    let peer = Peer::start(false).await;
    let plain = peer.index(&Secrets::default()).await.unwrap().revision;
    peer.server.set_compressed(true);
    assert_eq!(peer.index(&Secrets::default()).await.unwrap().revision, plain);
}

#[tokio::test]
async fn what_is_too_large_is_refused_compressed_or_not() {
    let mut peer = Peer::start(false).await;
    peer.fetcher.helm.limits.index = 1000;
    for compressed in [false, true] {
        peer.server.set_compressed(compressed);
        assert_eq!(
            peer.index(&Secrets::default()).await.err().unwrap(),
            "failed to fetch Helm repository index: index exceeds the maximum index file size of 1000 bytes"
        );
    }
}

#[tokio::test]
async fn each_failure_says_what_it_is() {
    let peer = Peer::start(false).await;
    peer.server.set_credentials("user", "pass");
    let url = format!("{}/index.yaml", peer.server.url());
    assert_eq!(
        peer.index(&Secrets::default()).await.err().unwrap(),
        format!(
            "failed to fetch Helm repository index: '{url}' answered 401 Unauthorized; the credentials are missing or wrong, see spec.secretRef"
        )
    );
    peer.index(&credentials()).await.unwrap();
    peer.server.set_file("index.yaml", Some(b"hello: world".to_vec()));
    assert_eq!(
        peer.index(&credentials()).await.err().unwrap(),
        "failed to load Helm repository from index YAML: error unmarshaling JSON: while decoding JSON: json: unknown field \
         \"hello\" (line 1)"
    );
    peer.server.set_file("index.yaml", None);
    assert_eq!(
        peer.index(&credentials()).await.err().unwrap(),
        format!(
            "failed to fetch Helm repository index: '{url}' answered 404 Not Found; check the address, and whether the credentials may see it"
        )
    );
    let half = Secrets {
        authentication: secret(&[("username", "user")]),
        certificates: None,
    };
    assert_eq!(
        peer.index(&half).await.err().unwrap(),
        "failed to detect authentication methods: malformed basic auth: has 'username' but is missing 'password'"
    );
}

#[tokio::test]
async fn a_server_with_an_authority_of_its_own_is_trusted_when_the_secret_says_so() {
    let peer = Peer::start(true).await;
    let error = peer.index(&Secrets::default()).await.err().unwrap();
    assert!(
        error.contains("x509: certificate signed by unknown authority"),
        "{error}"
    );
    let authority = peer.server.authority().unwrap().to_owned();
    let pairs: [(&str, &str); 1] = [("ca.crt", &authority)];
    let certificates = Secrets {
        certificates: secret(&pairs),
        authentication: None,
    };
    peer.index(&certificates).await.unwrap();
    let deprecated = Secrets {
        authentication: secret(&pairs),
        certificates: None,
    };
    peer.index(&deprecated).await.unwrap();
}

#[tokio::test]
async fn a_chart_is_found_and_downloaded() {
    let mut peer = Peer::start(false).await;
    let index = peer.index(&Secrets::default()).await.unwrap();
    let version = find_version(index.file, "app", "").unwrap();
    assert_eq!(version.version, "1.1.0");
    let repository = peer.repository(&Secrets::default(), false).unwrap();
    let mut chart = repository.download(&version).await.unwrap();
    let mut data = Vec::new();
    chart.file.read_to_end(&mut data).unwrap();
    assert_eq!(Some(data), peer.server.file("app-1.1.0.tgz"));
    assert_eq!(chart.url, format!("{}/app-1.1.0.tgz", peer.server.url()));

    peer.server.set_file("app-1.1.0.tgz", Some(b"another".to_vec()));
    let error = repository.download(&version).await.err().unwrap().to_string();
    assert!(
        error.contains(": its digest is sha256:") && error.contains(&version.digest),
        "{error}"
    );

    peer.fetcher.helm.limits.chart = 5;
    let repository = peer.repository(&Secrets::default(), false).unwrap();
    let error = repository.download(&version).await.err().unwrap();
    assert_eq!(
        error.to_string(),
        "chart exceeds the maximum chart size of 5 bytes"
    );

    let page = b"<!DOCTYPE html><p>Sign in".to_vec();
    peer.server.set_file("app-1.1.0.tgz", Some(page));
    let error = repository.download(&version).await.err().unwrap();
    let error = error_chain::chain(&error);
    assert!(
        error.contains("answered with a web page instead of the archive of a chart; is the URL"),
        "{error}"
    );
}

#[tokio::test]
async fn credentials_go_to_other_servers_only_when_they_are_passed() {
    let peer = Peer::start(false).await;
    let other = HelmRepository::start().await.unwrap();
    let version = helm_index::ChartVersion {
        name: "app".to_owned(),
        urls: vec![format!("{}/app-1.0.0.tgz", other.url())],
        ..Default::default()
    };
    for (pass_credentials, sent) in [(false, None), (true, Some("Basic dXNlcjpwYXNz".to_owned()))] {
        let repository = peer.repository(&credentials(), pass_credentials).unwrap();
        repository.download(&version).await.unwrap();
        assert_eq!(other.take_requests()[0].authorization, sent);
    }
}

#[test]
fn addresses_are_checked() {
    let message = |url: &str| parse(url).unwrap_err().to_string();
    assert_eq!(
        message("oci://h/charts"),
        "invalid Helm repository URL: 'oci' URL scheme cannot be used with 'default' HelmRepository type"
    );
    assert_eq!(
        message("http://[x/"),
        "invalid Helm repository URL: failed to parse it: invalid IPv6 address"
    );
    assert_eq!(
        message("ftp://h/"),
        "invalid Helm repository URL: scheme \"ftp\" not supported"
    );
}
