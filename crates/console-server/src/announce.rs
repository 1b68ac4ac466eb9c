//! Tells another tool of deliveries: as CDEvents, over HTTP, at least once each.

use std::time::Duration;

use jiff::Timestamp;
use ledger::cdevent::{self, Event};
use ledger::store::Ledger;
use reqwest::Client;
use reqwest::redirect::Policy;
use tokio::sync::Notify;
use url::Url;

/// How long the receiver may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// A receiver that does not take one is tried again after so long.
const RETRY: Duration = Duration::from_secs(5);
/// Those that another replica recorded, and left when it went, are looked for so often.
const PAUSE: Duration = Duration::from_secs(60);

/// Tells until it is dropped. `fresh` is notified of new rows.
pub async fn announce(ledger: &Ledger, receiver: &Url, fresh: &Notify) {
    let http = Client::builder()
        .redirect(Policy::none())
        .timeout(PATIENCE)
        .build()
        .unwrap_or_default();
    loop {
        match round(ledger, receiver, &http).await {
            Ok(0) => drop(tokio::time::timeout(PAUSE, fresh.notified()).await),
            Ok(_) => {}
            Err(problem) => {
                tracing::warn!(
                    problem,
                    "the receiver of CDEvents did not take one; it is sent again"
                );
                tokio::time::sleep(RETRY).await; // until it may be there again
            }
        }
    }
}

/// Sends what is there. Returns how many that was.
async fn round(ledger: &Ledger, receiver: &Url, http: &Client) -> Result<usize, String> {
    let store = |error: ledger::store::Error| format!("{:#}", anyhow::Error::from(error));
    let all = ledger.announcements(Timestamp::now()).await.map_err(store)?;
    let count = all.len();
    for (row, kind) in all {
        send(http, receiver, &cdevent::event(&row, kind)).await?;
        ledger.announced(&row.id, kind).await.map_err(store)?;
    }
    Ok(count)
}

/// As a CloudEvent in the binary form.
async fn send(http: &Client, receiver: &Url, event: &Event) -> Result<(), String> {
    // An address may hold a password.
    let failed = |error: reqwest::Error| error.without_url().to_string();
    let ascii = |text: &str| -> String {
        let is_plain = |c: &char| c.is_ascii_graphic() || *c == ' ';
        text.chars().filter(is_plain).collect()
    };
    let answer = http
        .post(receiver.clone())
        .header("ce-specversion", "1.0")
        .header("ce-id", ascii(&event.id))
        .header("ce-source", ascii(&event.source))
        .header("ce-type", event.kind)
        .header("ce-subject", ascii(&event.subject))
        .header("ce-time", event.time.to_string())
        .header("content-type", "application/json")
        .body(event.body.to_string());
    let answer = answer.send().await.map_err(failed)?;
    answer.error_for_status().map(drop).map_err(failed)
}
