//! Doing something as someone else: a service account, or a person.
//!
//! The API server decides what the account may do; this only says who asks. All accounts share the connections and the
//! limits of one client, so that a thousand tenants cost no thousand connections.

use std::fmt;

use http::header::{HeaderName, HeaderValue, InvalidHeaderValue};
use http::{Request, Response};
use kube::Client;
use kube::client::Body;

const USER: HeaderName = HeaderName::from_static("impersonate-user");
const GROUP: HeaderName = HeaderName::from_static("impersonate-group");

/// A service account. The groups that it is in are added by the API server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Account {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl fmt::Display for Account {
    /// The name of the user, as in RBAC and audit logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "system:serviceaccount:{}:{}", self.namespace, self.name)
    }
}

/// Makes a client that does everything as `account`, over the connections of `client`, which needs the right to
/// impersonate it. Fails for names that no object of Kubernetes can have.
pub fn as_account(client: &Client, account: &Account) -> Result<Client, InvalidHeaderValue> {
    as_user(client, &account.to_string(), &[])
}

/// As [`as_account`], as a user in some groups. Without groups, the API server adds those of a service account; it always adds
/// `system:authenticated`.
pub fn as_user(client: &Client, user: &str, groups: &[String]) -> Result<Client, InvalidHeaderValue> {
    let user = HeaderValue::from_str(user)?;
    let groups = groups.iter().map(|group| HeaderValue::from_str(group));
    let groups: Vec<HeaderValue> = groups.collect::<Result<_, _>>()?;
    let (namespace, client) = (client.default_namespace().to_owned(), client.clone());
    let service = tower::service_fn(move |mut request: Request<Body>| {
        let headers = request.headers_mut();
        headers.insert(USER, user.clone());
        for group in &groups {
            headers.append(GROUP, group.clone());
        }
        let client = client.clone();
        async move { client.send(request).await as Result<Response<Body>, kube::Error> }
    });
    Ok(Client::new(service, namespace))
}
