//! Pushes an artifact with the OCI client that the controllers pull with: the same bounds and the same sign-in.

use std::time::Duration;

use bytes::Bytes;
use error_chain::chain;
use oci_client::credentials::Credentials;
use oci_client::name::Name;
use oci_client::registry::{Error, Memory, Repository};
use tokio::time::Instant;

use super::image::{Image, MANIFEST};
use crate::progress::Progress;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest silence: a registry may take its time to store a large blob.
const READ_TIMEOUT: Duration = Duration::from_secs(120);
/// Longest push.
const PUSH_TIMEOUT: Duration = Duration::from_secs(3600);

/// Describes a repository that is written to.
pub(crate) fn repository(
    name: Name,
    credentials: Option<Credentials>,
    insecure: bool,
) -> Result<Repository, String> {
    // If another one is installed, it is the same: there is one TLS provider in the tree.
    _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let client = reqwest::Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .read_timeout(READ_TIMEOUT)
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(concat!("windlass/", env!("CARGO_PKG_VERSION")));
    Ok(Repository {
        name,
        insecure,
        credentials,
        client: client.build().map_err(|error| chain(&error))?.into(),
        memory: Memory::default(),
        deadline: Instant::now() + PUSH_TIMEOUT,
    })
}

/// Pushes the blobs that the repository does not have, and the manifest last: it is valid only with all that it names.
pub(super) async fn push(
    repository: &Repository,
    image: Image,
    tag: &str,
    progress: &Progress,
) -> Result<(), String> {
    for (what, blob) in [("the content", image.layer), ("the config", image.config)] {
        progress.show(&format!("pushing {what}, {} bytes", blob.len()));
        let pushed = repository.push_blob(&Bytes::from(blob)).await;
        pushed.map_err(|error| explained(&error))?;
    }
    let manifest = Bytes::from(image.manifest);
    let pushed = repository.push_manifest(tag, MANIFEST, &manifest).await;
    pushed.map_err(|error| explained(&error))
}

/// The error with its causes, and what helps where credentials are the matter.
pub(crate) fn explained(error: &Error) -> String {
    let is_forbidden = error.status() == Some(reqwest::StatusCode::FORBIDDEN);
    let hint = if error.is_unauthorized() || is_forbidden {
        "; pushing needs an account that may write there: use --creds, or `docker login`"
    } else {
        ""
    };
    format!("{}{hint}", chain(error))
}

#[cfg(test)]
mod tests {
    use artifact::Digest;

    use super::*;
    use crate::stand_in;

    /// A registry that lets everyone look, and whose tokens are good for so many requests.
    async fn pushed(uses: usize, credentials: Option<Credentials>) -> (Result<(), String>, Vec<String>) {
        let (used, tokens) = (std::cell::Cell::new(0), std::cell::Cell::new(0));
        let (address, asked) = stand_in::serve(move |request| {
            let said = |status, headers: &str| (status, headers.to_owned(), String::new());
            let what = request.what.as_str();
            if what.starts_with("GET /token") {
                tokens.set(tokens.get() + 1);
                used.set(0);
                let body = format!("{{\"token\": \"t{}\"}}", tokens.get());
                return (200, String::new(), body);
            }
            used.set(used.get() + 1);
            let may = request.authorization == format!("Bearer t{}", tokens.get()) && used.get() <= uses;
            match what {
                "GET /v2/" => said(200, ""),
                _ if what.starts_with("HEAD ") => said(404, ""),
                _ if !may => {
                    let host = &request.host;
                    let asks =
                        format!("WWW-Authenticate: Bearer realm=\"http://{host}/token\",service=\"s\"\n");
                    said(401, &asks)
                }
                _ if what.starts_with("POST ") => said(202, "Location: /v2/app/blobs/uploads/1\n"),
                _ => said(201, ""),
            }
        });
        let name = Name::parse(&format!("oci://{address}/app")).unwrap();
        let repository = repository(name, credentials, true).unwrap();
        let outcome = push(&repository, image(), "v1", &Progress::new(true)).await;
        let asked = asked.lock().unwrap();
        let asked = asked.iter().map(|request| request.what.clone()).collect();
        (outcome, asked)
    }

    fn pusher() -> Option<Credentials> {
        Some(Credentials::Basic("pusher".to_owned(), "let-me-in".to_owned()))
    }

    #[tokio::test]
    async fn who_may_look_without_an_account_signs_in_when_writing() {
        let (outcome, asked) = pushed(100, pusher()).await;
        assert_eq!(outcome, Ok(()));
        let tokens = asked.iter().filter(|what| what.starts_with("GET /token?"));
        assert_eq!(tokens.count(), 1, "{asked:?}");
        assert!(asked.last().unwrap().starts_with("PUT /v2/app/manifests/v1"));
    }

    #[tokio::test]
    async fn a_token_that_ends_on_the_way_is_replaced() {
        let (outcome, asked) = pushed(2, pusher()).await;
        assert_eq!(outcome, Ok(()), "{asked:?}");
        // And one that is never good enough is not asked for over and over.
        let (outcome, asked) = pushed(0, pusher()).await;
        let refused = outcome.unwrap_err();
        assert!(
            refused.contains("401") && refused.ends_with("or `docker login`"),
            "{refused}"
        );
        assert_eq!(asked.len(), 4, "{asked:?}");
    }

    fn image() -> Image {
        Image {
            layer: b"layer".to_vec(),
            config: b"config".to_vec(),
            manifest: b"manifest".to_vec(),
            digest: Digest::from_content(b"manifest").to_string(),
        }
    }

    #[tokio::test]
    async fn credentials_do_not_follow_an_upload_to_another_server() {
        let (elsewhere, uploads) = stand_in::serve(|_| (201, String::new(), String::new()));
        let (address, asked) = stand_in::serve(move |request| {
            let said = |status, headers: &str| (status, headers.to_owned(), String::new());
            match request.what.as_str() {
                what if what.starts_with("HEAD ") => said(404, ""),
                _ if request.authorization.is_empty() => said(401, "WWW-Authenticate: Basic realm=\"r\"\n"),
                what if what.starts_with("POST ") => {
                    said(202, &format!("Location: http://{elsewhere}/put?a=b\n"))
                }
                _ => said(201, ""),
            }
        });
        let name = Name::parse(&format!("oci://{address}/app")).unwrap();
        let repository = repository(name, pusher(), true).unwrap();
        let outcome = push(&repository, image(), "v1", &Progress::new(true)).await;
        assert_eq!(outcome, Ok(()));
        let uploads = uploads.lock().unwrap();
        assert_eq!(uploads.len(), 2);
        for upload in uploads.iter() {
            assert!(
                upload.what.starts_with("PUT /put?a=b&digest=sha256%3A"),
                "{}",
                upload.what
            );
            assert_eq!(
                upload.authorization, "",
                "the upload's server gets no credentials"
            );
        }
        let asked = asked.lock().unwrap();
        assert!(
            asked
                .iter()
                .any(|request| request.authorization.starts_with("Basic "))
        );
    }

    #[tokio::test]
    async fn a_registry_that_stores_another_manifest_is_told_from_one_that_does_not() {
        let other = "sha256:0000000000000000000000000000000000000000000000000000000000000000";
        let (address, _) = stand_in::serve(move |request| {
            let said = |status, headers: &str| (status, headers.to_owned(), String::new());
            match request.what.as_str() {
                what if what.starts_with("PUT /v2/app/manifests/") => {
                    said(201, &format!("Docker-Content-Digest: {other}\n"))
                }
                _ => said(200, ""),
            }
        });
        let name = Name::parse(&format!("oci://{address}/app")).unwrap();
        let repository = repository(name, None, true).unwrap();
        let outcome = push(&repository, image(), "v1", &Progress::new(true)).await;
        let told = outcome.unwrap_err();
        assert!(told.contains("has stored sha256:0000"), "{told}");
    }
}
