//! Effect of writing one object.

use kube_apply::Failure;
use serde_json::Value;

use crate::resources::Resource;

/// How objects are written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    /// On the server, or by patches of the client.
    pub(crate) server_side: bool,
    /// Replaces objects instead of patching them; only where the client makes patches.
    pub(crate) replace: bool,
    /// Refuses fields that kinds do not have.
    pub(crate) strict: bool,
    /// Finds out what was created, which costs a request for each object on the server's side.
    pub(crate) knows_created: bool,
}

/// Effect on one object.
pub(super) struct Done {
    pub(super) is_new: bool,
    pub(super) answer: Option<Value>,
}

/// State of an object before, for callers that compare.
pub(super) enum Before<'a> {
    /// Nothing is known: it is new, or someone else's.
    Unknown,
    /// In the revision before.
    Declared(&'a Resource),
}

/// `default/web apps/v1, Kind=Deployment: what the server said`, as Helm writes it: the core group is `/v1`.
pub(super) fn at(target: &Resource, failure: &Failure) -> String {
    let gvk = target.gvk();
    format!(
        "{}/{} {}/{}, Kind={}: {failure}",
        target.at.namespace, target.at.name, gvk.group, gvk.version, gvk.kind
    )
}
