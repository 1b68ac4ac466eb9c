//! Tokens of clouds and of GitHub Apps: asked for through the target's proxy, kept by the owner of the edge.

use cloud_identity::github::App;
use cloud_identity::{Answer, Future, Identity, Reach, SendError, Session, access_token, azure, gcp};
use http::Method;

use crate::edge::Http;
use crate::error::{Error, Retry};
use crate::request::Request;
use crate::target::Target;

/// Whoever chose the way could take the credentials there.
const OWN_IDENTITY: &str = "the controller's own identity at a cloud is not used together with a proxy or certificates of the Provider while \
     references between namespaces are locked (--no-cross-namespace-refs): leave them out, or name a ServiceAccount in \
     spec.serviceAccountName";

/// A token of an installation of the App.
pub(crate) async fn github_app(http: Http<'_>, app: &App) -> Result<String, Error> {
    let exchange = Exchange(http);
    let token = app
        .login(exchange.session())
        .await
        .map_err(|error| failed(&error))?;
    let login = token.as_login().map(|(_, token)| token.to_owned());
    login.ok_or_else(|| Error::passing("the GitHub App gave no token"))
}

/// The short name of the App.
pub(crate) async fn github_slug(http: Http<'_>, app: &App) -> Result<String, Error> {
    let exchange = Exchange(http);
    let slug = app.slug(exchange.session()).await;
    slug.map_err(|error| failed(&error).within("failed to get app information"))
}

/// A token of Microsoft for this scope, as who the Provider is there.
pub(crate) async fn azure(http: Http<'_>, scope: &str) -> Result<String, Error> {
    let access = azure::Access {
        scope: scope.to_owned(),
    };
    cloud(http, &access).await
}

/// A token of Google: that of the key, or as who the Provider is there.
pub(crate) async fn google(
    http: Http<'_>,
    key: Option<&gcp::AccountKey>,
    scope: &str,
) -> Result<String, Error> {
    let Some(key) = key else {
        return cloud(http, &gcp::Access).await;
    };
    let target = without_certificates(http.target);
    let exchange = Exchange(Http {
        target: &target,
        ..http
    });
    let token = key.access_token(scope, exchange.session()).await;
    bearer(token.map_err(|error| failed(&error))?)
}

async fn cloud(http: Http<'_>, provider: &impl cloud_identity::Provider) -> Result<String, Error> {
    let target = http.target;
    let who = http
        .edge
        .identities
        .identity_of(&target.provider.namespace, target.service_account.as_deref());
    let who = who.await.map_err(Error::passing)?;
    let chose_the_way = target.proxy.is_some() || target.tls.is_some();
    if target.locked && chose_the_way && matches!(who, Identity::Controller) {
        return Err(Error::invalid(OWN_IDENTITY));
    }
    let target = without_certificates(target);
    let exchange = Exchange(Http {
        target: &target,
        ..http
    });
    let token = access_token(provider, &who, exchange.session()).await;
    bearer(token.map_err(|error| failed(&error))?)
}

fn bearer(token: cloud_identity::Token) -> Result<String, Error> {
    let bearer = token.as_bearer().map(str::to_owned);
    bearer.ok_or_else(|| Error::passing("the identity service gave no bearer token"))
}

/// Certificates of a Provider are for its service, not for a cloud.
fn without_certificates(target: &Target) -> Target {
    Target {
        tls: None,
        ..target.clone()
    }
}

/// The text with its causes. What a configuration or a service refuses is refused again.
fn failed(error: &cloud_identity::Error) -> Error {
    let mut text = error.to_string();
    let mut retry = verdict(error);
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        if let Some(error) = error.downcast_ref::<cloud_identity::Error>() {
            retry = verdict(error);
        }
        cause = error.source();
    }
    Error::new(text, retry)
}

fn verdict(error: &cloud_identity::Error) -> Retry {
    match error {
        cloud_identity::Error::Configuration(_) => Retry::Never,
        cloud_identity::Error::Refused { status, .. }
            if status.is_client_error() && status.as_u16() != 429 =>
        {
            Retry::Never
        }
        _ => Retry::Backoff,
    }
}

/// Asks token services as the target's own service is asked.
struct Exchange<'a>(Http<'a>);

impl Exchange<'_> {
    fn session(&self) -> Session<'_> {
        Session {
            http: self,
            ..self.0.edge.identities.session()
        }
    }
}

impl cloud_identity::Http for Exchange<'_> {
    fn send(&self, request: cloud_identity::Request) -> Future<'_, Result<Answer, SendError>> {
        // Metadata servers are beside this machine: never through a proxy, and soon or not at all.
        if request.reach == Reach::Local {
            return self.0.edge.identities.session().http.send(request);
        }
        Box::pin(async move {
            let mut asked = Request::new(Method::GET, request.url, "", request.body);
            asked.method = request.method;
            asked.headers = request.headers;
            let answer = self.0.exchange(asked).await;
            let answer = answer.map_err(|error| SendError(error.to_string()))?;
            Ok(Answer {
                status: answer.status,
                headers: answer.headers,
                body: answer.body,
            })
        })
    }
}
