use artifact::store::Options;
use serde_json::json;
use testkit::HelmRepository as Server;

use super::*;
use crate::fetch::helm_repository::Secrets;
use error_chain::chain;

struct Peer {
    server: Server,
    object: HelmRepository,
    store: Store,
    fetcher: Fetcher,
    _directory: tempfile::TempDir,
}

impl Peer {
    async fn start() -> Self {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let directory = tempfile::tempdir().unwrap();
        let fetching = directory.path().join("fetching");
        std::fs::create_dir(&fetching).unwrap();
        let (store, _) = Store::open(&directory.path().join("store"), Options::default()).unwrap();
        let server = Server::start().await.unwrap();
        let object = json!({
            "metadata": {"name": "charts", "namespace": "apps"},
            "spec": {"url": server.url(), "interval": "1h"},
        });
        Self {
            server,
            object: serde_json::from_value(object).unwrap(),
            store,
            fetcher: Fetcher::alone(fetching),
            _directory: directory,
        }
    }

    async fn find(&self, chart: &str, range: &str) -> Result<Found, String> {
        let urgent = true;
        self.look(Wanted { chart, range, urgent }).await
    }

    async fn look(&self, wanted: Wanted<'_>) -> Result<Found, String> {
        let references = References(Secrets::default());
        find(&self.object, &references, wanted, &self.store, &self.fetcher)
            .await
            .map_err(|error| chain(&error))
    }

    /// Statuses of the requests since the last time.
    fn asked(&self) -> Vec<u16> {
        self.server
            .take_requests()
            .iter()
            .map(|asked| asked.status)
            .collect()
    }
}

#[tokio::test]
async fn the_stored_index_answers_and_is_renewed_once_when_it_cannot() {
    let peer = Peer::start().await;
    let mut refreshed = peer.fetcher.helm.refreshed();
    let found = peer.find("app", "1.x").await.unwrap();
    assert_eq!(
        (found.version.version.as_str(), peer.asked()),
        ("1.1.0", vec![200])
    );
    assert_eq!(refreshed.try_recv().unwrap().name, "charts");
    found.repository.download(&found.version).await.unwrap();
    peer.server.take_requests();

    peer.find("app", ">=2.0.0-0").await.unwrap();
    assert_eq!(peer.asked(), [0_u16; 0], "the stored index has it");

    let missing = peer.find("app", "3.x").await.err().unwrap();
    assert_eq!(missing, "no 'app' chart with version matching '3.x' found");
    assert_eq!(peer.find("new", "").await.err().unwrap(), "no chart name found");
    assert_eq!(
        peer.asked(),
        [304, 304],
        "asked once each, and not downloaded again"
    );
    assert!(refreshed.try_recv().is_err(), "nothing new");

    let index = String::from_utf8(peer.server.file("index.yaml").unwrap()).unwrap();
    let newer = index.replacen("version: 1.1.0", "version: 3.0.0", 2);
    peer.server.set_file("index.yaml", Some(newer.into_bytes()));
    let found = peer.find("app", "3.x").await.unwrap();
    assert_eq!(
        (found.version.version.as_str(), peer.asked()),
        ("3.0.0", vec![200])
    );
    assert!(refreshed.try_recv().is_ok());
    let record = peer.store.current("HelmRepository", "apps", "charts").unwrap();
    assert!(
        record.path.starts_with("helmrepository/apps/charts/index-"),
        "{}",
        record.path
    );
    assert_eq!(
        peer.store.by_path("helmrepository/apps/charts/index.yaml"),
        Some(record)
    );

    peer.server.set_failing(Some(503));
    peer.find("app", "3.0.0").await.unwrap();
    let error = peer.find("app", "4.x").await.err().unwrap();
    assert!(error.contains("answered 503"), "{error}");
}

#[tokio::test]
async fn a_repository_is_not_asked_again_and_again_for_what_it_has_not() {
    let mut peer = Peer::start().await;
    let wanted = Wanted {
        chart: "app",
        range: "3.x",
        urgent: false,
    };
    let missing = "no 'app' chart with version matching '3.x' found";
    assert_eq!(peer.look(wanted).await.err().unwrap(), missing);
    assert_eq!(peer.asked(), [200], "there was no index yet");
    assert_eq!(peer.look(wanted).await.err().unwrap(), missing);
    assert_eq!(peer.asked(), [0_u16; 0], "it was just read");
    let urgent = Wanted {
        urgent: true,
        ..wanted
    };
    assert_eq!(peer.look(urgent).await.err().unwrap(), missing);
    assert_eq!(peer.asked(), [304]);

    peer.object.spec.suspend = true;
    assert_eq!(peer.look(urgent).await.err().unwrap(), missing);
    assert_eq!(
        peer.asked(),
        [0_u16; 0],
        "who suspends a repository wants it left alone"
    );
}
