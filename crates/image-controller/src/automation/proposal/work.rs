//! What all groups of changes of a run share.

use std::sync::Arc;

use api::delivery::PullRequestSpec;
use api::image::{ImagePolicy, ImageUpdateAutomation};
use change_policy::mark::Commit as Mark;
use forge::Forge;
use git_client::ObjectId;
use git_client::push::Move;
use git_writer::commit::Commit;
use git_writer::signing::Key;

use crate::automation::branch::head::Site;
use crate::automation::commit;
use crate::automation::error::Error;
use crate::automation::target::Target;
use crate::automation::{message, update};
use crate::context::Context;

/// Changes that share a pull request.
pub(super) struct Group {
    pub(super) branch: String,
    /// Name of the policy; None for all.
    pub(super) policy: Option<String>,
    /// All of them.
    pub(super) policies: Vec<Arc<ImagePolicy>>,
    pub(super) values: update::Values,
}

/// What all groups of a run share.
pub(super) struct Work<'a> {
    pub(super) object: &'a ImageUpdateAutomation,
    pub(super) spec: &'a PullRequestSpec,
    pub(super) target: Target,
    pub(super) forge: Forge<'static>,
    /// Of the repository at the forge.
    pub(super) address: String,
    pub(super) key: Option<Key>,
    pub(super) context: &'a Context,
    /// Every policy has chosen an image: what is not changed need not be.
    pub(super) is_settled: bool,
}

impl Work<'_> {
    /// A commit to be made of these contents.
    pub(super) fn edit(
        &self,
        parent: ObjectId,
        contents: git_client::edit::Changes,
        files: update::Files,
        group: &Group,
        mark: Option<Mark>,
    ) -> commit::Edit {
        commit::Edit {
            parent,
            contents,
            data: message::Data::new(self.object, group.policy.as_deref(), files),
            mark,
            git: self.object.spec.git.clone().unwrap_or_default(),
            key: self.key.clone(),
        }
    }

    /// Where its branches are.
    pub(super) fn site(&self) -> Site<'_> {
        Site {
            object: self.object,
            target: &self.target,
            context: self.context,
        }
    }

    pub(super) async fn push(&self, step: Move, commit: Option<&Commit>) -> Result<(), Error> {
        let objects = commit.map(|commit| commit.objects.clone()).unwrap_or_default();
        let pushed = commit::push(&self.target, step, objects).await;
        pushed.map_err(Error::Push)
    }
}
