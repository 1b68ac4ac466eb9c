//! Which provider renders what: the one place that knows them all.

use crate::bus;
use crate::chat;
use crate::edge::{Edge, Http};
use crate::error::Error;
use crate::forward;
use crate::git;
use crate::incident;
use crate::mask::Mask;
use crate::notification::{AlertRef, Notification, Sent};
use crate::provider_type::ProviderType as Type;
use crate::request::Request;
use crate::target::Target;

/// Tries once to say a notification to a target.
///
/// It takes as long as the service takes: time-outs and further attempts are the caller's. If the thread that it
/// belongs to is gone, a new one is begun.
pub async fn send(edge: &Edge, target: &Target, notification: &Notification) -> Result<Sent, Error> {
    let mask = &Mask::from_target(target);
    let http = Http { edge, target, mask };
    let sent = match attempt(http, notification).await {
        Err(error) if error.thread_is_gone && notification.thread.is_some() => {
            let mut anew = notification.clone();
            anew.thread = None;
            attempt(http, &anew).await
        }
        outcome => outcome,
    };
    sent.map_err(|error| error.masked(mask))
}

/// Checks a target without sending anything.
pub fn check(target: &Target) -> Result<(), Error> {
    let nothing = Notification::new(event::Event::default(), AlertRef::default());
    let checked = match target.type_ {
        type_ if git::has(type_) => git::check(target),
        type_ if bus::has(type_) => bus::check(target),
        _ => render(target, &nothing).map(drop),
    };
    checked.map_err(|error| error.masked(&Mask::from_target(target)))
}

async fn attempt(http: Http<'_>, notification: &Notification) -> Result<Sent, Error> {
    match http.target.type_ {
        type_ if git::has(type_) => git::send(http, notification).await,
        type_ if bus::has(type_) => bus::send(http, notification).await,
        _ => http.send_all(render(http.target, notification)?).await,
    }
}

/// The requests of the types that send without asking anything first. None: there is nothing to say.
pub(crate) fn render(target: &Target, notification: &Notification) -> Result<Vec<Request>, Error> {
    match target.type_ {
        Type::Generic => forward::generic(target, notification),
        Type::GenericHmac => forward::signed(target, notification),
        Type::Slack => chat::slack::render(target, notification),
        Type::Discord => chat::discord::render(target, notification),
        Type::MsTeams => chat::msteams::render(target, notification),
        Type::Rocket => chat::rocket::render(target, notification),
        Type::GoogleChat => chat::googlechat::render(target, notification),
        Type::Webex => chat::webex::render(target, notification),
        Type::Telegram => chat::telegram::render(target, notification),
        Type::Lark => chat::lark::render(target, notification),
        Type::Matrix => chat::matrix::render(target, notification),
        Type::Zulip => chat::zulip::render(target, notification),
        Type::Zoom => chat::zoom::render(target, notification),
        Type::Opsgenie => incident::opsgenie::render(target, notification),
        Type::PagerDuty => incident::pagerduty::render(target, notification),
        Type::IncidentIo => incident::incidentio::render(target, notification),
        Type::Sentry => incident::sentry::render(target, notification),
        Type::DataDog => incident::datadog::render(target, notification),
        Type::Grafana => incident::grafana::render(target, notification),
        Type::Alertmanager => incident::alertmanager::render(target, notification),
        other => Err(Error::invalid(format!("provider {other} is not supported yet"))),
    }
}
