//! How a HelmRelease's objects would be written: applied on the server, or patched by the client, as its spec and the last
//! record of its release say.

use api::helm::{HelmRelease, ServerSideApplyMode};
use error_chain::chain;
use flux_spec::release::names;
use helm_action::{Former, ServerSide, Storage};
use kube_apply::{MadePatch, Means, Patcher};
use manifest::{Object, ObjectId};
use serde_json::Value;

use crate::report::{Action, Entry};
use crate::subject::Compared;
use crate::world::Actor;

/// How the objects of a release would be written.
pub(crate) struct Writing {
    former: Former,
    /// Objects are replaced as a whole, which no dry run here asks for.
    replaces: bool,
}

impl Writing {
    /// Finds it out. If it cannot be known, that is noted, and it is asked as most releases are written.
    pub(crate) async fn new(
        actor: &Actor,
        object: &HelmRelease,
        is_upgrade: bool,
        compared: &mut Compared,
    ) -> Self {
        if !is_upgrade {
            let install = object.spec.install.as_ref();
            let server_side = install.and_then(|install| install.server_side_apply);
            return Self {
                former: Former::none(server_side.unwrap_or(true)),
                replaces: false,
            };
        }
        let upgrade = object.spec.upgrade.clone().unwrap_or_default();
        let chosen = chosen(upgrade.server_side_apply);
        let storage = Storage::new(actor.client.clone(), &names::storage_namespace(object));
        let (name, namespace) = (names::release_name(object), names::release_namespace(object));
        let found = match chosen {
            ServerSide::On => Ok(Former::none(true)),
            _ => helm_action::former(&actor.engine, &storage, (&name, &namespace), chosen).await,
        };
        let former = found.unwrap_or_else(|error| {
            let why = format!(
                "the last record of the release says whether the server applies its objects, and cannot be read: {}; \
                 they are compared as if it did",
                chain(&error)
            );
            let record = format!("the release {}/{name}", storage.namespace());
            compared.section.objects.push(Entry::new(record, Action::NotCompared, why));
            Former::none(true)
        });
        Self {
            replaces: upgrade.force && !former.server_side,
            former,
        }
    }

    /// Makes the patch of one object, where the client makes them.
    pub(crate) fn patcher(
        &self,
    ) -> impl Fn(&ObjectId, &Object, &Value) -> Result<Option<MadePatch>, String> + Sync + '_ {
        |id, wanted, live| match self.replaces {
            true => Err(
                "it would be replaced as a whole (spec.upgrade.force), which is not asked for here"
                    .to_owned(),
            ),
            false => self.former.patch(id, wanted, live),
        }
    }

    /// Translates the settings for the engine.
    pub(crate) fn means<'a>(&self, patcher: &'a Patcher<'a>) -> Means<'a> {
        match self.former.server_side {
            true => Means::ApplyOver(&helm_action::TAKEN_OVER),
            false => Means::Patch(patcher),
        }
    }
}

fn chosen(mode: Option<ServerSideApplyMode>) -> ServerSide {
    match mode.unwrap_or_default() {
        ServerSideApplyMode::Enabled => ServerSide::On,
        ServerSideApplyMode::Disabled => ServerSide::Off,
        ServerSideApplyMode::Auto => ServerSide::Auto,
    }
}
