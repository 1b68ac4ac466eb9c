//! What an install or upgrade would apply, and nothing of it is: for people who look before they push.

use kube::Client;
use kube_apply::{Engine, mapper};
use manifest::Object;

use crate::render::{self, Revision};
use crate::resources;
use crate::{Content, CrdPolicy, Error, ErrorKind, crds};

/// What a release would be made of.
#[derive(Debug)]
pub struct Previewed {
    /// Its objects as they would be applied, hooks aside.
    pub objects: Vec<Object>,
    /// The CRDs of crds/, as far as the policy has them applied. They are no part of the release.
    pub definitions: Vec<Object>,
    /// As it would be recorded, hooks included.
    pub release: helm_release::Release,
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
    for file in crds::files(content, &content.values).await? {
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
