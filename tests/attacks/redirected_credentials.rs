//! A registry sends its callers elsewhere, and there someone asks for their credentials.
//!
//! They hold: the host that the victim's registry redirects to (a CDN, or a bucket that was let go). It challenges, with Basic
//! and with a token server of its own. The victim's credentials are for the registry only.

use std::sync::PoisonError;

use anyhow::ensure;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use testkit::objects;

use crate::scene::{SOURCE, play, serve};

const LOGIN: &str = "robot:password-of-the-victim";

#[test]
fn credentials_of_a_registry_stay_with_it() {
    play("redirected", |scene| async move {
        let login = STANDARD.encode(LOGIN);
        for (name, challenge) in [
            ("basic", "Basic realm=\"cdn\""),
            ("bearer", "Bearer realm=\"TOKENS\",service=\"cdn\""),
        ] {
            let challenge = challenge.to_owned();
            let (attacker, heard) = serve(move |_, address| {
                let challenge = challenge.replace("TOKENS", &format!("http://{address}/token"));
                format!("401 Unauthorized\r\nwww-authenticate: {challenge}")
            })
            .await?;
            let (registry, _) = serve(move |request, _| {
                let path = request.split(' ').nth(1).unwrap_or("/");
                format!("307 Temporary Redirect\r\nlocation: http://{attacker}{path}")
            })
            .await?;
            let config = json!({"auths": {registry.to_string(): {"auth": login}}});
            let secret = json!({"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/dockerconfigjson",
                "metadata": {"name": name, "namespace": scene.victim}, "stringData": {".dockerconfigjson": config.to_string()}});
            scene.apply(&secret).await?;
            let source = json!({"apiVersion": SOURCE, "kind": "OCIRepository",
                "metadata": {"name": name, "namespace": scene.victim},
                "spec": {"interval": "1h", "url": format!("oci://{registry}/app"), "ref": {"tag": "latest"},
                    "insecure": true, "secretRef": {"name": name}}});
            scene.apply(&source).await?;
            let sources = scene.api(SOURCE, "OCIRepository", &scene.victim);
            let is_refused = |object: &kube::api::DynamicObject| {
                objects::condition(object, "Ready").is_some_and(|(status, ..)| status == "False")
            };
            testkit::wait_for(&sources, name, is_refused, crate::scene::PATIENCE).await?;
            let heard = heard.lock().unwrap_or_else(PoisonError::into_inner).clone();
            ensure!(
                heard.contains("/v2/"),
                "{name}: nobody was sent to the other host: {heard}"
            );
            ensure!(
                !heard.contains(&login) && !heard.to_lowercase().contains("authorization:"),
                "{name}: the other host was told: {heard}"
            );
        }
        Ok(())
    });
}
