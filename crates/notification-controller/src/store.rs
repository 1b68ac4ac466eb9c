//! State that survives a restart, in a Secret of the controller's own namespace: messages may be private to
//! tenants.
//!
//! Written at most once a second, and only if something changed. What does not fit into a Secret goes, the oldest first.

mod shrink;

use std::io::{Read as _, Write as _};
use std::sync::Arc;
use std::time::Duration;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::json;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use crate::dispatch::{Dispatcher, Saved};
use crate::flags;
use shrink::shrink;

/// The Secret.
const NAME: &str = "notification-controller-state";
/// Its key.
const KEY: &str = "state.json.gz";
/// A Secret holds 1 MiB, in base64 on the wire.
const MOST_BYTES: usize = 900 << 10;
/// Bytes read of a Secret, which someone else may have written.
const MOST_READ_BYTES: u64 = 64 << 20;
/// Changes of this time are written together.
const COALESCE: Duration = Duration::from_millis(250);
/// The least time between two writes.
const PAUSE: Duration = Duration::from_secs(1);
/// The longest time between attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// Where it is kept.
#[derive(Clone)]
pub struct Store {
    secrets: Api<Secret>,
}

impl Store {
    /// In this namespace.
    pub fn new(client: Client, namespace: &str) -> Self {
        Self {
            secrets: Api::namespaced(client, namespace),
        }
    }

    /// Reads what was kept; nothing if there is nothing that can be read.
    pub async fn read(&self) -> anyhow::Result<Saved> {
        let secret = match self.secrets.get_opt(NAME).await {
            Ok(secret) => secret,
            Err(kube::Error::Api(status)) if status.code == 403 => {
                tracing::warn!(
                    error = status.message,
                    "failed to read the Secret {NAME}: what waits will not survive a restart"
                );
                None
            }
            Err(error) => {
                return Err(anyhow::Error::new(error).context(format!("failed to read the Secret {NAME}")));
            }
        };
        let data = secret.and_then(|secret| secret.data?.remove(KEY));
        let Some(ByteString(data)) = data else {
            return Ok(Saved::default());
        };
        Ok(decode(&data).unwrap_or_else(|error| {
            tracing::error!(
                error,
                "failed to understand the Secret {NAME}; what it held is lost"
            );
            Saved::default()
        }))
    }

    /// Writes what changes, until the token is cancelled; the last state is [`Store::write_now`]'s to write.
    pub async fn follow(&self, dispatcher: Arc<Dispatcher>, token: CancellationToken) {
        let mut pause = PAUSE;
        loop {
            tokio::select! {
                () = dispatcher.dirty.notified() => {}
                () = token.cancelled() => return,
            }
            sleep(COALESCE).await;
            let next = match self.write_now(&dispatcher).await {
                Ok(()) => {
                    pause = PAUSE;
                    PAUSE
                }
                Err(error) => {
                    if pause == PAUSE {
                        tracing::error!(error, "failed to write the Secret {NAME}; it is tried again");
                    }
                    dispatcher.dirty.notify_one();
                    pause = (pause * 2).min(LONGEST_PAUSE);
                    pause
                }
            };
            tokio::select! {
                () = sleep_until(Instant::now() + next.saturating_sub(COALESCE)) => {}
                () = token.cancelled() => return,
            }
        }
    }

    /// Writes what is there.
    pub async fn write_now(&self, dispatcher: &Dispatcher) -> Result<(), String> {
        let saved = dispatcher.desk().saved(Timestamp::now());
        // Megabytes are compressed, and measured when they do not fit.
        let data = spawn_blocking(move || encode(saved))
            .await
            .map_err(|error| error.to_string())??;
        let secret = json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": NAME, "labels": {"app.kubernetes.io/managed-by": flags::NAME}},
            "type": "windlass.dev/notification-state",
            "data": {KEY: ByteString(data)},
        });
        let parameters = PatchParams::apply(flags::NAME).force();
        let patch = Patch::Apply(secret);
        let write = self.secrets.patch(NAME, &parameters, &patch);
        match timeout(WRITE_TIMEOUT, write).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(kube::Error::Api(status))) => Err(status.message),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err("the API server does not answer".to_owned()),
        }
    }
}

/// Makes it small enough for a Secret.
fn encode(mut saved: Saved) -> Result<Vec<u8>, String> {
    let mut text = json(&saved)?;
    let mut data = compress(&text)?;
    if data.len() <= MOST_BYTES {
        return Ok(data);
    }
    let room = MOST_BYTES / 10 * 9;
    // What is left will be compressed about as well as the whole; if not, it fits even if it is not compressed at all.
    for most in [text.len().saturating_mul(room) / data.len(), room, 0] {
        let shed = shrink(&mut saved, text.len(), most);
        tracing::error!(
            messages = shed.messages,
            alerts = shed.alerts,
            "too much waits to be kept across a restart: the oldest messages, and what these alerts have begun, are only in memory"
        );
        text = json(&saved)?;
        data = compress(&text)?;
        if data.len() <= MOST_BYTES {
            return Ok(data);
        }
    }
    Err("what is to be kept does not fit into a Secret".to_owned())
}

fn json(saved: &Saved) -> Result<Vec<u8>, String> {
    serde_json::to_vec(saved).map_err(|error| error.to_string())
}

fn compress(text: &[u8]) -> Result<Vec<u8>, String> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder
        .write_all(text)
        .and_then(|()| encoder.finish())
        .map_err(|error| error.to_string())
}

fn decode(data: &[u8]) -> Result<Saved, String> {
    let mut text = Vec::new();
    let mut decoder = GzDecoder::new(data).take(MOST_READ_BYTES);
    decoder
        .read_to_end(&mut text)
        .map_err(|error| error.to_string())?;
    serde_json::from_slice(&text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use crate::alert::engine::Message;
    use crate::outbox::{self, Alert, Delivery};

    use super::*;

    fn delivery(number: u64) -> Delivery {
        // Text that does not compress.
        let noise = (0..60_u64).map(|part| {
            format!(
                "{:x}",
                (number + 1)
                    .wrapping_mul(part + 1)
                    .wrapping_mul(0x9E37_79B9_7F4A_7C15)
            )
        });
        let event = json!({"message": format!("{number} {}", noise.collect::<String>())});
        Delivery {
            alert: Alert {
                namespace: "apps".to_owned(),
                name: "a".to_owned(),
                uid: String::new(),
            },
            message: Message::plain(serde_json::from_value(event).unwrap()),
            commit_status: None,
            since: Timestamp::from_second(number as i64).unwrap(),
            attempts: 0,
            not_before: Timestamp::UNIX_EPOCH,
        }
    }

    fn queue(namespace: &str, name: &str, numbers: std::ops::Range<u64>) -> outbox::Saved {
        outbox::Saved {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            waiting: numbers.map(delivery).collect(),
            threads: BTreeMap::new(),
        }
    }

    fn kept(outbox: Vec<outbox::Saved>) -> Vec<outbox::Saved> {
        let saved = Saved {
            outbox,
            ..Saved::default()
        };
        let data = encode(saved).unwrap();
        assert!(data.len() <= MOST_BYTES);
        decode(&data).unwrap().outbox
    }

    #[test]
    fn what_is_kept_fits_into_a_secret_and_the_newest_is_in_it() {
        let kept = kept(vec![
            queue("apps", "p", 0..5_000),
            queue("apps", "q", 5_000..5_003),
        ]);
        assert_eq!(kept[1].waiting.len(), 3);
        let kept = &kept[0].waiting;
        assert!(
            kept.len() > 500 && kept.back() == Some(&delivery(4_999)),
            "{}",
            kept.len()
        );
    }

    #[test]
    fn a_namespace_that_takes_little_loses_nothing() {
        let kept = kept(vec![
            queue("noisy", "p", 10_000..20_000),
            queue("noisy", "q", 20_000..30_000),
            queue("quiet", "p", 0..100),
        ]);
        let kept: Vec<_> = kept.iter().map(|queue| queue.waiting.len()).collect();
        assert!(
            kept[0] + kept[1] > 300 && kept[0] + kept[1] < 5_000 && kept[2] == 100,
            "{kept:?}"
        );
    }

    #[test]
    fn what_is_compressed_unequally_fits_as_well() {
        let mut well = queue("apps", "well", 0..0);
        let mut alike = delivery(0);
        alike.message.event.message = "x".repeat(2_000);
        well.waiting = std::iter::repeat_n(alike, 3_000).collect();
        let kept = kept(vec![well, queue("apps", "badly", 10_000..15_000)]);
        assert_eq!(kept[1].waiting.back(), Some(&delivery(14_999)));
    }

    #[test]
    fn threads_and_what_alerts_have_begun_go_last() {
        let threads = (0..20_000).map(|number| {
            let noise = delivery(number).message.event.message;
            (noise, json!({"thread": {"ts": "1"}, "used": 1}))
        });
        let mut queue = queue("apps", "p", 0..10);
        queue.threads = serde_json::from_value(threads.collect::<serde_json::Map<_, _>>().into()).unwrap();
        let kept = kept(vec![queue]);
        assert!(kept[0].waiting.is_empty() && kept[0].threads.is_empty());
    }

    #[test]
    fn what_is_no_state_is_an_error() {
        for data in [&b""[..], b"x", &encode(Saved::default()).unwrap()[..10]] {
            assert!(decode(data).is_err());
        }
    }
}
