//! Deployment of a promotion: which commit is in which environment, and how it is there.

use forge::deployment::Deployment;

use super::status::{MAX_DESCRIPTION, Status};
use crate::notification::Notification;
use crate::said::cut;

/// The kind whose events are about environments.
const PIPELINE: &str = "Pipeline";
/// The environment in the metadata of an event.
const ENVIRONMENT: &str = "environment";
/// Bytes of the name of an environment.
const MAX_NAME: usize = 63;

/// What is said of it: the message in one line, as the environment and the commit stand beside it.
pub(super) fn description(notification: &Notification) -> String {
    let text = notification.text.as_ref().unwrap_or(&notification.event.message);
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    cut(&line, MAX_DESCRIPTION).into_owned()
}

/// Returns the deployment that an event of a pipeline is about, if the Alert wants one.
pub(super) fn of<'a>(
    notification: &'a Notification,
    status: &'a Status,
    description: &'a str,
) -> Option<Deployment<'a>> {
    let event = &notification.event;
    let environment = event.metadata.get(ENVIRONMENT)?;
    let is_wanted = notification.deployments && event.involved_object.kind == PIPELINE;
    (is_wanted && (1..=MAX_NAME).contains(&environment.len())).then_some(Deployment {
        commit: &status.commit,
        environment,
        state: status.state,
        description,
    })
}
