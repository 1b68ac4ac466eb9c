//! Pulling from the real distribution registry.

use std::io::Read as _;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use testkit::Registry;
use testkit::registry::{Access, Artifact, CONTENT_MEDIA_TYPE, Fault, Kind, Layer as PushedLayer};
use tokio::time::Instant;

use super::credentials::Credentials;
use super::name::Name;
use super::registry::{Listing, Memory};
use super::*;
use testkit::scripted_registry::{Content as Scripted, ScriptedRegistry};
use transport::http::{self, Clients, Settings};

struct Peer {
    registry: Registry,
    clients: Clients,
    memory: Memory,
}

/// Result of a fetch: the revision, and the layer's content when it was fetched.
#[derive(Debug, PartialEq)]
struct Seen {
    revision: String,
    content: Option<Vec<u8>>,
}

impl Peer {
    async fn start() -> Self {
        Self {
            registry: Registry::start().await.unwrap(),
            clients: Clients::default(),
            memory: Memory::default(),
        }
    }

    fn request(&self, reference: Reference) -> Request {
        let url = self.registry.url("org/app");
        Request {
            repository: Repository {
                name: Name::parse(&url).unwrap(),
                insecure: false,
                credentials: None,
                client: self
                    .clients
                    .get(&Settings::default().towards("127.0.0.1"))
                    .unwrap(),
                memory: self.memory.clone(),
                deadline: Instant::now() + Duration::from_secs(30),
            },
            url,
            reference,
            layer_media_type: None,
        }
    }

    fn kinds(&self) -> Vec<Kind> {
        self.registry.kinds("org/app")
    }
}

async fn pull_all(request: &Request, known: Option<&str>) -> Result<Seen, String> {
    let resolved = resolve(request)
        .await
        .map_err(|error| error_chain::chain(&error))?;
    if known == Some(&resolved.revision) {
        return Ok(Seen {
            revision: resolved.revision,
            content: None,
        });
    }
    let Content { mut layer, .. } = pull(request, resolved.digest)
        .await
        .map_err(|error| error_chain::chain(&error))?;
    let read = tokio::task::spawn_blocking(move || {
        let mut content = Vec::new();
        layer
            .read_to_end(&mut content)
            .map_err(|error| error.to_string())?;
        layer.finish().map_err(|error| error.to_string())?;
        Ok::<_, String>(content)
    });
    Ok(Seen {
        revision: resolved.revision,
        content: Some(read.await.unwrap()?),
    })
}

async fn scripted(content: Scripted) -> ScriptedRegistry {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    ScriptedRegistry::start(content).await.unwrap()
}

/// The one repository of a registry, seen by someone without credentials.
fn repository(registry: &ScriptedRegistry) -> Repository {
    Repository {
        name: Name::parse(&registry.url()).unwrap(),
        insecure: true,
        credentials: None,
        client: Clients::default()
            .get(&Settings::default().towards("127.0.0.1"))
            .unwrap(),
        memory: Memory::default(),
        deadline: Instant::now() + Duration::from_secs(30),
    }
}

fn tag(name: &str) -> Reference {
    Reference::Tag(name.to_owned())
}

fn range(range: &str, filter: Option<&str>) -> Reference {
    Reference::SemVer {
        range: range.to_owned(),
        filter: filter.map(str::to_owned),
    }
}

fn artifact(content: &[u8]) -> Artifact {
    let mut artifact = Artifact::from_files("main@sha1:1", &[]).unwrap();
    artifact.layers = vec![PushedLayer {
        media_type: CONTENT_MEDIA_TYPE.to_owned(),
        data: content.to_vec(),
    }];
    artifact
}

#[tokio::test]
async fn a_layer_is_counted_though_another_thread_reads_it() {
    let peer = Peer::start().await;
    let artifact = artifact(&vec![b'x'; 100_000]);
    let pushed = peer.registry.push("org/app", &["latest"], &artifact);
    pushed.await.unwrap();
    let counter = prometheus_client::metrics::counter::Counter::default();
    let request = peer.request(tag("latest"));
    let pulled = transport::received::counting(counter.clone(), pull_all(&request, None)).await;
    pulled.unwrap();
    let bytes: u64 = counter.get();
    assert!(
        (100_000..110_000).contains(&bytes),
        "{bytes}: the layer and its manifest"
    );
}

#[tokio::test]
async fn an_unchanged_tag_costs_one_head_of_its_manifest() {
    let peer = Peer::start().await;
    let digest = peer
        .registry
        .push("org/app", &["latest"], &artifact(b"one"))
        .await
        .unwrap();
    let revision = format!("latest@{digest}");
    let first = pull_all(&peer.request(tag("latest")), None).await.unwrap();
    assert_eq!(
        first,
        Seen {
            revision: revision.clone(),
            content: Some(b"one".to_vec())
        }
    );
    assert_eq!(
        peer.kinds(),
        [Kind::ManifestHead, Kind::ManifestGet, Kind::BlobGet]
    );
    peer.registry.reset_requests();

    let again = pull_all(&peer.request(tag("latest")), Some(&revision))
        .await
        .unwrap();
    assert_eq!(
        again,
        Seen {
            revision: revision.clone(),
            content: None
        }
    );
    assert_eq!(peer.kinds(), [Kind::ManifestHead]);

    let digest = peer
        .registry
        .push("org/app", &["latest"], &artifact(b"two"))
        .await
        .unwrap();
    let moved = pull_all(&peer.request(tag("latest")), Some(&revision))
        .await
        .unwrap();
    assert_eq!(
        moved,
        Seen {
            revision: format!("latest@{digest}"),
            content: Some(b"two".to_vec())
        }
    );
}

#[tokio::test]
async fn a_pinned_digest_is_its_own_revision_and_needs_no_question() {
    let peer = Peer::start().await;
    let digest = peer
        .registry
        .push("org/app", &["latest"], &artifact(b"one"))
        .await
        .unwrap();
    let pinned = Reference::Digest(digest.clone());
    let seen = pull_all(&peer.request(pinned.clone()), None).await.unwrap();
    assert_eq!(
        seen,
        Seen {
            revision: digest.clone(),
            content: Some(b"one".to_vec())
        }
    );
    peer.registry.reset_requests();
    let again = pull_all(&peer.request(pinned), Some(&digest)).await.unwrap();
    assert_eq!(
        again,
        Seen {
            revision: digest,
            content: None
        }
    );
    assert_eq!(peer.kinds(), []);
}

#[tokio::test]
async fn the_highest_tag_in_the_range_is_found_on_any_page() {
    let peer = Peer::start().await;
    let one = artifact(b"one");
    let tags: Vec<String> = (0..3000).map(|patch| format!("1.0.{patch}")).collect();
    let mut all: Vec<&str> = tags.iter().map(String::as_str).collect();
    all.extend(["1.1.0-rc.1", "2.0.0", "latest", "9.9.9-staging"]);
    let digest = peer.registry.push("org/app", &all, &one).await.unwrap();
    for (reference, tag) in [
        (range("1.x", None), "1.0.2999"),
        (range(">=1.0.0-0 <2", None), "1.1.0-rc.1"),
        (range(">=1", None), "2.0.0"),
        (range(">=1.0.0-0", Some("staging$")), "9.9.9-staging"),
    ] {
        let seen = pull_all(&peer.request(reference.clone()), None).await.unwrap();
        assert_eq!(seen.revision, format!("{tag}@{digest}"), "{reference:?}");
    }
    let url = peer.registry.url("org/app");
    for (reference, problem) in [
        (
            range(">=3", None),
            "no match found for semver: >=3 (nearest of 3004 tags: 1.1.0-rc.1, 2.0.0, 9.9.9-staging)",
        ),
        (
            range("*", Some("^l")),
            "no match found for semver: * (none of 1 tags is a version)",
        ),
        (
            range("*", Some("^x")),
            "no match found for semver: * (there are no tags that could match)",
        ),
        (
            range("newest", None),
            "semver 'newest' parse error: improper constraint: \"newest\"",
        ),
        (
            range("*", Some("(")),
            "failed to parse the filter '(': error parsing regexp: missing closing ): `(`",
        ),
    ] {
        let error = pull_all(&peer.request(reference), None).await.unwrap_err();
        assert_eq!(
            error,
            format!("failed to determine the artifact tag for '{url}': {problem}")
        );
    }
}

#[tokio::test]
async fn the_layer_is_chosen_by_media_type() {
    let peer = Peer::start().await;
    let mut two = artifact(b"first");
    two.layers.push(PushedLayer {
        media_type: "application/x".to_owned(),
        data: b"second".to_vec(),
    });
    peer.registry.push("org/app", &["latest"], &two).await.unwrap();
    let select = |media_type: &str| {
        let mut request = peer.request(tag("latest"));
        request.layer_media_type = Some(media_type.to_owned());
        request
    };
    assert_eq!(
        pull_all(&select("application/x"), None).await.unwrap().content,
        Some(b"second".to_vec())
    );
    let error = pull_all(&select("application/y"), None).await.unwrap_err();
    assert_eq!(
        error,
        "failed to find layer with media type 'application/y' in artifact"
    );
}

#[tokio::test]
async fn annotations_come_with_the_content() {
    let peer = Peer::start().await;
    peer.registry
        .push("org/app", &["latest"], &artifact(b"one"))
        .await
        .unwrap();
    let request = peer.request(tag("latest"));
    let resolved = resolve(&request).await.unwrap();
    let content = pull(&request, resolved.digest).await.unwrap();
    assert_eq!(
        content.metadata["org.opencontainers.image.revision"],
        "main@sha1:1"
    );
}

#[tokio::test]
async fn registries_are_shown_what_they_ask_for_and_are_then_known() {
    let mut peer = Peer::start().await;
    peer.registry
        .push("org/app", &["latest"], &artifact(b"one"))
        .await
        .unwrap();
    let credentials = ("u".to_owned(), "secret-p".to_owned());
    let basic = Access::Basic {
        username: credentials.0.clone(),
        password: credentials.1.clone(),
    };
    let accesses = [
        (basic, true),
        (Access::Token(None), false),
        (Access::Token(Some(credentials.clone())), true),
    ];
    for (access, private) in accesses {
        peer.memory = Memory::default();
        peer.registry.set_access(access.clone());
        let with = |credentials: Option<Credentials>| {
            let mut request = peer.request(tag("latest"));
            request.repository.credentials = credentials;
            request
        };
        let good = Credentials::Basic(credentials.0.clone(), credentials.1.clone());
        let seen = pull_all(&with(Some(good.clone())), None)
            .await
            .unwrap_or_else(|error| panic!("{access:?}: {error}"));
        assert_eq!(seen.content, Some(b"one".to_vec()));
        // What one object may see is not shown to another that lacks the credentials.
        assert_eq!(pull_all(&with(None), None).await.is_err(), private, "{access:?}");
        let wrong = Credentials::Basic("u".to_owned(), "secret-wrong".to_owned());
        if private {
            let error = pull_all(&with(Some(wrong)), None).await.unwrap_err();
            assert!(error.contains("401") && !error.contains("secret-"), "{error}");
        }
        peer.registry.reset_requests();
        assert_eq!(
            pull_all(&with(Some(good)), Some(&seen.revision))
                .await
                .unwrap()
                .content,
            None
        );
        assert_eq!(peer.kinds(), [Kind::ManifestHead], "{access:?}");
    }
}

#[tokio::test]
async fn where_a_registry_sends_us_gets_no_credentials() {
    let elsewhere = Arc::new(OnceLock::new());
    let thief = scripted(Scripted {
        hook: Some({
            let address = Arc::clone(&elsewhere);
            Box::new(move |_| {
                let realm = format!(r#"Bearer realm="http://{}/token""#, address.get()?);
                Some((401, vec![("www-authenticate", realm)], Vec::new()))
            })
        }),
        ..Scripted::default()
    })
    .await;
    elsewhere.set(repository(&thief).name.registry).unwrap();
    let registry = scripted(Scripted {
        hook: Some(Box::new(move |path| {
            let location = format!("http://{}{path}", elsewhere.get()?);
            Some((307, vec![("location", location)], Vec::new()))
        })),
        ..Scripted::default()
    })
    .await;
    let request = Request {
        repository: Repository {
            credentials: Some(Credentials::Basic("u".to_owned(), "p".to_owned())),
            ..repository(&registry)
        },
        url: "oci://registry/org/app".to_owned(),
        reference: tag("latest"),
        layer_media_type: None,
    };
    let error = pull_all(&request, None).await.unwrap_err();
    assert!(error.contains("401"), "{error}");
    let asked = thief.requests();
    assert!(!asked.is_empty());
    assert!(!asked.iter().any(|path| path.starts_with("/token")), "{asked:?}");
}

#[tokio::test]
async fn failures_say_what_is_wrong() {
    let peer = Peer::start().await;
    let error = pull_all(&peer.request(tag("latest")), None).await.unwrap_err();
    assert!(
        error.starts_with("failed to determine artifact digest: '"),
        "{error}"
    );
    assert!(error.contains("404") && error.contains("UNKNOWN"), "{error}");

    peer.registry
        .push("org/app", &["latest"], &artifact(b"one"))
        .await
        .unwrap();
    let error = pull_all(&peer.request(tag("lastest")), None).await.unwrap_err();
    let known = "failed to determine artifact digest: tag 'lastest' not found; there is: latest: '";
    assert!(error.starts_with(known) && error.contains("404"), "{error}");
    peer.registry.set_fault("org/app", Fault::CorruptBlobs);
    let error = pull_all(&peer.request(tag("latest")), None).await.unwrap_err();
    assert!(
        error.starts_with("failed to verify the layer: its digest is"),
        "{error}"
    );

    peer.registry.set_fault("org/app", Fault::BlobStatus(404));
    let error = pull_all(&peer.request(tag("latest")), None).await.unwrap_err();
    assert!(error.starts_with("failed to fetch layer 'sha256:"), "{error}");

    peer.registry.set_fault("org/app", Fault::Hang);
    let mut request = peer.request(tag("latest"));
    request.repository.deadline = Instant::now() + Duration::from_millis(200);
    let error = pull_all(&request, None).await.unwrap_err();
    assert!(error.contains("in time"), "{error}");

    let mut request = peer.request(tag("latest"));
    request.repository.name = Name::parse("oci://127.0.0.1:1/app").unwrap();
    let error = pull_all(&request, None).await.unwrap_err();
    assert!(error.contains("connection refused"), "{error}");
}

/// Result of a list of tags that leads to `next`, and the number of requests.
async fn paged(next: fn(&str, usize) -> (Vec<String>, String)) -> (Result<usize, String>, usize) {
    let count = std::sync::atomic::AtomicUsize::new(0);
    let content = Scripted {
        hook: Some(Box::new(move |path| {
            let (_, query) = path.split_once("/tags/list?")?;
            let number = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let (tags, next) = next(query, number);
            let body = serde_json::json!({"name": "org/app", "tags": tags}).to_string();
            let link = format!("</v2/org/app/tags/list?{next}>; rel=\"next\"");
            Some((200, vec![("link", link)], body.into_bytes()))
        })),
        ..Default::default()
    };
    let registry = scripted(content).await;
    let tags = repository(&registry).tags().await;
    let tags = tags.map(|tags| tags.len()).map_err(|error| error.to_string());
    (tags, registry.requests().len())
}

#[tokio::test]
async fn lists_of_tags_that_do_not_end_are_left() {
    let endless = |error: Result<usize, String>| {
        error
            .unwrap_err()
            .contains("the list of tags, which does not end,")
    };
    // In a circle of two pages.
    let (tags, requests) = paged(|query, _| {
        let other = if query.contains("last=a") { "b" } else { "a" };
        (vec![other.to_owned()], format!("last={other}"))
    })
    .await;
    assert!(endless(tags) && requests == 3, "{requests}");
    // A new page for ever.
    let (tags, requests) = paged(|_, number| (vec![format!("t{number}")], format!("last=t{number}"))).await;
    assert!(endless(tags) && requests == 2000, "{requests}");
    // The same page for ever, which is how some registries end.
    let (tags, requests) = paged(|_, number| (vec!["a".to_owned()], format!("last={number}"))).await;
    assert_eq!((tags, requests), (Ok(1), 2));
    // Nothing, which leads to nothing.
    let (tags, requests) = paged(|_, number| (Vec::new(), format!("last={number}"))).await;
    assert_eq!((tags, requests), (Ok(0), 1));
}

#[tokio::test]
async fn a_full_page_without_a_word_about_the_next_one_is_not_taken_for_all() {
    let content = Scripted {
        hook: Some(Box::new(|path| {
            let (_, query) = path.split_once("/tags/list?")?;
            let from = if query.ends_with("last=t099") { 100 } else { 0 };
            let tags: Vec<_> = (from..150.min(from + 100))
                .map(|number| format!("t{number:03}"))
                .collect();
            Some((
                200,
                Vec::new(),
                serde_json::json!({"tags": tags}).to_string().into_bytes(),
            ))
        })),
        ..Default::default()
    };
    let registry = scripted(content).await;
    assert_eq!(repository(&registry).tags().await.unwrap().len(), 150);
    assert_eq!(registry.requests().len(), 2);
}

#[tokio::test]
async fn a_list_that_is_still_the_same_is_not_read_again() {
    let answer = |path: &str, pages: usize| {
        let (_, query) = path.split_once("/tags/list?")?;
        let page = usize::from(query.contains("last="));
        let mut headers = vec![("etag", format!("\"{page}\""))];
        if page + 1 < pages {
            headers.push(("link", "</v2/org/app/tags/list?last=a>; rel=\"next\"".to_owned()));
        }
        let tags = [["a"], ["b"]][page];
        Some((
            200,
            headers,
            serde_json::json!({"tags": tags}).to_string().into_bytes(),
        ))
    };
    for (pages, expected) in [(1, Some("\"0\"")), (2, None)] {
        let content = Scripted {
            hook: Some(Box::new(move |path| answer(path, pages))),
            ..Default::default()
        };
        let registry = scripted(content).await;
        let repository = repository(&registry);
        let Listing::Tags { tags, mark } = repository.tags_unless(Some("\"other\"")).await.unwrap() else {
            panic!("it changed");
        };
        assert_eq!(tags.len(), pages);
        assert_eq!(mark.as_deref(), expected, "a list of several pages has no mark");
        let again = repository.tags_unless(mark.as_deref()).await.unwrap();
        assert_eq!(again == Listing::Unchanged, mark.is_some());
        assert_eq!(repository.tags().await.unwrap().len(), pages);
    }
}

#[tokio::test]
async fn a_registry_that_has_had_enough_says_for_how_long() {
    let content = Scripted {
        hook: Some(Box::new(|_| {
            Some((429, vec![("retry-after", "30".to_owned())], Vec::new()))
        })),
        ..Default::default()
    };
    let registry = scripted(content).await;
    let request = Request {
        url: "oci://h.io/org/app".to_owned(),
        repository: repository(&registry),
        reference: tag("latest"),
        layer_media_type: None,
    };
    let error = resolve(&request).await.unwrap_err();
    let message = error_chain::chain(&error);
    assert!(
        message.contains("429 Too Many Requests") && message.ends_with(": it asks for a pause of 30 s"),
        "{message}"
    );
    let mut causes = std::iter::successors(Some(&error as &dyn std::error::Error), |error| error.source());
    let pause = causes.find_map(|cause| cause.downcast_ref::<http::RetryAfter>());
    assert_eq!(pause.map(|asked| asked.pause()), Some(Duration::from_secs(30)));
    assert_eq!(registry.requests().len(), 1, "it is not asked again at once");
}

#[tokio::test]
async fn manifests_that_are_too_large_are_not_read() {
    let content = Scripted {
        hook: Some(Box::new(|_| Some((200, Vec::new(), vec![b' '; (4 << 20) + 1])))),
        ..Default::default()
    };
    let registry = scripted(content).await;
    let error = repository(&registry).manifest("latest").await.unwrap_err();
    assert!(error.to_string().contains("larger than 4194304 bytes"), "{error}");
}

#[test]
fn what_is_no_tag_does_not_reach_the_registry() {
    assert!(
        ["latest", "v1.2.3", "_a", "1.0.0_build-1"]
            .into_iter()
            .all(is_tag)
    );
    assert!(
        !["", ".a", "-a", "a/b", "a?b", "a#b", "a b", "ä", &"a".repeat(129)]
            .into_iter()
            .any(is_tag)
    );
}

#[test]
fn of_several_references_the_most_exact_counts() {
    let reference = Reference::from_fields;
    let tag = |tag: &str| Reference::Tag(tag.to_owned());
    let range = |range: &str, filter: Option<&str>| Reference::SemVer {
        range: range.to_owned(),
        filter: filter.map(str::to_owned),
    };
    assert_eq!(
        reference(Some("sha256:1"), Some("*"), None, Some("v1")),
        Reference::Digest("sha256:1".to_owned())
    );
    assert_eq!(
        reference(Some(""), Some("*"), Some("^v"), Some("v1")),
        range("*", Some("^v"))
    );
    assert_eq!(reference(None, None, Some("^v"), Some("v1")), tag("v1"));
    assert_eq!(reference(None, None, None, None), tag("latest"));
}
