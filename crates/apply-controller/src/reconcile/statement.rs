//! The signed statement about a run that ended (ADR 35), which goes into the history.

use cluster_access::targets::Place;
use delivery_statement::{Contents, Delivery, METADATA, Object};
use jiff::Timestamp;
use kube::ResourceExt as _;
use kube_apply::Prepared;
use oci_client::image_name::ImageName;
use reconcile_kit::base::placement;
use reconcile_kit::statements::Facts;
use verification_policy::images;

use super::pass::Pass;
use super::plan::{Content, Plan};

/// Kind whose content is secret whatever it was made of.
const SECRET: &str = "Secret";

/// Names and digests of the objects that are applied.
pub(super) fn contents(prepared: &Prepared) -> Contents {
    let objects = prepared.manifests();
    let contents = Contents::of(objects.map(|(id, object, is_confidential)| {
        let is_secret = is_confidential || (id.group.is_empty() && id.kind == SECRET);
        (id.inventory_id(), object.value(), is_secret)
    }));
    let texts = prepared
        .manifests()
        .flat_map(|(_, object, _)| images::named(object.value()));
    contents.with_images(texts.filter_map(|text| {
        let image = ImageName::parse(text).ok()?;
        Some((image.repository(), image.digest?.to_string()))
    }))
}

/// How a run ended.
pub(super) struct End<'a> {
    pub(super) checksum: &'a str,
    pub(super) contents: Option<&'a Contents>,
    pub(super) began: Timestamp,
    pub(super) succeeded: bool,
    /// The outcome in the history.
    pub(super) reason: &'a str,
}

/// The statement about a run; None if none are made.
pub(super) async fn statement(pass: &Pass<'_>, plan: &Plan, end: End<'_>) -> Option<(String, String)> {
    let statements = pass.context.statements.as_ref()?;
    let object = pass.object();
    let (name, namespace) = (object.name_any(), object.namespace().unwrap_or_default());
    // What is remembered is of the last run that applied everything, which a failed one may not be.
    let place = match end.succeeded {
        true => pass.remembered(|entry| entry.applied.as_ref().map(|applied| applied.place.clone())),
        false => {
            let target = pass.context.base.targets.target_of(placement(object)).await;
            target.ok().map(|target| target.place.clone())
        }
    };
    let account = place.as_ref().and_then(Place::account);
    let history = object.status.iter().flat_map(|status| &status.history);
    let mut same =
        history.filter(|entry| entry.digest == end.checksum && entry.last_reconciled_status == end.reason);
    let before = same.next().and_then(|entry| entry.metadata.get(METADATA));
    let is_of_source = plan.content == Content::Source;
    let delivery = Delivery {
        object: Object {
            kind: "Kustomization",
            namespace: &namespace,
            name: &name,
            uid: object.metadata.uid.as_deref().unwrap_or_default(),
            generation: plan.inputs.generation,
        },
        controller: "kustomize-controller",
        account: account.as_deref(),
        is_remote: place.is_some_and(|place| !place.is_home()),
        source: &pass.observed.source_name,
        revision: plan.revision(),
        origin: plan.origin().map(String::as_str),
        artifact: is_of_source.then_some(plan.inputs.digest.as_str()),
        succeeded: end.succeeded,
        reason: end.reason,
    };
    let about = statements.about(Facts {
        delivery,
        digest: end.checksum,
        contents: end.contents.cloned(),
        began: end.began,
        before: before.map(String::as_str),
    });
    Some((METADATA.to_owned(), about.await?))
}
