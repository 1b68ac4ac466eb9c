//! Trust and token of the client of the artifact service, from flags and the cluster.
//!
//! Files are read by the client itself. Without them the authority comes from a ConfigMap and the token from TokenRequest,
//! and both are kept newest by work that goes on as long as the process.

use artifact::client::{ClientOptions, Supply};
use controller_kit::Context as Kit;
use controller_kit::credentials;
use controller_kit::flags::ArtifactClientFlags;
use futures::future::BoxFuture;

/// Key of the certificates in the ConfigMap.
const CERTIFICATES_KEY: &str = "ca.crt";

/// The options with authority and token, and the work that keeps them newest. It never ends.
pub fn supplied(
    options: ClientOptions,
    flags: &ArtifactClientFlags,
    kit: &Kit,
) -> (ClientOptions, BoxFuture<'static, ()>) {
    let mut work: Vec<BoxFuture<'static, ()>> = vec![Box::pin(futures::future::pending())];
    // A token on a plain connection would be anybody's.
    if !flags.is_encrypted() {
        return (options, Box::pin(futures::future::pending()));
    }
    let authority = match &flags.artifact_ca_file {
        Some(file) => Supply::File(file.clone()),
        None => {
            let (client, name) = (kit.client.clone(), &flags.artifact_ca_configmap);
            let (newest, keep) = credentials::config_map_key(client, &kit.namespace, name, CERTIFICATES_KEY);
            work.push(Box::pin(keep));
            Supply::Watched(newest)
        }
    };
    let token = match (&flags.artifact_token_file, &flags.artifact_service_account) {
        (Some(file), _) => Supply::File(file.clone()),
        (None, Some(name)) => {
            let (client, audience) = (kit.client.clone(), &flags.artifact_token_audience);
            let (newest, keep) = credentials::service_account_token(client, &kit.namespace, name, audience);
            work.push(Box::pin(keep));
            Supply::Watched(newest)
        }
        (None, None) => Supply::Nothing,
    };
    let options = ClientOptions {
        authority,
        token,
        ..options
    };
    (
        options,
        Box::pin(async move { drop(futures::future::join_all(work).await) }),
    )
}
