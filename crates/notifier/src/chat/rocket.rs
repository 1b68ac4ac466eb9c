//! `rocket`: Rocket.Chat, which takes Slack's attachments.

use super::slack;
use crate::error::Error;
use crate::notification::Notification;
use crate::request::Request;
use crate::said::{Fields, Said};
use crate::target::Target;

const MAX_TEXT: usize = 40_000;

/// One message.
pub(crate) fn render(target: &Target, notification: &Notification) -> Result<Vec<Request>, Error> {
    let url = target.url("Rocket hook URL")?;
    let said = Said::from_notification(notification);
    let attachment = slack::attachment(&said, ["#0076D7", "#FF0000"], MAX_TEXT, Fields::MANY);
    let payload = slack::message(&target.channel, &target.username, attachment);
    Ok(vec![Request::json(url, &payload)])
}
