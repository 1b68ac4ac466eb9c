//! `azuredevops`: the status of a commit at Azure DevOps, with a personal access token or as a workload.

use cloud_identity::azure;
use forge::azure_devops::{Address, AzureDevOps, GENRE};

use super::status::Status;
use crate::edge::Http;
use crate::error::Error;
use crate::identity;
use crate::notification::{Notification, Sent};
use crate::target::Target;

/// Checks a target.
pub(super) fn check(target: &Target) -> Result<(), Error> {
    Address::parse(&target.address)?;
    Ok(())
}

/// Sets the status unless it stands already.
pub(super) async fn send(http: Http<'_>, notification: &Notification) -> Result<Sent, Error> {
    let Some(status) = Status::from_notification(notification)? else {
        return Ok(Sent::default());
    };
    let mut service = sign_in(http).await?;
    let Address { project, name, .. } = &service.address;
    let missing = status.missing(&format!("{project}/{name}"));
    service.api = service.api.about(missing);
    let genre = match notification.event.metadata.get(event::keys::SUMMARY) {
        Some(summary) => format!("{GENRE}:{summary}"),
        None => GENRE.to_owned(),
    };
    let standing = service.status(&status.commit, &genre, &status.id).await;
    let standing = standing.map_err(|error| error.within("could not list commit statuses"))?;
    if status.is_news(standing.as_ref()) {
        let posted = service.set_status(status.as_forge(), &genre).await;
        posted.map_err(|error| error.within("could not create commit status"))?;
    }
    Ok(Sent::default())
}

async fn sign_in(http: Http<'_>) -> Result<AzureDevOps<'_>, Error> {
    let token = http.target.token.trim();
    if !token.is_empty() {
        return Ok(AzureDevOps::new(http, &http.target.address, token)?);
    }
    let address = Address::parse(&http.target.address)?;
    // The controller's token opens what the controller may see. It must not go where a tenant wants it to.
    let host = address.root.host_str().unwrap_or_default();
    let is_microsoft = host == "dev.azure.com" || host.ends_with(".visualstudio.com");
    if address.root.scheme() != "https" || !is_microsoft {
        return Err(Error::invalid(
            "failed to acquire azure devops token: an identity of Azure is shown only to https://dev.azure.com and *.visualstudio.com",
        ));
    }
    let token = identity::azure(http, azure::DEV_OPS).await;
    let token = token.map_err(|error| error.within("failed to acquire azure devops token"))?;
    Ok(AzureDevOps::with_bearer(http, address, &token)?)
}
