//! The graph of delivery: who applied what, from which source and commit, and why it is not ready.
//!
//! | module | what it answers |
//! |---|---|
//! | [`kind`] | which kinds Flux has, and by which words people name them |
//! | [`object`] | what an object says about itself: conditions, revisions, what it needs |
//! | [`walk`] | what keeps an object of Flux from being ready |
//! | [`climb`] | what delivers an object of any kind, up to where no one does |
//! | [`origin`] | the commit that it came from |
//! | [`causes`] | what is wrong with what delivers it |
//! | [`tree`] | what it has applied |
//! | [`images`] | why a tag of an image was chosen, and who wrote it into the manifests |
//! | [`pipelines`] | how the environments of a pipeline stand |
//! | [`progress`] | how far a revision has come |
//! | [`orphans`] | who made an object that nothing delivers |
//! | [`field_managers`] | which program made an object, and what people have set by hand |
//! | [`references`] | which Secrets and ConfigMaps an object needs |
//! | [`request`] | what is written into an object to ask something of its controller |
//!
//! All of it reads through [`Objects`], which may be requests to a cluster or caches of one, and changes nothing.

pub mod causes;
pub mod climb;
pub mod field_managers;
pub mod images;
pub mod kind;
pub mod object;
pub mod origin;
pub mod orphans;
pub mod pipelines;
pub mod progress;
pub mod references;
pub mod request;
pub mod tree;
pub mod walk;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use manifest::ObjectId;
use serde_json::Value;

use kind::Kind;
use walk::Lookup;

/// Where objects are read: in a cluster, or in a cache of one.
pub trait Objects: Sync {
    /// An object of a kind of Flux.
    fn of_flux<'a>(&'a self, id: &'a ObjectId) -> BoxFuture<'a, Lookup>;

    /// An object of any kind in a version of its group. The namespace of kinds without one is passed over.
    fn any<'a>(&'a self, id: &'a ObjectId, version: &'a str) -> BoxFuture<'a, Lookup>;

    /// The objects of a kind of Flux that may be seen.
    fn list<'a>(&'a self, kind: &'static Kind) -> BoxFuture<'a, Vec<Value>>;

    /// The Kustomization or HelmRelease that has an object in its inventory, among those that may be seen.
    fn in_an_inventory<'a>(&'a self, id: &'a ObjectId) -> BoxFuture<'a, Option<Value>> {
        async move {
            for kind in DELIVERERS.into_iter().filter_map(kind::exact) {
                let mut found = self.list(kind).await.into_iter();
                if let Some(deliverer) = found.find(|deliverer| object::has_applied(deliverer, id)) {
                    return Some(deliverer);
                }
            }
            None
        }
        .boxed()
    }
}

/// The kinds that list what they applied, in the order in which they are asked.
pub const DELIVERERS: [&str; 2] = ["Kustomization", "HelmRelease"];

/// Returns a text as one line. What someone wrote into a status must not steer a terminal either.
pub fn one_line(text: &str) -> String {
    let words: Vec<_> = text.split_whitespace().collect();
    words.join(" ").replace(char::is_control, "")
}
