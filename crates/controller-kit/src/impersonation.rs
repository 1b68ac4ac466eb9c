//! Doing something as a service account of someone else.
//!
//! The API server decides what the account may do; this only says who asks. All accounts share the connections and the
//! limits of one client, so that a thousand tenants cost no thousand connections.

use std::fmt;

use http::header::{HeaderName, HeaderValue, InvalidHeaderValue};
use http::{Request, Response};
use kube::Client;
use kube::client::Body;

const USER: HeaderName = HeaderName::from_static("impersonate-user");

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
    let user = HeaderValue::from_str(&account.to_string())?;
    let (namespace, client) = (client.default_namespace().to_owned(), client.clone());
    let service = tower::service_fn(move |mut request: Request<Body>| {
        request.headers_mut().insert(USER, user.clone());
        let client = client.clone();
        async move { client.send(request).await as Result<Response<Body>, kube::Error> }
    });
    Ok(Client::new(service, namespace))
}
