//! Previews an install or upgrade: computes what it would apply and applies nothing.

use std::collections::HashMap;

use kube::Client;
use kube_apply::{Engine, MadePatch, mapper};
use manifest::{Object, ObjectId};
use serde_json::Value;

use crate::install::method;
use crate::render::{self, Revision};
use crate::{Content, CrdPolicy, Error, ErrorKind, ServerSide, Storage, crds};
use crate::{patch, resources};

/// Parts of a previewed release.
#[derive(Debug)]
pub struct Previewed {
    /// Its objects as they would be applied, hooks aside.
    pub objects: Vec<Object>,
    /// The CRDs of crds/, as far as the policy has them applied. They are no part of the release.
    pub definitions: Vec<Object>,
    /// As it would be recorded, hooks included.
    pub release: helm_release::Release,
}

/// How a release would be written, and from what.
#[derive(Debug, Default)]
pub struct Former {
    /// Applied on the server, or else patched by the client.
    pub server_side: bool,
    /// Objects that the revision to upgrade declares.
    declared: HashMap<ObjectId, Object>,
}

impl Former {
    /// For a release that is not there yet.
    #[must_use]
    pub fn none(server_side: bool) -> Self {
        Self {
            server_side,
            declared: HashMap::new(),
        }
    }

    /// Makes the patch that an upgrade on the client's side would send; None if it would send none.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn patch(&self, id: &ObjectId, wanted: &Object, live: &Value) -> Result<Option<MadePatch>, String> {
        let (gvk, wanted) = (wanted.gvk(), wanted.value());
        let made = match self.declared.get(id) {
            Some(declared) => patch::make(&gvk, declared.value(), wanted, live),
            None => patch::adopt(&gvk, wanted, live),
        };
        made.map_err(|problem| format!("failed to create patch: {problem}"))
    }
}

/// Reads how an upgrade of a release would write, as an upgrade finds it out.
///
/// # Errors
/// When the records cannot be read.
pub async fn former(
    engine: &Engine,
    storage: &Storage,
    (name, namespace): (&str, &str),
    chosen: ServerSide,
) -> Result<Former, Error> {
    let (history, last) = storage.newest(name).await?;
    let Some(last) = last else {
        return Ok(Former::none(chosen != ServerSide::Off));
    };
    let server_side = chosen.is_on(last.release.apply_method);
    let mut former = Former::none(server_side);
    if server_side {
        return Ok(former);
    }
    let deployed = match history.deployed() {
        Some(deployed) if deployed.version != last.release.version => {
            storage.get(name, deployed.version).await?
        }
        _ => None,
    };
    let current = deployed.unwrap_or(last);
    for object in resources::objects(&current.release.manifest)? {
        let object = at_home(engine, object, namespace).await?;
        former.declared.insert(object.id(), object);
    }
    Ok(former)
}

impl ServerSide {
    /// Returns whether an upgrade applies on the server, over a release that was applied in some way.
    pub(crate) fn is_on(self, before: Option<helm_release::ApplyMethod>) -> bool {
        match self {
            Self::Auto => method(true) == before.unwrap_or(method(false)),
            chosen => chosen == Self::On,
        }
    }
}

/// Renders a chart for a release as an action would do it.
///
/// # Errors
/// When the cluster cannot be asked what it serves, the chart cannot be rendered, or what comes out are no objects.
pub async fn preview(
    client: &Client,
    engine: &Engine,
    content: &Content,
    (name, namespace): (&str, &str),
    version: i64,
) -> Result<Previewed, Error> {
    let revision = Revision {
        name,
        namespace,
        version,
        is_upgrade: version > 1,
        values: content.values.clone(),
        chart_values: None,
    };
    let (rendered, values) = render::rendered(client, engine, content, &revision).await?;
    let release = helm_release::made::release(rendered, (name, namespace), version, values);
    let mut objects = Vec::new();
    for object in resources::objects(&release.manifest)? {
        let mut object = at_home(engine, object, namespace).await?;
        resources::Release { name, namespace }.mark(&mut object);
        objects.push(object);
    }
    Ok(Previewed {
        objects,
        definitions: definitions(content).await?,
        release,
    })
}

/// Puts the namespace right. What the cluster does not know (yet) stays as it is.
async fn at_home(engine: &Engine, object: Object, namespace: &str) -> Result<Object, Error> {
    match engine.mapper().resolve(&object.gvk()).await {
        Ok(resource) => Ok(resources::placed(object, resource, namespace).object),
        Err(mapper::Error::UnknownKind(_)) => Ok(object),
        Err(error) => Err(Error::new(ErrorKind::Cluster, error.to_string())),
    }
}

async fn definitions(content: &Content) -> Result<Vec<Object>, Error> {
    if content.crds == CrdPolicy::Skip {
        return Ok(Vec::new());
    }
    let mut definitions = Vec::new();
    for file in crds::files(&content.chart, &content.values).await? {
        let mut read = resources::objects(&file.content)?;
        read.retain(|object| object.gvk().kind == "CustomResourceDefinition");
        for definition in &mut read {
            for (key, value) in &content.origin_labels {
                definition.set_label(key, value);
            }
        }
        definitions.extend(read);
    }
    Ok(definitions)
}
