//! The ways to a service that a Provider's Secrets name: proxies and certificates. What is wrong is told, and a Secret that is
//! put right is used without a word to the Provider.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use reqwest::Url;
use serde_json::{Value, json};
use testkit::forward_proxy::{ForwardProxy, Kind};
use testkit::tls_front::TlsFront;
use tokio::time::sleep;

use crate::alerts::{Alerts, NOTIFICATION};
use crate::world::run;

impl Alerts<'_> {
    async fn secret(&self, name: &str, data: Value) -> Result<()> {
        let metadata = json!({"name": name, "namespace": self.test.namespace});
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": data});
        self.test.apply(&secret).await
    }

    /// Applies a generic Provider with this address and this reference to the Secret of its name, and an Alert for it.
    async fn provider_with(&self, name: &str, address: &str, reference: &str) -> Result<()> {
        let metadata = json!({"name": name, "namespace": self.test.namespace});
        let mut spec = json!({"type": "generic", "address": address, "timeout": "5s"});
        spec[reference] = json!({"name": name});
        let provider =
            json!({"apiVersion": NOTIFICATION, "kind": "Provider", "metadata": metadata, "spec": spec});
        self.test.apply(&provider).await?;
        self.alert(name, json!({})).await
    }

    /// Posts events until the Alert tells that one could not be sent, and returns what it tells.
    async fn failure(&self, name: &str) -> Result<String> {
        let post = async {
            for number in 0.. {
                let event = self.event("Kustomization", "web", "error", &format!("{name} {number}"));
                self.post(&event).await?;
                sleep(Duration::from_millis(250)).await;
            }
            Result::<()>::Ok(())
        };
        tokio::select! {
            told = self.told_on(name, "NotificationDispatchFailed") => {
                told?.message.context("the Event has no message")
            }
            posted = post => {
                let () = posted?;
                bail!("the posts ended")
            }
        }
    }
}

#[test]
fn messages_go_through_the_proxy_that_a_secret_names() {
    run("alert-proxy", |test| async move {
        let alerts = Alerts::start(&test, &[]).await?;
        for (name, kind) in [("http-proxy", Kind::Http), ("socks-proxy", Kind::Socks5)] {
            let proxy = ForwardProxy::start(kind, Some(("robot", "pass word"))).await?;
            let secret =
                |password: &str| json!({"address": proxy.url(), "username": "robot", "password": password});
            alerts.secret(name, secret("wr0ng word")).await?;
            alerts
                .provider_with(name, &alerts.sink.url(name), "proxySecretRef")
                .await?;
            let told = alerts.failure(name).await?;
            ensure!(!told.contains("wr0ng"), "{told}");
            ensure!(proxy.passed() == 0, "somebody was let through");

            alerts.secret(name, secret("pass word")).await?;
            alerts.until_known(&[name]).await?;
            ensure!(proxy.passed() > 0, "messages went around the proxy");
        }
        Ok(())
    });
}

#[test]
fn a_service_is_trusted_and_shown_a_certificate_as_a_secret_says() {
    run("alert-tls", |test| async move {
        let alerts = Alerts::start(&test, &[]).await?;
        let behind = Url::parse(&alerts.sink.url(""))?
            .port()
            .context("the service has no port")?;
        let front = TlsFront::start(SocketAddr::from((Ipv4Addr::LOCALHOST, behind)), true).await?;
        let address = format!("https://{}/tls", front.address());
        alerts.provider_with("tls", &address, "certSecretRef").await?;
        let told = alerts.failure("tls").await?;
        ensure!(told.contains("secret"), "{told}");

        // An authority of its own, and no certificate to show: the service hangs up.
        alerts.secret("tls", json!({"ca.crt": front.authority()})).await?;
        sleep(Duration::from_secs(2)).await;
        ensure!(
            alerts.sink.said_to("tls").is_empty(),
            "it was let in without a certificate"
        );

        let client = front.client();
        alerts
            .secret(
                "tls",
                json!({"ca.crt": front.authority(), "tls.crt": client.certificate, "tls.key": client.key}),
            )
            .await?;
        alerts.until_known(&["tls"]).await?;
        let first = alerts.sink.messages("tls");
        ensure!(
            first.first().is_some_and(|message| message.starts_with("tls ")),
            "what waited was not told first: {first:?}"
        );
        Ok(())
    });
}
