//! Computes what content would change for one HelmRelease: renders its chart as helm-controller does, with
//! the values that the cluster has or would have, and compares the result.

use std::sync::Arc;

use api::helm::{CrdsPolicy, HelmRelease, PostRenderStrategy};
use delivery_graph::object::text;
use flux_spec::release::values::{self, Resources};
use flux_spec::release::{PostRenderers, names, origin_labels};
use helm_action::{Content, CrdPolicy, Previewed};
use helm_render::Renderer;
use kube::ResourceExt as _;
use kube_apply::{Address, CommonMetadata, Engine, Expected, Means};
use manifest::{GroupVersionKind, Object, ObjectId};
use serde_json::{Map, Value, json};

use crate::apply::{self, owner};
use crate::chart;
use crate::kustomization::SUSPENDED;
use crate::report::{Action, Entry, WITHHELD};
use crate::subject::{Compared, Subject, inventory};
use crate::upgrade::Writing;
use crate::world::{Actor, World, namespace_id};

/// A release as an upgrade or install would make it now.
pub(crate) struct Rendered {
    pub(crate) object: HelmRelease,
    pub(crate) previewed: Previewed,
    /// The revision that it would be.
    version: i64,
    crds: CrdPolicy,
    /// Who asks for its objects.
    actor: Actor,
}

/// Renders a HelmRelease, and notes what there is to say of it.
pub(crate) async fn rendered(
    world: &World,
    subject: &Subject,
    compared: &mut Compared,
) -> Result<Rendered, String> {
    let object: HelmRelease = serde_json::from_value(subject.object.clone())
        .map_err(|error| compared.hide_quotes("failed to read it", error))?;
    let spec = &object.spec;
    let actor = world.helm(subject).await?;
    let upgrades = object.status.as_ref().and_then(|status| status.history.first());
    let version = upgrades.map_or(1, |latest| latest.version + 1);
    if version > 1
        && spec
            .upgrade
            .as_ref()
            .is_some_and(|upgrade| upgrade.preserve_values)
    {
        let why = "spec.upgrade.preserveValues lays its values over those of the release before, which are not read here";
        return Err(why.to_owned());
    }
    if spec.suspend {
        compared.section.is_suspended = true;
        let note = "it is suspended: nothing of this would happen before it is resumed";
        compared.section.notes.push(note.to_owned());
    }
    let chart = chart::fetch_chart(world, &object, compared).await?;
    let values = values_of(world, &object, compared).await?;
    let content = content(&object, chart, values, (version > 1, !world.is_for_strangers));
    let name = names::release_name(&object);
    let namespace = names::release_namespace(&object);
    let Actor { client, engine } = &actor;
    let previewed = helm_action::preview(client, engine, &content, (&name, &namespace), version).await;
    let previewed = previewed.map_err(|error| compared.hide_quotes("failed to render the chart", error))?;
    let hooks = previewed.release.hooks.len();
    if hooks > 0 {
        let note = format!("{hooks} hooks are not looked at");
        compared.section.notes.push(note);
    }
    Ok(Rendered {
        object,
        previewed,
        version,
        crds: content.crds,
        actor,
    })
}

/// Renders, asks, and notes what would go.
pub(crate) async fn compare(
    world: &mut World,
    subject: &Subject,
    compared: &mut Compared,
) -> Result<(), String> {
    let Rendered {
        object,
        previewed,
        version,
        crds,
        actor,
    } = rendered(world, subject, compared).await?;
    let namespace = names::release_namespace(&object);
    if version == 1 {
        bring_namespace(world, &object, &namespace, compared).await;
    }
    let writing = Writing::new(&actor, &object, version > 1, compared).await;
    let patcher = writing.patcher();
    let means = writing.means(&patcher);
    // Definitions are no part of the release, and those that are there may stay as they are.
    let only_new = crds == CrdPolicy::Create;
    ask(
        world,
        (subject, &actor.engine),
        previewed.definitions,
        (only_new, means),
        compared,
    )
    .await?;
    ask(
        world,
        (subject, &actor.engine),
        previewed.objects,
        (false, means),
        compared,
    )
    .await?;
    let stale = apply::stale(compared, &inventory(&subject.object), &[]);
    if version > 1 && subject.object.pointer("/status/inventory").is_none() {
        let note = "its status has no inventory: what would be pruned is not known";
        compared.section.notes.push(note.to_owned());
    }
    prune(world, &actor.engine, &stale, compared).await;
    Ok(())
}

/// An install may make the namespace of the release.
async fn bring_namespace(world: &mut World, object: &HelmRelease, namespace: &str, compared: &mut Compared) {
    let install = object.spec.install.as_ref();
    if object.spec.target_namespace.is_none() || !install.is_some_and(|install| install.create_namespace) {
        return;
    }
    match world.bring_namespace(namespace).await {
        Ok(false) => {}
        Ok(true) => {
            let mut entry = Entry::new(namespace_id(namespace).to_string(), Action::Created, "");
            entry.states.1 = json!({"apiVersion": "v1", "kind": "Namespace",
                "metadata": {"name": namespace, "labels": {"name": namespace}}});
            compared.section.objects.push(entry);
        }
        Err(why) => {
            let note = format!("whether its namespace is there is not known, and it is made if not: {why}");
            compared.section.notes.push(note);
        }
    }
}

/// Computes what would be deleted with a HelmRelease.
pub(crate) async fn gone(
    world: &mut World,
    subject: &Subject,
    compared: &mut Compared,
) -> Result<(), String> {
    let stale = inventory(&subject.object).sorted();
    if subject.object.pointer("/spec/suspend") == Some(&Value::Bool(true)) {
        compared.section.notes.push("it would be deleted".to_owned());
        let kept = |(id, _): &(ObjectId, String)| Entry::new(id.to_string(), Action::Kept, SUSPENDED);
        compared.section.objects.extend(stale.iter().map(kept));
        return Ok(());
    }
    compared
        .section
        .notes
        .push("it would be deleted, and its release uninstalled".to_owned());
    let engine = world.helm(subject).await?.engine;
    prune(world, &engine, &stale, compared).await;
    Ok(())
}

async fn ask(
    world: &mut World,
    (subject, engine): (&Subject, &Engine),
    objects: Vec<Object>,
    (only_new, means): (bool, Means<'_>),
    compared: &mut Compared,
) -> Result<(), String> {
    if objects.is_empty() {
        return Ok(());
    }
    let common = CommonMetadata::default();
    let ready = apply::prepare(world, engine, &owner(subject), objects, &common, compared).await?;
    if !only_new {
        apply::preview(world, engine, &ready, (false, means), compared).await;
        return Ok(());
    }
    for preview in engine.preview(&ready.prepared, false, means).await {
        compared.built.insert(preview.id.clone());
        if matches!(preview.expected, Ok(Expected::Created(_)) | Err(_)) {
            world.plan(&preview);
            compared.add(preview);
        }
    }
    Ok(())
}

/// The values. Whether some of them are no one's business is noted.
async fn values_of(
    world: &World,
    object: &HelmRelease,
    compared: &mut Compared,
) -> Result<Map<String, Value>, String> {
    let namespace = object.namespace().unwrap_or_default();
    let mut found = Vec::new();
    for reference in &object.spec.values_from {
        let data = world.data(reference.kind, &namespace, &reference.name).await?;
        // What the cluster has may be made of a Secret that would go, so that one counts as well.
        compared.is_confidential |= world.holds_secrets(reference.kind, &namespace, &reference.name);
        let data =
            data.ok_or_else(|| format!("{:?} {namespace}/{} not found", reference.kind, reference.name));
        found.push(((reference.kind, reference.name.clone()), data));
    }
    let readable: Vec<_> = found
        .iter()
        .flat_map(|((kind, name), data)| {
            let keys = data.as_ref().ok().into_iter().flat_map(|data| data.keys());
            keys.map(|key| (*kind, name.clone(), key.clone()))
        })
        .collect();
    let resources: Resources = found.into_iter().collect();
    values::compose(object, &resources).map_err(|mut error| {
        // What is missing is told; what is there and cannot be read may be quoted.
        let at = (error.kind, error.name.clone(), error.key.clone());
        let is_there = readable.contains(&at);
        if is_there && compared.is_confidential {
            error.problem = WITHHELD.to_owned();
        }
        error.to_string()
    })
}

fn content(
    object: &HelmRelease,
    chart: Renderer,
    values: Map<String, Value>,
    (is_upgrade, looks_up): (bool, bool),
) -> Content {
    let install = object.spec.install.clone().unwrap_or_default();
    let upgrade = object.spec.upgrade.clone().unwrap_or_default();
    let (crds, skip_schema_validation) = match is_upgrade {
        true => (upgrade.crds, upgrade.disable_schema_validation),
        false => (install.crds, install.disable_schema_validation),
    };
    Content {
        chart: Arc::new(chart),
        values,
        post_render: Some(Arc::new(PostRenderers::from_object(object))),
        post_render_strategy: match object.spec.post_render_strategy.unwrap_or_default() {
            PostRenderStrategy::Nohooks => helm_render::PostRenderStrategy::NoHooks,
            PostRenderStrategy::Combined => helm_render::PostRenderStrategy::Combined,
            PostRenderStrategy::Separate => helm_render::PostRenderStrategy::Separate,
        },
        crds: match crds {
            Some(CrdsPolicy::Skip) => CrdPolicy::Skip,
            None | Some(CrdsPolicy::Create) => CrdPolicy::Create,
            Some(CrdsPolicy::CreateReplace) => CrdPolicy::CreateReplace,
        },
        origin_labels: origin_labels(object),
        skip_schema_validation,
        disable_openapi_validation: false,
        enable_dns: false,
        looks_up,
        admission: None,
    }
}

/// Annotation of objects that Helm leaves behind.
const KEEP: (&str, &str) = ("helm.sh/resource-policy", "keep");

/// Notes what becomes of objects that left the release. Helm deletes them whatever their labels say, and CRDs never.
async fn prune(world: &mut World, engine: &Engine, stale: &[(ObjectId, String)], compared: &mut Compared) {
    for (id, version) in stale {
        let kept = |why: String| Entry::new(id.to_string(), Action::Kept, why);
        if id.kind == "CustomResourceDefinition" {
            compared
                .section
                .objects
                .push(kept("Helm deletes no definitions".to_owned()));
            continue;
        }
        match metadata(engine, id, version).await {
            Ok(None) => {}
            Ok(Some(live)) if text(&live, "/metadata/annotations/helm.sh~1resource-policy") == KEEP.1 => {
                let entry = kept(format!("it is annotated with {}: {}", KEEP.0, KEEP.1));
                compared.section.objects.push(entry);
            }
            Ok(Some(_)) => apply::prune(world, id.clone(), compared).await,
            Err(why) => {
                let entry = Entry::new(
                    id.to_string(),
                    Action::Failed,
                    format!("it left the release: {why}"),
                );
                compared.section.objects.push(entry);
            }
        }
    }
}

async fn metadata(engine: &Engine, id: &ObjectId, version: &str) -> Result<Option<Value>, String> {
    let gvk = GroupVersionKind {
        group: id.group.clone(),
        version: version.to_owned(),
        kind: id.kind.clone(),
    };
    let resource = engine.mapper().resolve_any_version(&gvk).await;
    let Some(resource) = resource.map_err(|error| error.to_string())? else {
        return Ok(None);
    };
    let at = Address {
        resource,
        namespace: id.namespace.clone(),
        name: id.name.clone(),
    };
    engine
        .read_metadata_one(&at)
        .await
        .map_err(|failure| failure.to_string())
}
