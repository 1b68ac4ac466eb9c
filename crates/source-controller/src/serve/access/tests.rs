//! Against an API server that is a function, and counts what it is asked.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicUsize, Ordering},
};

use artifact::store::{Options, Record, RecordMeta};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use http::{Request, Response};
use kube::client::Body;
use serde_json::{Value, json};
use tonic::Code;

use super::*;

const AUDIENCE: &str = "windlass-artifact";

/// Permissions of subjects: user, resource, namespace, name.
type Rules = &'static [(&'static str, &'static str, &'static str, &'static str)];

struct Cluster {
    client: Client,
    tokens: Arc<AtomicUsize>,
    permissions: Arc<AtomicUsize>,
}

/// A cluster in which the signature of a token is the name of its user.
fn cluster(rules: Rules) -> Cluster {
    let (tokens, permissions) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (asked_tokens, asked_permissions) = (tokens.clone(), permissions.clone());
    let service = tower::service_fn(move |request: Request<Body>| {
        let (tokens, permissions) = (asked_tokens.clone(), asked_permissions.clone());
        async move {
            let path = request.uri().path().to_owned();
            let question: Value =
                serde_json::from_slice(&request.into_body().collect_bytes().await.unwrap()).unwrap();
            let (code, answer) = if path.ends_with("tokenreviews") {
                tokens.fetch_add(1, Ordering::SeqCst);
                review(&question)
            } else {
                permissions.fetch_add(1, Ordering::SeqCst);
                (
                    201,
                    json!({"spec": {}, "status": {"allowed": is_ruled(rules, &question["spec"])}}),
                )
            };
            let body = Body::from(answer.to_string().into_bytes());
            Ok::<_, std::convert::Infallible>(Response::builder().status(code).body(body).unwrap())
        }
    });
    Cluster {
        client: Client::new(service, "default"),
        tokens,
        permissions,
    }
}

fn review(question: &Value) -> (u16, Value) {
    let token = question["spec"]["token"].as_str().unwrap();
    match token.rsplit_once('.').unwrap().1 {
        "forged" => (
            201,
            json!({"spec": {}, "status": {"error": "invalid bearer token"}}),
        ),
        "forbidden" => {
            let message = "tokenreviews is forbidden: source-controller cannot create it";
            (
                403,
                json!({"kind": "Status", "status": "Failure", "message": message, "reason": "Forbidden", "code": 403}),
            )
        }
        user => (
            201,
            json!({"spec": {}, "status": {"authenticated": true, "audiences": [AUDIENCE], "user": {"username": user}}}),
        ),
    }
}

fn is_ruled(rules: Rules, question: &Value) -> bool {
    let attributes = &question["resourceAttributes"];
    assert_eq!(
        (&attributes["verb"], &attributes["group"]),
        (&json!("get"), &json!(GROUP))
    );
    let fields = ["resource", "namespace", "name"].map(|field| attributes[field].as_str().unwrap());
    let covers = |rule: &str, field: &str| rule.is_empty() || rule == field;
    rules.iter().any(|(user, resource, namespace, name)| {
        question["user"] == *user
            && (*resource == "*" || *resource == fields[0])
            && covers(namespace, fields[1])
            && covers(name, fields[2])
    })
}

fn token(user: &str) -> MetadataMap {
    token_for(AUDIENCE, user)
}

fn token_for(audience: &str, user: &str) -> MetadataMap {
    let claims = json!({"aud": [audience], "exp": 9_999_999_999_u64}).to_string();
    let mut metadata = MetadataMap::new();
    let header = format!("Bearer e30.{}.{user}", URL_SAFE_NO_PAD.encode(claims));
    metadata.insert("authorization", header.parse().unwrap());
    metadata
}

async fn admit(access: &Access, metadata: &MetadataMap) -> Result<Admitted, Status> {
    access.admit(metadata, [10, 0, 0, 1].into()).await
}

fn object(namespace: &str, name: &str) -> ObjectKey {
    ObjectKey::new("GitRepository", namespace, name)
}

fn code<T>(result: Result<T, Status>) -> Code {
    result.map_or_else(|status| status.code(), |_| Code::Ok)
}

#[tokio::test]
async fn a_call_needs_a_good_token_for_our_audience_and_hears_what_is_wrong() {
    let cluster = cluster(&[]);
    let access = Access::guarded(cluster.client, AUDIENCE.to_owned(), 0);
    let basic = MetadataMap::from_headers(http::HeaderMap::from_iter([(
        http::header::AUTHORIZATION,
        http::HeaderValue::from_static("Basic YTpi"),
    )]));
    for (metadata, expected) in [
        (MetadataMap::new(), "authorization: Bearer"),
        (basic, "authorization: Bearer"),
        (token_for("https://kubernetes.default.svc", "reader"), "audience"),
        (token("forged"), "invalid bearer token"),
    ] {
        let refused = admit(&access, &metadata).await.err().unwrap();
        assert_eq!(refused.code(), Code::Unauthenticated);
        assert!(refused.message().contains(expected), "{}", refused.message());
    }
    // Only what might be a token of ours costs a review, and a wrong one does not cost another at once.
    assert_eq!(
        code(admit(&access, &token("forged")).await),
        Code::Unauthenticated
    );
    assert_eq!(cluster.tokens.load(Ordering::SeqCst), 1);
    let down = admit(&access, &token("forbidden")).await.err().unwrap();
    assert_eq!(down.code(), Code::Unavailable);
    assert_eq!(code(admit(&access, &token("reader")).await), Code::Ok);
}

#[tokio::test]
async fn permission_is_asked_for_in_the_widest_form_first_and_kept() {
    let cluster = cluster(&[
        ("all", "gitrepositories", "", ""),
        ("team", "gitrepositories", "apps", ""),
    ]);
    let access = Access::guarded(cluster.client, AUDIENCE.to_owned(), 0);
    let all = admit(&access, &token("all")).await.unwrap();
    for name in ["a", "b", "c"] {
        assert!(all.may_get(&object("apps", name)).await.unwrap());
        assert!(all.may_get(&object("other", name)).await.unwrap());
    }
    assert_eq!(cluster.permissions.load(Ordering::SeqCst), 1);
    let team = admit(&access, &token("team")).await.unwrap();
    for name in ["a", "b", "c"] {
        assert!(team.may_get(&object("apps", name)).await.unwrap());
    }
    assert_eq!(cluster.permissions.load(Ordering::SeqCst), 3);
    assert!(!team.may_get(&object("other", "a")).await.unwrap());
    assert!(
        !team
            .may_get(&ObjectKey::new("Secret", "apps", "a"))
            .await
            .unwrap()
    );
    drop((all, team));
    for _ in 0..10 {
        admit(&access, &token("all")).await.unwrap();
    }
    assert_eq!(cluster.tokens.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn one_object_may_be_allowed_alone_and_a_denial_names_the_permission() {
    let cluster = cluster(&[("one", "gitrepositories", "apps", "web")]);
    let access = Access::guarded(cluster.client, AUDIENCE.to_owned(), 0);
    let one = admit(&access, &token("one")).await.unwrap();
    assert_eq!(code(one.check_object(&object("apps", "web")).await), Code::Ok);
    let denied = one.check_object(&object("apps", "other")).await.unwrap_err();
    assert_eq!(denied.code(), Code::PermissionDenied);
    for part in [
        "one may not",
        "gitrepository/apps/other",
        "get on gitrepositories.source.toolkit.fluxcd.io",
    ] {
        assert!(denied.message().contains(part), "{}", denied.message());
    }
}

fn put(store: &Store, namespace: &str, files: &[(&str, &str)]) -> Record {
    let mut ingest = store.ingest();
    for (path, text) in files {
        ingest.add_file(path, false, text.as_bytes()).unwrap();
    }
    let meta = RecordMeta {
        kind: "GitRepository".to_owned(),
        namespace: namespace.to_owned(),
        name: "web".to_owned(),
        revision: "1".to_owned(),
        filename: "1.tar.gz".to_owned(),
        metadata: BTreeMap::new(),
    };
    ingest.finish(meta).unwrap()
}

#[tokio::test]
async fn content_is_read_through_an_artifact_that_has_it() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(Store::open(folder.path(), Options::default()).unwrap().0);
    let ours = put(&store, "apps", &[("dir/a", "ours"), ("b", "shared")]);
    let theirs = put(&store, "other", &[("dir/a", "theirs"), ("b", "shared")]);
    let blob = |text: &str| Digest::from_content(text.as_bytes());
    let cluster = cluster(&[("team", "gitrepositories", "apps", ""), ("admin", "*", "", "")]);
    let access = Access::guarded(cluster.client, AUDIENCE.to_owned(), 0);
    let team = admit(&access, &token("team")).await.unwrap();
    let folder_of_ours = store.directory(&ours.tree).unwrap().entry("dir").unwrap().digest;

    let cases: [(Option<Digest>, &[Digest], Code); 7] = [
        (Some(ours.tree), &[ours.tree], Code::Ok),
        (
            Some(ours.tree),
            &[folder_of_ours, blob("ours"), blob("shared")],
            Code::Ok,
        ),
        // Someone else's content does not become ours by being asked for in our name.
        (Some(ours.tree), &[blob("ours"), blob("theirs")], Code::NotFound),
        (Some(theirs.tree), &[blob("shared")], Code::PermissionDenied),
        (Some(theirs.tree), &[theirs.tree], Code::PermissionDenied),
        (Some(folder_of_ours), &[folder_of_ours], Code::NotFound),
        (None, &[blob("ours")], Code::PermissionDenied),
    ];
    for (root, digests, expected) in cases {
        let checked = team.check_content(&store, root, digests).await;
        assert_eq!(code(checked), expected, "{root:?} {digests:?}");
    }
    let holders = store.holders_of_archive(&theirs.digest);
    let denied = team.check_holders("artifact", &holders).await.unwrap_err();
    assert_eq!(denied.code(), Code::PermissionDenied);
    assert!(!denied.message().contains("other"), "{}", denied.message());

    let admin = admit(&access, &token("admin")).await.unwrap();
    for (root, digests) in [(None, vec![blob("theirs")]), (Some(ours.tree), vec![ours.tree])] {
        assert_eq!(code(admin.check_content(&store, root, &digests).await), Code::Ok);
    }
    // Content that two artifacts have may be read by whoever may read one of them.
    let same = put(&store, "other", &[("dir/a", "ours"), ("b", "shared")]);
    assert_eq!(same.tree, ours.tree);
    assert_eq!(
        code(
            team.check_holders("x", &store.holders_of_archive(&same.digest))
                .await
        ),
        Code::Ok
    );
}

#[tokio::test]
async fn each_caller_has_its_own_limit() {
    let cluster = cluster(&[]);
    let access = Access::guarded(cluster.client, AUDIENCE.to_owned(), 1);
    let running = admit(&access, &token("a")).await.unwrap();
    assert_eq!(code(admit(&access, &token("a")).await), Code::ResourceExhausted);
    assert_eq!(code(admit(&access, &token("b")).await), Code::Ok);
    drop(running);
    assert_eq!(code(admit(&access, &token("a")).await), Code::Ok);
}
