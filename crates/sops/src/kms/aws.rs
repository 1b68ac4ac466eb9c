//! AWS KMS: `Decrypt`.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cloud_identity::aws::{self, Keys, Signer};
use cloud_identity::{Future, Identity, access_token};
use error_chain::chain;
use http::{HeaderName, HeaderValue, Method};
use serde::Deserialize;
use zeroize::Zeroizing;

use super::{Access, Hidden, ask, decoded, failed, json_request};
use crate::key::{EncryptedKey, KeyError, KeyService, MasterKey};

const FAILED: &str = "failed to decrypt sops data key with AWS KMS";

/// Credentials for Amazon.
#[derive(Clone, Debug)]
pub enum Credentials {
    /// Someone with these keys.
    Static(Keys),
    /// The controller or a ServiceAccount.
    Identity(Identity),
}

/// AWS KMS.
pub struct AwsKms {
    /// How it is reached.
    pub access: Access,
    /// Credentials.
    pub credentials: Credentials,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Decrypted {
    plaintext: Hidden,
}

struct Question<'a> {
    arn: &'a str,
    role: Option<&'a str>,
    context: &'a BTreeMap<String, String>,
    ciphertext: &'a str,
}

impl KeyService for AwsKms {
    fn handles(&self, master: &MasterKey) -> bool {
        matches!(master, MasterKey::AwsKms { .. })
    }

    fn decrypt<'a>(&'a self, key: &'a EncryptedKey) -> Future<'a, Result<Zeroizing<Vec<u8>>, KeyError>> {
        Box::pin(async move {
            let MasterKey::AwsKms {
                arn, role, context, ..
            } = &key.master
            else {
                return Err(KeyError("not a key of AWS KMS".to_owned()));
            };
            let question = Question {
                arn,
                role: role.as_deref(),
                context,
                ciphertext: &key.encrypted,
            };
            self.ask(&question).await.map_err(failed(FAILED))
        })
    }
}

impl AwsKms {
    async fn ask(&self, question: &Question<'_>) -> Result<Zeroizing<Vec<u8>>, String> {
        if STANDARD.decode(question.ciphertext).is_err() {
            return Err("error base64-decoding encrypted data key".to_owned());
        }
        let region =
            region(question.arn).ok_or_else(|| format!("no valid ARN found in '{}'", question.arn))?;
        let url = aws::service_url(&self.access.environment, "KMS", "kms", region).map_err(|e| chain(&e))?;
        let keys = self.keys(region, question.role).await?;
        let body = serde_json::json!({
            "KeyId": question.arn,
            "CiphertextBlob": question.ciphertext,
            "EncryptionContext": question.context,
        });
        let mut request = json_request(Method::POST, url, &body, "application/x-amz-json-1.1");
        request.headers.insert(
            HeaderName::from_static("x-amz-target"),
            HeaderValue::from_static("TrentService.Decrypt"),
        );
        let signer = Signer {
            keys,
            region: region.to_owned(),
            service: "kms",
        };
        let now = self.access.environment.now();
        let signed = signer.sign(
            &request.method,
            &request.url,
            &mut request.headers,
            &request.body,
            now,
        );
        signed.map_err(|_| "the keys have characters that no header can carry".to_owned())?;
        let answer: Decrypted = ask(&self.access, request).await?;
        decoded(&answer.plaintext)
    }

    async fn keys(&self, region: &str, role: Option<&str>) -> Result<Keys, String> {
        let keys = match &self.credentials {
            Credentials::Static(keys) => keys.clone(),
            Credentials::Identity(identity) => {
                let of_region = aws::Access {
                    region: Some(region.to_owned()),
                    sts_endpoint: None,
                };
                let token = access_token(&of_region, identity, self.access.session()).await;
                let token = token.map_err(|error| chain(&error))?;
                token.as_keys().cloned().ok_or("the token is none of AWS")?
            }
        };
        let Some(role) = role else { return Ok(keys) };
        let assumed = aws::assume_role(keys, region, role, "sops@windlass", self.access.session()).await;
        let assumed =
            assumed.map_err(|error| format!("failed to assume role '{role}': {}", chain(&error)))?;
        let keys = assumed.as_keys().cloned();
        keys.ok_or_else(|| "the token is none of AWS".to_owned())
    }
}

/// The region in the ARN of a key or an alias.
fn region(arn: &str) -> Option<&str> {
    let mut parts = arn.splitn(6, ':');
    let (prefix, partition, service) = (parts.next()?, parts.next()?, parts.next()?);
    let (region, account, key) = (parts.next()?, parts.next()?, parts.next()?);
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let is_aws = partition.strip_prefix("aws")?.chars().all(is_word);
    let is_account = !account.is_empty() && account.bytes().all(|byte| byte.is_ascii_digit());
    let is_key = key.strip_prefix("key/").or(key.strip_prefix("alias/"));
    let fits = prefix == "arn"
        && service == "kms"
        && is_aws
        && is_account
        && is_key.is_some_and(|key| !key.is_empty());
    (fits && !region.is_empty()).then_some(region)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_region_is_in_the_arn() {
        for (arn, found) in [
            (
                "arn:aws:kms:us-west-2:107501996527:key/612d5f0p",
                Some("us-west-2"),
            ),
            (
                "arn:aws-cn:kms:cn-north-1:107501996527:alias/a/b:c",
                Some("cn-north-1"),
            ),
            ("arn:aws:kms:eu-west-1:x:key/a", None),
            ("arn:aws:s3:eu-west-1:1:key/a", None),
            ("arn:aws:kms:eu-west-1:1:key/", None),
            ("", None),
        ] {
            assert_eq!(region(arn), found, "{arn}");
        }
    }
}
