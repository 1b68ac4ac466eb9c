//! Tests of a scrape after some work.

use artifact::store::{ObjectKey, Options, RecordMeta};
use http::StatusCode;
use jiff::Timestamp;
use tonic::Code;

use super::*;

fn put(store: &Store, revision: &str, content: &str) {
    let mut ingest = store.ingest();
    ingest.add_file("a.yaml", false, content.as_bytes()).unwrap();
    let meta = RecordMeta {
        kind: "GitRepository".to_owned(),
        namespace: "apps".to_owned(),
        name: "web".to_owned(),
        filename: format!("{revision}.tar.gz"),
        ..RecordMeta::default()
    };
    ingest.finish(meta).unwrap();
}

/// Has lines without those that only the volume knows.
fn check(metrics: &Metrics, expected: &[&str]) {
    let text = metrics.encode().unwrap();
    for line in expected {
        assert!(
            text.lines().any(|found| found == *line),
            "{line}\nis not in\n{text}"
        );
    }
}

#[test]
fn the_store_is_asked_at_each_scrape() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _) = Store::open(folder.path(), Options::default()).unwrap();
    let (metrics, meters) = (Metrics::new(), Meters::default());
    meters.register(&metrics, store.clone());
    let text = metrics.encode().unwrap();
    assert!(text.contains("windlass_store_volume_available_bytes "), "{text}");
    assert!(!text.contains("windlass_store_artifacts{"), "{text}");

    for revision in ["1", "2", "3"] {
        put(&store, revision, revision);
    }
    let record = store.current("GitRepository", "apps", "web").unwrap();
    let object = r#"{kind="GitRepository",name="web",namespace="apps"}"#;
    check(
        &metrics,
        &[
            r#"windlass_store_artifacts{kind="GitRepository"} 3"#,
            r#"windlass_store_files{content="blob"} 3"#,
            r#"windlass_store_bytes{content="blob"} 3"#,
            &format!("windlass_artifact_size_bytes{object} {}", record.size),
            &format!(
                "windlass_artifact_stored_timestamp_seconds{object} {}",
                record.last_update_time.as_second()
            ),
            "windlass_store_collected_artifacts_total 0",
        ],
    );
    let collected = store.collect_garbage(Timestamp::now()).unwrap();
    meters.collected(&collected);
    check(
        &metrics,
        &[
            r#"windlass_store_artifacts{kind="GitRepository"} 2"#,
            "windlass_store_collected_artifacts_total 1",
            &format!("windlass_store_collected_bytes_total {}", collected.bytes),
        ],
    );
    assert!(collected.bytes > 1);
}

#[test]
fn fetches_and_readers_are_counted_and_their_series_begin_at_zero() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _) = Store::open(folder.path(), Options::default()).unwrap();
    let (metrics, meters) = (Metrics::new(), Meters::default());
    meters.register(&metrics, store);
    let git = meters.fetches.of_kind("GitRepository");
    check(
        &metrics,
        &[
            r#"windlass_fetch_duration_seconds_count{kind="GitRepository",result="failed"} 0"#,
            r#"windlass_fetched_bytes_total{kind="GitRepository"} 0"#,
            r#"windlass_artifact_sent_bytes_total{protocol="grpc"} 0"#,
        ],
    );
    git.observe(FetchResult::NotModified, std::time::Duration::from_millis(30));
    git.received.inc_by(7);
    meters.served.answered(false, StatusCode::NOT_FOUND);
    drop(meters.served.call("Watch"));
    let mut call = meters.served.call("Download");
    call.sends(5);
    call.end_well();
    drop(call);
    let mut call = meters.served.call("Stat");
    call.end(Code::NotFound);
    drop(call);
    check(
        &metrics,
        &[
            r#"windlass_fetch_duration_seconds_bucket{le="0.05",kind="GitRepository",result="not_modified"} 1"#,
            r#"windlass_fetched_bytes_total{kind="GitRepository"} 7"#,
            r#"windlass_artifact_requests_total{protocol="http",method="GET",code="404"} 1"#,
            r#"windlass_artifact_requests_total{protocol="grpc",method="Watch",code="Cancelled"} 1"#,
            r#"windlass_artifact_requests_total{protocol="grpc",method="Download",code="OK"} 1"#,
            r#"windlass_artifact_requests_total{protocol="grpc",method="Stat",code="NotFound"} 1"#,
            r#"windlass_artifact_sent_bytes_total{protocol="grpc"} 5"#,
        ],
    );
}

#[test]
fn the_indexes_of_a_repository_are_counted_until_it_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _) = Store::open(folder.path(), Options::default()).unwrap();
    let (metrics, meters) = (Metrics::new(), Meters::default());
    meters.register(&metrics, store);
    meters
        .index_cache
        .count(&ObjectKey::new("HelmRepository", "apps", "charts"), true);
    check(
        &metrics,
        &[
            r#"gotk_cache_events_total{event_type="cache_hit",name="charts",namespace="apps"} 1"#,
            r#"gotk_cache_events_total{event_type="cache_miss",name="charts",namespace="apps"} 0"#,
        ],
    );
    meters.index_cache.forget("apps", "charts");
    assert!(!metrics.encode().unwrap().contains("charts"));
}
