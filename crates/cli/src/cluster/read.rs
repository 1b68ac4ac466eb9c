//! Reads from the API server: objects as JSON, without the fields that only the API server needs.

use std::pin::pin;
use std::time::Duration;

use delivery_graph::kind::{self, Kind};
use futures::{Stream, StreamExt as _};
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::ApiResource;
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt as _, watcher as watch_all};
use kube::{Api, Client};
use manifest::ObjectId;
use serde_json::Value;

use super::{Cluster, Failure, is_absent};

/// The name by which changes of this command are known in `metadata.managedFields`.
const FIELD_MANAGER: &str = "windlass";

/// A change that a watch saw.
pub(crate) enum Change {
    /// The object as it is now.
    There(Value),
    /// It is gone.
    Gone(ObjectId),
    /// The watch was interrupted and begins anew: what went in between is not told.
    Interrupted,
}

/// Message of a watch of Events.
pub(crate) enum Told {
    /// The current objects follow.
    Begins,
    /// An Event that is there, or is new.
    Event(Value),
    /// That was all that is there.
    Began,
}

impl Cluster {
    /// Returns the HTTP client, for engines that send their own requests.
    pub(crate) fn client(&self) -> Client {
        self.client.clone()
    }

    /// The objects of a kind, in one namespace or in all; None when the cluster does not have the kind.
    pub(crate) async fn list(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        labels: Option<&str>,
    ) -> Result<Option<Vec<Value>>, Failure> {
        let parameters = ListParams {
            label_selector: labels.map(str::to_owned),
            ..ListParams::default()
        };
        match self.api(&kind.resource(), namespace).list(&parameters).await {
            Ok(found) => Ok(Some(
                found.into_iter().map(|object| plain(object, kind)).collect(),
            )),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(Failure::request(format!("list {}", kind.plural), error)),
        }
    }

    /// An object of a kind of ours; None when it, or its kind, is not there.
    pub(crate) async fn get(&self, id: &ObjectId) -> Result<Option<Value>, Failure> {
        let kind = known(id)?;
        let found = self
            .api(&kind.resource(), Some(&id.namespace))
            .get(&id.name)
            .await;
        match found {
            Ok(object) => Ok(Some(plain(object, kind))),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(Failure::request(format!("get {id}"), error)),
        }
    }

    /// An object of a kind of ours, which has to be there.
    pub(crate) async fn need(&self, id: &ObjectId) -> Result<Value, Failure> {
        let found = self.get(id).await?;
        found.ok_or_else(|| Failure::NotReady(format!("{id} does not exist")))
    }

    /// An object of any kind; None when it, or its kind, is not there.
    pub(crate) async fn get_any(
        &self,
        id: &ObjectId,
        resource: &ApiResource,
    ) -> Result<Option<Value>, kube::Error> {
        let namespace = Some(id.namespace.as_str()).filter(|namespace| !namespace.is_empty());
        let found = self.api(resource, namespace).get_opt(&id.name).await?;
        Ok(found.map(|object| {
            let mut value = serde_json::to_value(object).unwrap_or_default();
            value["apiVersion"] = resource.api_version.clone().into();
            value["kind"] = resource.kind.clone().into();
            value
        }))
    }

    /// Changes an object of a kind of ours.
    pub(crate) async fn merge(&self, id: &ObjectId, what: &str, patch: &Value) -> Result<(), Failure> {
        let api = self.api(&known(id)?.resource(), Some(&id.namespace));
        let parameters = PatchParams {
            field_manager: Some(FIELD_MANAGER.to_owned()),
            ..PatchParams::default()
        };
        match api
            .patch_metadata(&id.name, &parameters, &Patch::Merge(patch))
            .await
        {
            Ok(_) => Ok(()),
            Err(error) if is_absent(&error) => Err(Failure::NotReady(format!("{id} does not exist"))),
            Err(error) => Err(Failure::request(format!("{what} {id}"), error)),
        }
    }

    /// Creates or updates an object of a kind of ours.
    pub(crate) async fn apply(&self, id: &ObjectId, what: &str, object: &Value) -> Result<(), Failure> {
        let api = self.api(&known(id)?.resource(), Some(&id.namespace));
        let parameters = PatchParams::apply(FIELD_MANAGER).force();
        match api.patch(&id.name, &parameters, &Patch::Apply(object)).await {
            Ok(_) => Ok(()),
            Err(error) => Err(Failure::request(format!("{what} {id}"), error)),
        }
    }

    /// Deletes an object of a kind of ours. Returns whether it was there.
    pub(crate) async fn delete(&self, id: &ObjectId) -> Result<bool, Failure> {
        let api = self.api(&known(id)?.resource(), Some(&id.namespace));
        match api.delete(&id.name, &DeleteParams::default()).await {
            Ok(_) => Ok(true),
            Err(error) if is_absent(&error) => Ok(false),
            Err(error) => Err(Failure::request(format!("delete {id}"), error)),
        }
    }

    /// Watches an object until something can be said of it, None when it is gone; ends with None when time is up.
    pub(crate) async fn watch_until<T>(
        &self,
        id: &ObjectId,
        timeout: Duration,
        mut say: impl FnMut(Option<&Value>) -> Option<T>,
    ) -> Result<Option<T>, Failure> {
        let kind = known(id)?;
        let api = self.api(&kind.resource(), Some(&id.namespace));
        let config = watcher::Config::default().fields(&format!("metadata.name={}", id.name));
        let mut changes = pin!(watch_all(api, config).default_backoff());
        let watch = async {
            let mut seen = false;
            while let Some(change) = changes.next().await {
                let said = match change {
                    Ok(Event::Apply(object) | Event::InitApply(object)) => {
                        seen = true;
                        say(Some(&plain(object, kind)))
                    }
                    Ok(Event::Init) => {
                        seen = false;
                        None
                    }
                    Ok(Event::InitDone) if !seen => say(None),
                    Ok(Event::Delete(_)) => say(None),
                    Ok(_) => None,
                    // Everything else passes: the watch is re-created, later each time.
                    Err(error) => match refusal(&error) {
                        Some(why) => {
                            return Err(Failure::Request {
                                what: format!("watch {id}"),
                                why,
                            });
                        }
                        None => None,
                    },
                };
                if said.is_some() {
                    return Ok(said);
                }
            }
            Ok(None)
        };
        tokio::time::timeout(timeout, watch).await.unwrap_or(Ok(None))
    }

    /// Watches all objects of a kind, from those that are there on.
    pub(crate) fn watch(
        &self,
        kind: &'static Kind,
        namespace: Option<&str>,
    ) -> impl Stream<Item = Result<Option<Change>, Failure>> + use<> {
        let api = self.api(&kind.resource(), namespace);
        let changes = watch_all(api, watcher::Config::default()).default_backoff();
        let mut began = false;
        changes.map(move |change| match change {
            Ok(Event::Apply(object) | Event::InitApply(object)) => {
                Ok(Some(Change::There(plain(object, kind))))
            }
            Ok(Event::Delete(object)) => Ok(Some(Change::Gone(delivery_graph::object::id(&plain(
                object, kind,
            ))))),
            Ok(Event::InitDone) if began => Ok(Some(Change::Interrupted)),
            Ok(Event::InitDone) => {
                began = true;
                Ok(None)
            }
            Ok(Event::Init) => Ok(None),
            Err(error) => match refusal(&error) {
                Some(why) => Err(Failure::Request {
                    what: format!("watch {}", kind.plural),
                    why,
                }),
                None => Ok(None),
            },
        })
    }

    /// The Events of a namespace or of all, that fit a field selector.
    pub(crate) async fn events(&self, namespace: Option<&str>, fields: &str) -> Result<Vec<Value>, Failure> {
        let parameters = ListParams::default().fields(fields);
        let found = self.api(&event_kind(), namespace).list(&parameters).await;
        let found = found.map_err(|error| Failure::request("list events", error))?;
        Ok(found
            .into_iter()
            .map(|object| serde_json::to_value(object).unwrap_or_default())
            .collect())
    }

    /// Watches the Events of a namespace or of all, that fit a field selector.
    pub(crate) fn watch_events(
        &self,
        namespace: Option<&str>,
        fields: &str,
    ) -> impl Stream<Item = Result<Told, Failure>> + use<> {
        let api = self.api(&event_kind(), namespace);
        let config = watcher::Config::default().fields(fields);
        let changes = watch_all(api, config).default_backoff();
        let value = |object: DynamicObject| serde_json::to_value(object).unwrap_or_default();
        changes.filter_map(move |change| {
            let told = match change {
                Ok(Event::Init) => Some(Ok(Told::Begins)),
                Ok(Event::InitDone) => Some(Ok(Told::Began)),
                Ok(Event::Apply(object) | Event::InitApply(object)) => Some(Ok(Told::Event(value(object)))),
                // They end by themselves, and no one wants to hear of it.
                Ok(Event::Delete(_)) => None,
                Err(error) => refusal(&error).map(|why| {
                    Err(Failure::Request {
                        what: "watch events".to_owned(),
                        why,
                    })
                }),
            };
            std::future::ready(told)
        })
    }

    pub(super) fn api(&self, resource: &ApiResource, namespace: Option<&str>) -> Api<DynamicObject> {
        match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, resource),
            None => Api::all_with(self.client.clone(), resource),
        }
    }
}

fn event_kind() -> ApiResource {
    ApiResource {
        group: String::new(),
        version: "v1".to_owned(),
        api_version: "v1".to_owned(),
        kind: "Event".to_owned(),
        plural: "events".to_owned(),
    }
}

fn known(id: &ObjectId) -> Result<&'static Kind, Failure> {
    kind::kind_of(id).ok_or_else(|| Failure::Usage(format!("{id} is of no kind of Flux")))
}

/// Why a watch will never say anything; None when it is worth another try.
fn refusal(error: &watcher::Error) -> Option<String> {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchError(status)
            if matches!(status.code, 401 | 403 | 404) =>
        {
            Some(status.message.clone())
        }
        _ => None,
    }
}

/// An object as JSON. In lists, objects may come without their kind; who owns which field is of no use to people.
fn plain(mut object: DynamicObject, kind: &Kind) -> Value {
    object.metadata.managed_fields = None;
    // What was read as JSON can be written as JSON.
    let mut value = serde_json::to_value(object).unwrap_or_default();
    value["apiVersion"] = format!("{}/{}", kind.group, kind.version).into();
    value["kind"] = kind.kind.into();
    value
}
