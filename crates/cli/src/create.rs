//! `windlass create`: objects from flags, with the words of `flux create`, printed or applied.
//!
//! Each kind is a module with its flags and a function that makes its objects of them. What is the same for all is here.

mod image;
mod kustomization;
mod notification;
mod release;
mod secret;
mod source;
mod tenant;

use std::time::Duration;

use clap::{Args, Subcommand};
use delivery_graph::kind;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Map, Value, json};

use crate::cluster::{self, Cluster, ClusterFlags, Failure, parse_timeout, print};
use crate::platform::{Platform, objects};
use crate::progress::Progress;
use crate::reconcile;

/// Flux's own default; that of the context is not used, as in Flux.
const NAMESPACE: &str = "flux-system";
const FIELD_MANAGER: &str = "windlass";

/// Command line of `create`.
#[derive(Debug, Args)]
pub(crate) struct Flags {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Create a source of manifests or charts.
    Source {
        #[command(subcommand)]
        kind: source::Kind,
    },
    /// Create a Kustomization.
    #[command(visible_alias = "ks")]
    Kustomization(Box<kustomization::Flags>),
    /// Create a HelmRelease.
    #[command(visible_alias = "hr")]
    Helmrelease(Box<release::Flags>),
    /// Create a Secret in the form that an object expects.
    Secret {
        #[command(subcommand)]
        kind: secret::Kind,
    },
    /// Create the namespaces, service account and role binding of a tenant.
    Tenant(Box<tenant::Flags>),
    /// Create an Alert.
    Alert(Box<notification::Alert>),
    /// Create a Provider for Alerts.
    AlertProvider(Box<notification::Provider>),
    /// Create a Receiver of webhooks.
    Receiver(Box<notification::Receiver>),
    /// Create an object of image automation.
    Image {
        #[command(subcommand)]
        kind: image::Kind,
    },
}

/// Flags of every kind.
#[derive(Debug, Args)]
struct Common {
    /// Name of the object
    #[arg(value_name = "NAME")]
    name: String,

    /// Print the manifest instead of applying it
    #[arg(long)]
    export: bool,

    /// Labels, as KEY=VALUE; repeatable
    #[arg(long = "label", value_name = "KEY=VALUE", value_delimiter = ',', value_parser = pair)]
    labels: Vec<(String, String)>,

    /// Timeout for the object to become ready
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = parse_timeout)]
    timeout: Duration,

    #[command(flatten)]
    cluster: ClusterFlags,
}

/// How often an object is reconciled.
#[derive(Debug, Args)]
struct Interval {
    /// How often the object is reconciled
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = parse_timeout)]
    interval: Duration,
}

impl Interval {
    fn text(&self) -> String {
        duration(self.interval)
    }
}

impl Common {
    fn namespace(&self) -> String {
        self.cluster
            .named_namespace()
            .unwrap_or_else(|| NAMESPACE.to_owned())
    }

    fn metadata(&self) -> Value {
        self.metadata_of(&self.name)
    }

    fn metadata_of(&self, name: &str) -> Value {
        let mut metadata = json!({"name": name, "namespace": self.namespace()});
        if !self.labels.is_empty() {
            metadata["labels"] = self
                .labels
                .iter()
                .cloned()
                .map(|(key, value)| (key, Value::from(value)))
                .collect();
        }
        metadata
    }

    /// An object of a kind, with a spec without empty fields.
    fn object(&self, api_version: &str, kind: &str, spec: Value) -> Value {
        json!({"apiVersion": api_version, "kind": kind, "metadata": self.metadata(), "spec": pruned(spec)})
    }

    /// A Secret with texts.
    fn secret(&self, name: &str, type_: Option<&str>, data: &[(&str, String)]) -> Value {
        let data: Map<String, Value> = data
            .iter()
            .filter(|(_, value)| !value.is_empty())
            .map(|(key, value)| ((*key).to_owned(), Value::from(value.clone())))
            .collect();
        let mut secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": self.metadata_of(name), "stringData": data});
        if let Some(type_) = type_ {
            secret["type"] = type_.into();
        }
        secret
    }
}

/// Creates. `report_line` is for what is under way.
pub(crate) fn run(flags: &Flags, report_line: impl Fn(&str)) -> Result<(), Failure> {
    let (common, objects) = match &flags.what {
        What::Source { kind } => kind.objects(&report_line)?,
        What::Kustomization(flags) => flags.objects()?,
        What::Helmrelease(flags) => flags.objects()?,
        What::Secret { kind } => kind.objects(&report_line)?,
        What::Tenant(flags) => flags.objects()?,
        What::Alert(flags) => flags.objects()?,
        What::AlertProvider(flags) => flags.objects()?,
        What::Receiver(flags) => flags.objects()?,
        What::Image { kind } => kind.objects()?,
    };
    if common.export {
        return print(&documents(&objects)?);
    }
    cluster::run(&common.cluster, async |cluster| {
        let platform = Platform::new(&cluster);
        for object in &objects {
            apply(&platform, object).await?;
            report_line(&format!("{} is applied", objects::of_value(object).id()));
        }
        for object in &objects {
            wait(&cluster, object, common.timeout).await?;
        }
        Ok(())
    })
}

async fn apply(platform: &Platform, object: &Value) -> Result<(), Failure> {
    let object = objects::of_value(object);
    let located = objects::locate(&platform.client, platform.engine.mapper(), object, NAMESPACE).await?;
    let parameters = PatchParams::apply(FIELD_MANAGER).force();
    let api: &Api<_> = &located.api;
    let applied = api
        .patch(
            located.object.name(),
            &parameters,
            &Patch::Apply(located.object.value()),
        )
        .await;
    applied
        .map(drop)
        .map_err(|error| Failure::request(format!("apply {}", located.id()), error))
}

/// Waits for those that a controller makes ready.
async fn wait(cluster: &Cluster, object: &Value, timeout: Duration) -> Result<(), Failure> {
    let id = objects::of_value(object).id();
    let is_answered = |kind: &&kind::Kind| kind.kind == id.kind && kind.group == id.group && kind.answers;
    if kind::ALL.iter().find(is_answered).is_none() {
        return Ok(());
    }
    let progress = Progress::new(false);
    let revision = reconcile::ready_at(cluster, &id, timeout, &progress).await?;
    print(&format!("{id} is ready{revision}\n"))
}

/// Objects as Flux's command prints them.
pub(crate) fn documents(objects: &[Value]) -> Result<String, Failure> {
    let mut text = String::new();
    for object in objects {
        let written = manifest::yaml::write(object).map_err(|error| Failure::Write(error.to_string()))?;
        text.push_str("---\n");
        text.push_str(&written);
    }
    Ok(text)
}

/// Without fields that say nothing: null, empty texts, lists and mappings, and false.
fn pruned(value: Value) -> Value {
    let says_nothing = |value: &Value| match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(all) => all.is_empty(),
        Value::Object(all) => all.is_empty(),
        _ => false,
    };
    match value {
        Value::Object(all) => {
            let all = all.into_iter().map(|(key, value)| (key, pruned(value)));
            Value::Object(all.filter(|(_, value)| !says_nothing(value)).collect())
        }
        Value::Array(all) => Value::Array(all.into_iter().map(pruned).collect()),
        other => other,
    }
}

/// A reference to an object by name, or nothing.
fn named(name: Option<&String>) -> Value {
    match name {
        Some(name) if !name.is_empty() => json!({"name": name}),
        _ => Value::Null,
    }
}

/// `KIND/NAME[.NAMESPACE]`, as Flux writes references.
fn reference(flag: &str, text: &str) -> Result<(String, String, Option<String>), Failure> {
    let unlike = || {
        Failure::Usage(format!(
            "{flag}: write KIND/NAME or KIND/NAME.NAMESPACE instead of {text:?}"
        ))
    };
    let (kind, name) = text.split_once('/').ok_or_else(unlike)?;
    let (name, namespace) = match name.split_once('.') {
        Some((name, namespace)) => (name, Some(namespace.to_owned())),
        None => (name, None),
    };
    match kind.is_empty() || name.is_empty() || namespace.as_deref() == Some("") {
        true => Err(unlike()),
        false => Ok((kind.to_owned(), name.to_owned(), namespace)),
    }
}

/// `NAME` or `NAMESPACE/NAME` of objects that must be ready before.
fn dependencies(all: &[String]) -> Value {
    let one = |text: &String| match text.split_once('/') {
        Some((namespace, name)) => json!({"name": name, "namespace": namespace}),
        None => json!({"name": text}),
    };
    all.iter().map(one).collect()
}

fn duration(duration: Duration) -> String {
    api::meta::Duration::from(duration).to_string()
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("write KEY=VALUE".to_owned()),
    }
}

fn file(flag: &str, path: &std::path::Path) -> Result<String, Failure> {
    let read = std::fs::read_to_string(path);
    read.map_err(|error| Failure::Usage(format!("{flag} {}: {error}", path.display())))
}

/// The name of a kind as manifests have it, from what people type.
fn kind_named(flag: &str, text: &str, known: &[&'static str]) -> Result<&'static str, Failure> {
    let found = known.iter().find(|kind| kind.eq_ignore_ascii_case(text));
    found
        .copied()
        .ok_or_else(|| Failure::Usage(format!("{flag}: {text} is none of {}", known.join(", "))))
}

/// What a command made: the flags of all kinds, and the objects in the order in which they are applied.
type Made<'a> = (&'a Common, Vec<Value>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_say_nothing_are_left_out() {
        let spec = json!({"a": "", "b": null, "c": [], "d": {"e": ""}, "f": 0, "g": false, "h": [{"i": ""}]});
        assert_eq!(pruned(spec), json!({"f": 0, "h": [{}]}));
    }

    #[test]
    fn references_are_written_as_in_flux() {
        let own = |text: &str| reference("--source", text).unwrap();
        assert_eq!(
            own("GitRepository/app"),
            ("GitRepository".to_owned(), "app".to_owned(), None)
        );
        assert_eq!(own("Bucket/app.apps").2.as_deref(), Some("apps"));
        for wrong in ["app", "/app", "Bucket/", "Bucket/a."] {
            assert!(reference("--source", wrong).is_err(), "{wrong}");
        }
        assert_eq!(
            dependencies(&["a".to_owned(), "n/b".to_owned()]),
            json!([{"name": "a"}, {"name": "b", "namespace": "n"}])
        );
    }
}
