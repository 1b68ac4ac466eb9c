//! Record of the state before a takeover. It stays in the cluster until Flux has everything back; giving
//! back, and the proof that nothing was re-created, need nothing else.
//!
//! It is in a Secret, as Deployments may have credentials in their variables, packed, as inventories are long. Of Secrets it
//! holds names and UIDs only.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{DeleteParams, PostParams};
use kube::{Api, Client};
use manifest::ObjectId;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::snapshot::Snapshot;
use crate::cluster::Failure;

/// The name of the Secret.
pub(crate) const NAME: &str = "windlass-takeover";
const TYPE: &str = "windlass.dev/takeover";
const KEY: &str = "record";
/// A later form has another number, and is refused by who does not know it.
const FORM: u32 = 1;
/// Largest size of a Secret's data.
const LIMIT: usize = 1 << 20;
/// Largest size of an unpacked record.
const UNPACKED: u64 = 256 << 20;

/// How far a takeover has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Stage {
    /// It was begun, and has not come to its end.
    #[default]
    Begun,
    /// Ours are there, and everything was looked at.
    TakenOver,
    /// The way back was begun.
    GivingBack,
    /// Flux is there again; its objects have not all answered.
    GivenBack,
}

/// Effect of a takeover on an object of Flux.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Fate {
    /// Ours has its name.
    Replaced,
    /// It is still there, without Pods.
    ScaledDown,
}

/// An object of Flux as it was.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Component {
    pub(crate) fate: Fate,
    /// Field manager that had applied it.
    pub(crate) manager: String,
    pub(crate) object: Value,
}

impl Component {
    pub(crate) fn id(&self) -> ObjectId {
        delivery_graph::object::id(&self.object)
    }

    pub(crate) fn replicas(&self) -> i64 {
        let replicas = self.object.pointer("/spec/replicas");
        replicas.and_then(Value::as_i64).unwrap_or(1)
    }

    pub(crate) fn is_deployment(&self) -> bool {
        self.id().kind == "Deployment"
    }
}

/// All of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) form: u32,
    pub(crate) stage: Stage,
    /// The version of this command.
    pub(crate) made_by: String,
    pub(crate) components: Vec<Component>,
    /// Objects that were suspended for the takeover.
    pub(crate) suspended: Vec<ObjectId>,
    /// Our own objects: they are not among those that must stay the same.
    pub(crate) own: Vec<ObjectId>,
    pub(crate) before: Snapshot,
    /// The same when the way back was begun.
    pub(crate) before_giveback: Option<Snapshot>,
}

/// Knowledge of Flux from an earlier takeover.
#[derive(Debug, PartialEq)]
pub(crate) enum Known {
    /// All of it.
    Whole(Record),
    /// These parts; the rest is to be written down anew.
    Part(Record),
}

impl Record {
    pub(crate) fn new() -> Self {
        Self {
            form: FORM,
            made_by: env!("CARGO_PKG_VERSION").to_owned(),
            ..Self::default()
        }
    }

    /// Adds what is not known yet. What is known stays: it is how things were before anything was done.
    pub(crate) fn add(&mut self, components: Vec<Component>) {
        for component in components {
            if !self.components.iter().any(|known| known.id() == component.id()) {
                self.components.push(component);
            }
        }
    }

    /// Drops outdated parts when a takeover begins again. `at_work` are the running controllers of Flux. If
    /// they run and there is no release of ours, Flux was brought back by other means and may be another one:
    /// it is recorded anew. A takeover that was killed early may have scaled some of them down, which only
    /// this record knows.
    pub(crate) fn since(self, is_released: bool, at_work: &[ObjectId]) -> Known {
        if is_released || at_work.is_empty() {
            return Known::Whole(self);
        }
        let is_at_work = |one: &Component| at_work.contains(&one.id());
        let mut replaced = self.components.iter().filter(|one| one.fate == Fate::Replaced);
        match self.stage {
            Stage::TakenOver => Known::Part(Self::new()),
            Stage::Begun if replaced.all(|one| !one.is_deployment() || is_at_work(one)) => {
                let (components, suspended) = (self.components, self.suspended);
                let still = |one: &Component| one.fate == Fate::ScaledDown && !at_work.contains(&one.id());
                Known::Part(Self {
                    components: components.into_iter().filter(still).collect(),
                    suspended,
                    ..Self::new()
                })
            }
            _ => Known::Whole(self),
        }
    }

    pub(crate) fn count(&self, fate: Fate) -> usize {
        let deployments = self.components.iter().filter(|one| one.is_deployment());
        deployments.filter(|one| one.fate == fate).count()
    }

    fn packed(&self) -> Result<Vec<u8>, Failure> {
        let failed = |error: &dyn std::error::Error| Failure::Write(error.to_string());
        let text = serde_json::to_vec(self).map_err(|error| failed(&error))?;
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&text).map_err(|error| failed(&error))?;
        let packed = encoder.finish().map_err(|error| failed(&error))?;
        match packed.len() {
            0..LIMIT => Ok(packed),
            size => Err(Failure::NotReady(format!(
                "the record of {} objects has {size} bytes, and a Secret holds {LIMIT}: take over by `helm install` as \
                 docs/migration.md has it",
                self.before.inventory.len()
            ))),
        }
    }

    fn unpacked(packed: &[u8]) -> Result<Self, String> {
        let mut text = Vec::new();
        let mut decoder = GzDecoder::new(packed).take(UNPACKED);
        decoder
            .read_to_end(&mut text)
            .map_err(|error| error.to_string())?;
        let form: BTreeMap<String, Value> =
            serde_json::from_slice(&text).map_err(|error| error.to_string())?;
        match form.get("form").and_then(Value::as_u64) {
            Some(form) if form == u64::from(FORM) => {}
            _ => return Err("it is of another version of windlass".to_owned()),
        }
        serde_json::from_slice(&text).map_err(|error| error.to_string())
    }
}

/// Reads the record, if there is one.
pub(crate) async fn load(client: &Client, namespace: &str) -> Result<Option<Record>, Failure> {
    let what = format!("read the Secret {namespace}/{NAME}");
    let found = secrets(client, namespace).get_opt(NAME).await;
    let Some(secret) = found.map_err(|error| Failure::request(&what, error))? else {
        return Ok(None);
    };
    let data = secret.data.unwrap_or_default();
    let packed = data.get(KEY).map(|data| data.0.as_slice()).unwrap_or_default();
    match Record::unpacked(packed) {
        Ok(record) => Ok(Some(record)),
        Err(why) => Err(Failure::Request { what, why }),
    }
}

/// Writes the record.
pub(crate) async fn save(client: &Client, namespace: &str, record: &Record) -> Result<(), Failure> {
    let secrets = secrets(client, namespace);
    let secret = Secret {
        metadata: ObjectMeta {
            name: Some(NAME.to_owned()),
            ..ObjectMeta::default()
        },
        type_: Some(TYPE.to_owned()),
        data: Some(BTreeMap::from([(KEY.to_owned(), ByteString(record.packed()?))])),
        ..Secret::default()
    };
    let parameters = PostParams::default();
    let written = match secrets.create(&parameters, &secret).await {
        // Whoever writes it holds the lock.
        Err(kube::Error::Api(status)) if status.code == 409 => {
            secrets.replace(NAME, &parameters, &secret).await
        }
        written => written,
    };
    written
        .map(drop)
        .map_err(|error| Failure::request(format!("write the Secret {namespace}/{NAME}"), error))
}

/// Takes the record away.
pub(crate) async fn delete(client: &Client, namespace: &str) -> Result<(), Failure> {
    match secrets(client, namespace)
        .delete(NAME, &DeleteParams::default())
        .await
    {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        Err(error) => Err(Failure::request(
            format!("delete the Secret {namespace}/{NAME}"),
            error,
        )),
    }
}

fn secrets(client: &Client, namespace: &str) -> Api<Secret> {
    Api::namespaced(client.clone(), namespace)
}

#[cfg(test)]
mod tests {
    use super::super::snapshot::Delivered;
    use super::*;
    use serde_json::json;

    fn component(name: &str, replicas: i64) -> Component {
        Component {
            fate: Fate::Replaced,
            manager: "flux".to_owned(),
            object: json!({"apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": {"name": name, "namespace": "n"}, "spec": {"replicas": replicas}}),
        }
    }

    #[test]
    fn a_record_is_read_as_it_was_written_and_one_of_another_form_is_refused() {
        let mut record = Record::new();
        record.add(vec![component("a", 2)]);
        let packed = record.packed().unwrap();
        assert_eq!(Record::unpacked(&packed).unwrap(), record);
        record.form = 2;
        let error = Record::unpacked(&record.packed().unwrap()).unwrap_err();
        assert_eq!(error, "it is of another version of windlass");
        assert!(Record::unpacked(b"nonsense").is_err());
    }

    #[test]
    fn twenty_thousand_delivered_objects_fit() {
        let mut record = Record::new();
        // As random as UIDs are.
        let mut state: u128 = 1;
        let mut random = || {
            state = state
                .wrapping_mul(0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645)
                .wrapping_add(0x5851_f42d_4c95_7f2d);
            state ^ (state >> 61)
        };
        for number in 0..20_000 {
            let id = format!("team-{}_service-{number}_apps_Deployment", number % 100);
            let delivered = Delivered {
                uid: format!("{:032x}", random()),
                generation: 1,
            };
            record.before.inventory.insert(id, delivered);
        }
        let size = record.packed().unwrap().len();
        assert!(size < LIMIT, "{size}");
    }

    #[test]
    fn a_flux_that_was_brought_back_is_recorded_anew() {
        let recorded = |stage| {
            let mut record = Record {
                stage,
                suspended: vec![component("own", 1).id()],
                ..Record::new()
            };
            let scaled = Component {
                fate: Fate::ScaledDown,
                ..component("watcher", 1)
            };
            record.add(vec![component("a", 2), scaled]);
            record
        };
        let [a, watcher] = ["a", "watcher"].map(|name| component(name, 1).id());
        let whole = |stage| Known::Whole(recorded(stage));
        let since = |stage, is_released, at_work: &[ObjectId]| recorded(stage).since(is_released, at_work);
        for stage in [Stage::TakenOver, Stage::Begun] {
            // Ours is there, or no one: the record is all that is left of Flux.
            assert_eq!(since(stage, true, std::slice::from_ref(&a)), whole(stage));
            assert_eq!(since(stage, false, &[]), whole(stage));
        }
        let both = [a.clone(), watcher.clone()];
        assert_eq!(since(Stage::TakenOver, false, &both), Known::Part(Record::new()));
        let Known::Part(part) = since(Stage::Begun, false, &[a]) else {
            panic!("the old Flux was kept");
        };
        let known: Vec<_> = part.components.iter().map(Component::id).collect();
        assert_eq!((known, part.suspended.len()), (vec![watcher.clone()], 1));
        // Killed while it was replaced.
        assert_eq!(since(Stage::Begun, false, &[watcher]), whole(Stage::Begun));
    }

    #[test]
    fn what_is_known_already_is_how_it_was() {
        let mut record = Record::new();
        record.add(vec![component("a", 2)]);
        record.add(vec![component("a", 0), component("b", 1)]);
        let replicas: Vec<i64> = record.components.iter().map(Component::replicas).collect();
        assert_eq!(replicas, [2, 1]);
        assert_eq!(
            (record.count(Fate::Replaced), record.count(Fate::ScaledDown)),
            (2, 0)
        );
    }
}
