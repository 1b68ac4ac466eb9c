//! Google Cloud KMS: `cryptoKeys.decrypt`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cloud_identity::gcp::{self, AccountKey};
use cloud_identity::{Future, Identity, access_token};
use error_chain::chain;
use http::Method;
use serde::Deserialize;
use url::Url;
use zeroize::Zeroizing;

use super::{Access, Hidden, ask, bearer, decoded, failed, json_request};
use crate::key::{EncryptedKey, KeyError, KeyService, MasterKey};

const FAILED: &str = "failed to decrypt sops data key with GCP KMS key";
const ENDPOINT: &str = "https://cloudkms.googleapis.com/";
/// Scopes that Google's client asks for.
const SCOPES: &str =
    "https://www.googleapis.com/auth/cloud-platform https://www.googleapis.com/auth/cloudkms";

/// Credentials for Google.
pub enum Credentials {
    /// A service account of Google, with its key.
    Key(AccountKey),
    /// The controller or a ServiceAccount.
    Identity(Identity),
}

/// Google Cloud KMS.
pub struct GcpKms {
    /// How it is reached.
    pub access: Access,
    /// Credentials.
    pub credentials: Credentials,
    /// Another server than Google's, for tests and private endpoints.
    pub endpoint: Option<Url>,
}

#[derive(Deserialize)]
struct Decrypted {
    plaintext: Hidden,
}

impl KeyService for GcpKms {
    fn handles(&self, master: &MasterKey) -> bool {
        matches!(master, MasterKey::GcpKms { .. })
    }

    fn decrypt<'a>(&'a self, key: &'a EncryptedKey) -> Future<'a, Result<Zeroizing<Vec<u8>>, KeyError>> {
        Box::pin(async move {
            let MasterKey::GcpKms { resource_id } = &key.master else {
                return Err(KeyError("not a key of GCP KMS".to_owned()));
            };
            self.ask(resource_id, &key.encrypted)
                .await
                .map_err(failed(FAILED))
        })
    }
}

impl GcpKms {
    async fn ask(&self, resource: &str, ciphertext: &str) -> Result<Zeroizing<Vec<u8>>, String> {
        if STANDARD.decode(ciphertext).is_err() {
            return Err("illegal base64 data in the encrypted data key".to_owned());
        }
        if !is_key(resource) {
            return Err(format!("no valid resource ID found in {resource:?}"));
        }
        let endpoint = match &self.endpoint {
            Some(endpoint) => endpoint.clone(),
            None => Url::parse(ENDPOINT).expect("it is a constant"),
        };
        let url = endpoint
            .join(&format!("v1/{resource}:decrypt"))
            .map_err(|error| error.to_string())?;
        let body = serde_json::json!({"ciphertext": ciphertext});
        let mut request = json_request(Method::POST, url, &body, "application/json");
        let session = self.access.session();
        let token = match &self.credentials {
            Credentials::Key(key) => key.access_token(SCOPES, session).await,
            Credentials::Identity(identity) => access_token(&gcp::Access, identity, session).await,
        };
        let token = token.map_err(|error| chain(&error))?;
        let (name, value) = bearer(token.as_bearer().ok_or("the token is none of Google")?)?;
        request.headers.insert(name, value);
        let answer: Decrypted = ask(&self.access, request).await?;
        decoded(&answer.plaintext)
    }
}

/// `projects/…/locations/…/keyRings/…/cryptoKeys/…`, of characters that mean nothing in a URL.
fn is_key(resource: &str) -> bool {
    let parts: Vec<&str> = resource.split('/').collect();
    let [projects, project, locations, location, rings, ring, keys, key] = parts[..] else {
        return false;
    };
    let is_part = |part: &str| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
        !part.is_empty() && part != "." && part != ".." && part.chars().all(is_plain)
    };
    [projects, locations, rings, keys] == ["projects", "locations", "keyRings", "cryptoKeys"]
        && [project, location, ring, key].iter().all(|part| is_part(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_all_parts_and_none_that_leads_elsewhere() {
        assert!(is_key("projects/p/locations/global/keyRings/r/cryptoKeys/k"));
        assert!(is_key(
            "projects/example.com:p/locations/global/keyRings/r/cryptoKeys/k"
        ));
        for resource in [
            "projects/p/locations/global/keyRings/r/cryptoKeys/k/cryptoKeyVersions/1",
            "projects/p/locations/global/keyRings/r/cryptoKeys/..",
            "projects/p/locations/global/keyRings/r/cryptoKeys/k?x",
            "projects//locations/global/keyRings/r/cryptoKeys/k",
            "",
        ] {
            assert!(!is_key(resource), "{resource}");
        }
    }
}
