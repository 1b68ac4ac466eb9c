//! The token service: temporary keys for someone else's token, or for a name and password in LDAP (MinIO's addition).

use url::Url;

use super::{Signer, service_url, token};
use crate::exchange::{Error, Http, Request, ask_xml};
use crate::provider::Session;
use crate::token::{Keys, Token};

const VERSION: (&str, &str) = ("Version", "2011-06-15");

/// Keys of a role, for a token whose issuer the role trusts.
pub(super) async fn assume_role_with_web_identity(
    http: &dyn Http,
    endpoint: Url,
    role: &str,
    session_name: &str,
    assertion: &str,
) -> Result<Token, Error> {
    let fields = [
        ("Action", "AssumeRoleWithWebIdentity"),
        VERSION,
        ("RoleArn", role),
        ("RoleSessionName", session_name),
        ("WebIdentityToken", assertion),
    ];
    ask(http, Request::form(endpoint, &fields)).await
}

/// Keys of a role, for someone with keys whom the role trusts. The token service is that of the region.
pub async fn assume_role(
    keys: Keys,
    region: &str,
    role: &str,
    session_name: &str,
    session: Session<'_>,
) -> Result<Token, Error> {
    let endpoint = service_url(session.environment, "STS", "sts", region)?;
    let fields = [
        ("Action", "AssumeRole"),
        VERSION,
        ("RoleArn", role),
        ("RoleSessionName", session_name),
    ];
    let mut request = Request::form(endpoint, &fields);
    let signer = Signer {
        keys,
        region: region.to_owned(),
        service: "sts",
    };
    let now = session.environment.now();
    let signed = signer.sign(
        &request.method,
        &request.url,
        &mut request.headers,
        &request.body,
        now,
    );
    signed.map_err(|_| Error::configuration("the keys have characters that no header can carry"))?;
    ask(session.http, request).await
}

/// Keys of a MinIO server for a user in LDAP.
pub async fn assume_role_with_ldap_identity(
    http: &dyn Http,
    endpoint: Url,
    username: &str,
    password: &str,
) -> Result<Token, Error> {
    let fields = [
        ("Action", "AssumeRoleWithLDAPIdentity"),
        VERSION,
        ("LDAPUsername", username),
        ("LDAPPassword", password),
    ];
    ask(http, Request::form(endpoint, &fields)).await
}

async fn ask(http: &dyn Http, request: Request) -> Result<Token, Error> {
    let elements = ["AccessKeyId", "SecretAccessKey", "SessionToken", "Expiration"];
    let [access_key_id, secret_access_key, session_token, expiration] =
        ask_xml(http, request, elements).await?;
    let keys = Keys {
        access_key_id,
        secret_access_key,
        session_token: Some(session_token),
    };
    Ok(token(keys, Some(&expiration)))
}
