//! The metadata server of Google's machines and of GKE.

use http::{HeaderName, Method};

use super::granted::{Granted, SCOPES};
use crate::exchange::{Error, Request, ask, ask_json, parse_url};
use crate::provider::Session;
use crate::token::Token;

const HOST: &str = "169.254.169.254";

/// Which cluster this is.
pub(super) struct Cluster {
    project: String,
    location: String,
    name: String,
}

impl Cluster {
    /// The pool that GKE makes for each project.
    pub(super) fn pool(&self) -> String {
        format!("{}.svc.id.goog", self.project)
    }

    /// Audience of tokens for this cluster.
    pub(super) fn audience(&self) -> String {
        format!(
            "identitynamespace:{}:https://container.googleapis.com/v1/projects/{}/locations/{}/clusters/{}",
            self.pool(),
            self.project,
            self.location,
            self.name
        )
    }
}

/// The token of the service account that this pod or node has.
pub(super) async fn token(session: Session<'_>) -> Result<Token, Error> {
    let scopes = SCOPES.map(|scope| crate::aws::encode(scope, false)).join("%2C");
    let path = format!("instance/service-accounts/default/token?scopes={scopes}");
    let granted: Granted = ask_json(session.http, request(&path, session)?).await?;
    Ok(granted.token(session))
}

/// Reads facts about the cluster from the metadata server. Asked whenever a token is made, which is once an
/// hour at most.
pub(super) async fn cluster(session: Session<'_>) -> Result<Cluster, Error> {
    Ok(Cluster {
        project: text("project/project-id", "project ID", session).await?,
        location: text("instance/attributes/cluster-location", "location", session).await?,
        name: text("instance/attributes/cluster-name", "name", session).await?,
    })
}

async fn text(path: &str, what: &str, session: Session<'_>) -> Result<String, Error> {
    let failed = |problem: String| {
        Error::Configuration(format!(
            "failed to get GKE cluster {what} from the metadata service: {problem}"
        ))
    };
    let answer = ask(session.http, request(path, session)?).await;
    let answer = answer.map_err(|error| failed(error.to_string()))?;
    match String::from_utf8_lossy(&answer.body).trim() {
        "" => Err(failed("empty value".to_owned())),
        text => Ok(text.to_owned()),
    }
}

fn request(path: &str, session: Session<'_>) -> Result<Request, Error> {
    let host = session.environment.get_or("GCE_METADATA_HOST", HOST);
    let url = parse_url(&format!("http://{host}/computeMetadata/v1/{path}"))?;
    let request = Request::local(Method::GET, url);
    Ok(request.header(HeaderName::from_static("metadata-flavor"), "Google"))
}
