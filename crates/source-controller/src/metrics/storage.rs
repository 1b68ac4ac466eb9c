//! Metrics of the store, read from it at each scrape.

use std::collections::BTreeMap;
use std::fmt;

use artifact::store::{Store, Usage, Volume};
use controller_kit::metrics::gauges::{self, Sample};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;

/// Asks a store.
#[derive(Debug)]
pub(super) struct Storage(pub(super) Store);

/// The current artifact of an object.
struct Current {
    kind: String,
    namespace: String,
    name: String,
    stored_at: i64,
    size: u64,
}

impl Collector for Storage {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let (counts, current) = self.artifacts();
        encode_counts(&mut encoder, &counts)?;
        encode_objects(&mut encoder, &current)?;
        encode_usage(&mut encoder, &self.0.usage())?;
        match self.0.volume() {
            Ok(volume) => encode_volume(&mut encoder, &volume),
            // Its absence says it; a scrape is no place to log.
            Err(_) => Ok(()),
        }
    }
}

impl Storage {
    fn artifacts(&self) -> (BTreeMap<String, u64>, Vec<Current>) {
        let (mut counts, mut current) = (BTreeMap::new(), Vec::new());
        self.0.each_record(|record, is_current| {
            match counts.get_mut(&record.kind) {
                Some(count) => *count += 1,
                None => drop(counts.insert(record.kind.clone(), 1)),
            }
            if is_current {
                current.push(Current {
                    kind: record.kind.clone(),
                    namespace: record.namespace.clone(),
                    name: record.name.clone(),
                    stored_at: record.last_update_time.as_second(),
                    size: record.size,
                });
            }
        });
        (counts, current)
    }
}

fn encode_counts(encoder: &mut DescriptorEncoder<'_>, counts: &BTreeMap<String, u64>) -> fmt::Result {
    let help = "Artifacts in the store, those that were replaced a moment ago included";
    let samples = counts
        .iter()
        .map(|(kind, count)| (vec![("kind", kind.as_str())], *count));
    gauges::encode(encoder, "windlass_store_artifacts", help, samples)
}

fn encode_objects(encoder: &mut DescriptorEncoder<'_>, all: &[Current]) -> fmt::Result {
    let help = "When the current artifact of an object was stored, in seconds since 1970";
    let stored_at = |object: &Current| u64::try_from(object.stored_at).unwrap_or_default();
    gauges::encode(
        encoder,
        "windlass_artifact_stored_timestamp_seconds",
        help,
        series(all, stored_at),
    )?;
    let help = "Bytes of the archive of the current artifact of an object";
    gauges::encode(
        encoder,
        "windlass_artifact_size_bytes",
        help,
        series(all, |object| object.size),
    )
}

fn series(all: &[Current], value: fn(&Current) -> u64) -> impl Iterator<Item = Sample<'_>> {
    all.iter().map(move |object| {
        let labels = vec![
            ("kind", object.kind.as_str()),
            ("name", object.name.as_str()),
            ("namespace", object.namespace.as_str()),
        ];
        (labels, value(object))
    })
}

fn encode_usage(encoder: &mut DescriptorEncoder<'_>, usage: &Usage) -> fmt::Result {
    let all = [
        ("archive", usage.archives),
        ("blob", usage.blobs),
        ("directory", usage.directories),
    ];
    let files = all.map(|(content, amount)| (vec![("content", content)], amount.files as u64));
    gauges::encode(
        encoder,
        "windlass_store_files",
        "Files of the store; what artifacts share counts once",
        files,
    )?;
    let bytes = all.map(|(content, amount)| (vec![("content", content)], amount.bytes));
    gauges::encode(encoder, "windlass_store_bytes", "Bytes of these files", bytes)
}

fn encode_volume(encoder: &mut DescriptorEncoder<'_>, volume: &Volume) -> fmt::Result {
    let gauges = [
        (
            "windlass_store_volume_size_bytes",
            "Bytes that the volume of the store holds",
            volume.size,
        ),
        (
            "windlass_store_volume_available_bytes",
            "Bytes that can still be written to the volume of the store",
            volume.available,
        ),
    ];
    for (name, help, value) in gauges {
        gauges::encode(encoder, name, help, [(Vec::new(), value)])?;
    }
    Ok(())
}
