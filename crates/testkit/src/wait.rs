//! Waiting for an object by watching it; a time-out shows what was seen last.

use std::fmt::Debug;
use std::future::Future;
use std::time::Duration;

use anyhow::{Result, bail};
use futures::StreamExt as _;
use kube::runtime::watcher;
use kube::{Api, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Waits until the object `name` exists and `predicate` holds for it, and returns it.
///
/// Fails after `timeout` with the object's generation and status as they were seen last.
pub async fn wait_for<K>(
    api: &Api<K>,
    name: &str,
    predicate: impl Fn(&K) -> bool,
    timeout: Duration,
) -> Result<K>
where
    K: Resource + Clone + Debug + DeserializeOwned + Serialize + Send + 'static,
{
    let mut last = None;
    let found = follow(api, name, timeout, |object| match object {
        Some(object) if predicate(&object) => Some(object),
        seen => {
            last = seen;
            None
        }
    });
    match found.await {
        Some(object) => Ok(object),
        None => bail!(
            "waited {timeout:?} for {name} ({}); last seen: {}",
            api.resource_url(),
            describe(last.as_ref())
        ),
    }
}

/// Waits until no object `name` exists. Fails after `timeout` with what is still there.
pub async fn wait_until_gone<K>(api: &Api<K>, name: &str, timeout: Duration) -> Result<()>
where
    K: Resource + Clone + Debug + DeserializeOwned + Serialize + Send + 'static,
{
    let mut last = None;
    let gone = follow(api, name, timeout, |object| {
        let gone = object.is_none().then_some(());
        last = object;
        gone
    });
    match gone.await {
        Some(()) => Ok(()),
        None => {
            let seen = describe(last.as_ref());
            bail!(
                "waited {timeout:?} for {name} ({}) to be gone; last seen: {seen}",
                api.resource_url()
            )
        }
    }
}

/// Calls `check` with each state of the object (None: it does not exist) until it gives an answer.
async fn follow<K, T>(
    api: &Api<K>,
    name: &str,
    timeout: Duration,
    check: impl FnMut(Option<K>) -> Option<T>,
) -> Option<T>
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
{
    tokio::time::timeout(timeout, follow_without_end(api, name, check))
        .await
        .ok()
}

fn follow_without_end<K, T>(
    api: &Api<K>,
    name: &str,
    mut check: impl FnMut(Option<K>) -> Option<T>,
) -> impl Future<Output = T>
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
{
    // No page size: one request for one object.
    let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
    let api = api.clone();
    async move {
        loop {
            let mut events = watcher::watcher(api.clone(), config.clone()).boxed();
            let mut listed = None;
            while let Some(event) = events.next().await {
                let state = match event {
                    // The first list comes one by one, and an object that does not exist is in none of them.
                    Ok(watcher::Event::Init) => {
                        listed = None;
                        continue;
                    }
                    Ok(watcher::Event::InitApply(object)) => {
                        listed = Some(object);
                        continue;
                    }
                    Ok(watcher::Event::InitDone) => listed.take(),
                    Ok(watcher::Event::Apply(object)) => Some(object),
                    Ok(watcher::Event::Delete(_)) => None,
                    // Such as a kind whose definition is not established yet: ask again soon.
                    Err(_) => {
                        tokio::time::sleep(Duration::from_millis(50)).await;
                        continue;
                    }
                };
                if let Some(answer) = check(state) {
                    return answer;
                }
            }
        }
    }
}

fn describe<K: Serialize>(object: Option<&K>) -> String {
    let Some(object) = object else {
        return "it does not exist".to_owned();
    };
    let value = serde_json::to_value(object).unwrap_or_default();
    let generation = value.pointer("/metadata/generation").cloned().unwrap_or_default();
    let status = value.get("status").cloned().unwrap_or_default();
    format!("generation {generation}, status {status:#}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::json;

    #[test]
    fn a_description_has_generation_and_status_and_nothing_else() {
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"name": "a", "generation": 3},
            "spec": {"containers": [{"name": "hidden"}]},
            "status": {"phase": "Pending"},
        }))
        .unwrap();
        let text = describe(Some(&pod));
        assert!(
            text.contains("generation 3") && text.contains("Pending") && !text.contains("hidden"),
            "{text}"
        );
        assert_eq!(describe::<Pod>(None), "it does not exist");
    }
}
