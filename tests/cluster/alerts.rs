//! Alerts: what is told to whom, by every way in, and through restarts of the controller and of the services.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use futures::StreamExt as _;
use k8s_openapi::api::core::v1;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use kube::runtime::watcher;
use reqwest::StatusCode;
use serde_json::{Value, json};
use testkit::controller::ControllerOptions;
use testkit::message_sink::Call;
use testkit::{Controller, MessageSink, objects};
use tokio::time::timeout;

use crate::world::{PATIENCE, Test, config_map, run};

pub const NOTIFICATION: &str = "notification.toolkit.fluxcd.io/v1beta3";

/// A controller of this test's namespace, and a service to be told.
pub struct Alerts<'a> {
    pub test: &'a Test,
    pub controller: Controller,
    pub sink: MessageSink,
}

impl<'a> Alerts<'a> {
    pub async fn start(test: &'a Test, flags: &[&str]) -> Result<Self> {
        let mut own = vec![
            "--watch-all-namespaces=false".to_owned(),
            "--log-level=debug".to_owned(),
        ];
        own.extend(flags.iter().map(|flag| (*flag).to_owned()));
        let options = ControllerOptions {
            flags: own,
            namespace: test.namespace.clone(),
            ..ControllerOptions::default()
        };
        let kubeconfig = test.world.control_plane.kubeconfig_path();
        Ok(Self {
            test,
            controller: Controller::start_notification(kubeconfig, options).await?,
            sink: MessageSink::start().await?,
        })
    }

    /// Applies a Provider of this type that tells the path of its name.
    pub async fn provider(&self, type_: &str, name: &str, secret: Option<Value>) -> Result<()> {
        self.provider_at(name, type_, name, secret).await
    }

    /// The same with another path.
    async fn provider_at(&self, path: &str, type_: &str, name: &str, secret: Option<Value>) -> Result<()> {
        let namespace = &self.test.namespace;
        let metadata = json!({"name": name, "namespace": namespace});
        let mut spec = json!({"type": type_, "address": self.sink.url(path), "timeout": "30s"});
        if let Some(data) = secret {
            let secret =
                json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": data});
            self.test.apply(&secret).await?;
            spec["secretRef"] = json!({"name": name});
        }
        let provider =
            json!({"apiVersion": NOTIFICATION, "kind": "Provider", "metadata": metadata, "spec": spec});
        self.test.apply(&provider).await
    }

    /// Applies an Alert for a Provider of the same name, with more of a spec.
    pub async fn alert(&self, name: &str, spec: Value) -> Result<()> {
        self.annotated_alert(name, spec, json!({})).await
    }

    /// The same with annotations.
    pub async fn annotated_alert(&self, name: &str, spec: Value, annotations: Value) -> Result<()> {
        let metadata = json!({"name": name, "namespace": self.test.namespace, "annotations": annotations});
        let sources = json!([{"kind": "Kustomization", "name": "*"}]);
        let alert = json!({
            "apiVersion": NOTIFICATION, "kind": "Alert", "metadata": metadata,
            "spec": {"providerRef": {"name": name}, "eventSources": sources},
        });
        self.test.apply(&objects::with_spec(alert, spec)).await
    }

    /// A Provider of type generic and an Alert for it, and waits until both are known.
    pub async fn generic(&self, name: &str, spec: Value) -> Result<()> {
        self.provider("generic", name, None).await?;
        self.alert(name, spec).await?;
        self.until_known(&[name]).await
    }

    /// Waits until Alerts are told what is posted: there is nothing in the API that shows that they were read.
    pub async fn until_known(&self, names: &[&str]) -> Result<()> {
        for name in names {
            let known = async {
                for number in 0.. {
                    let text = format!("known? {name} {number}");
                    self.post(&self.event("Kustomization", "probe", "error", &text))
                        .await?;
                    let heard = self
                        .sink
                        .until(name, |call| call.body.windows(6).any(|part| part == b"known?"));
                    if timeout(Duration::from_millis(250), heard).await.is_ok() {
                        break;
                    }
                }
                Result::<()>::Ok(())
            };
            timeout(PATIENCE, known)
                .await
                .with_context(|| format!("{name} is not told anything"))??;
        }
        Ok(())
    }

    /// Messages to a path, but for those of [`Alerts::until_known`].
    pub fn messages(&self, path: &str) -> Vec<String> {
        let mut messages = self.sink.messages(path);
        messages.retain(|message| !message.starts_with("known?"));
        messages
    }

    /// An event as Flux's controllers post it.
    pub fn event(&self, kind: &str, name: &str, severity: &str, message: &str) -> Value {
        json!({
            "involvedObject": {
                "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": kind,
                "namespace": self.test.namespace, "name": name, "uid": "1",
            },
            "severity": severity, "timestamp": "2026-11-21T10:00:00Z",
            "message": message, "reason": "ReconciliationFailed",
            "metadata": {"kustomize.toolkit.fluxcd.io/revision": "main@sha1:1"},
            "reportingController": "kustomize-controller",
        })
    }

    /// Posts it.
    pub async fn post(&self, event: &Value) -> Result<StatusCode> {
        let http = reqwest::Client::builder().no_proxy().timeout(PATIENCE).build()?;
        let body = serde_json::to_vec(event)?;
        let sent = http.post(self.controller.events_url()).body(body).send().await?;
        Ok(sent.status())
    }

    /// Writes it as a Kubernetes Event.
    pub async fn record(&self, name: &str, event: &Value) -> Result<()> {
        let kubernetes = json!({
            "metadata": {"name": name, "namespace": self.test.namespace, "annotations": event["metadata"]},
            "involvedObject": event["involvedObject"],
            "type": if event["severity"] == "error" { "Warning" } else { "Normal" },
            "reason": event["reason"], "message": event["message"], "count": 1,
            "source": {"component": "kustomize-controller"},
            "firstTimestamp": "2026-11-21T10:00:00Z", "lastTimestamp": "2026-11-21T10:00:00Z",
        });
        let events: Api<v1::Event> = Api::namespaced(self.test.client.clone(), &self.test.namespace);
        events
            .create(&PostParams::default(), &serde_json::from_value(kubernetes)?)
            .await?;
        Ok(())
    }

    /// Waits for a Kubernetes Event on an Alert.
    pub async fn told_on(&self, alert: &str, reason: &str) -> Result<v1::Event> {
        let events: Api<v1::Event> = Api::namespaced(self.test.client.clone(), &self.test.namespace);
        let config =
            watcher::Config::default().fields(&format!("involvedObject.name={alert},reason={reason}"));
        let mut stream = watcher(events, config).boxed();
        let found = async {
            while let Some(event) = stream.next().await {
                if let Ok(watcher::Event::InitApply(event) | watcher::Event::Apply(event)) = event {
                    return Some(event);
                }
            }
            None
        };
        timeout(PATIENCE, found)
            .await
            .ok()
            .flatten()
            .with_context(|| format!("there is no Event {reason} on {alert}"))
    }
}

#[test]
fn a_failing_kustomization_is_told_in_each_providers_way() {
    run("alerts", |test| async move {
        let alerts = Alerts::start(&test, &[]).await?;
        let token = Some(json!({"token": "ghp_key"}));
        alerts.provider_at("acme/app", "github", "github", token).await?;
        alerts.provider("slack", "slack", None).await?;
        alerts
            .provider("generic-hmac", "signed", Some(json!({"token": "key"})))
            .await?;
        for name in ["github", "slack", "signed"] {
            alerts
                .alert(
                    name,
                    json!({"eventSeverity": "error", "eventMetadata": {"cluster": "prod"}}),
                )
                .await?;
        }
        alerts.until_known(&["slack", "signed"]).await?;

        let broken = [("deploy/a.yaml", "a: [".to_owned())];
        let repository = test.repository(&broken)?;
        test.git_source(&repository).await?;
        test.apply(&test.kustomization("app", json!({}))).await?;
        let call = alerts
            .sink
            .until("signed", |call| call.json["involvedObject"]["name"] == "app")
            .await?;
        ensure!(
            call.json["severity"] == "error" && call.json["reason"] == "BuildFailed",
            "{}",
            call.json
        );
        ensure!(call.json["metadata"]["cluster"] == "prod", "{}", call.json);
        let revision = call.json["metadata"]["revision"].as_str().unwrap_or_default();
        ensure!(revision.starts_with("main@sha1:"), "{}", call.json);
        ensure!(
            call.headers
                .get("x-signature")
                .is_some_and(|signature| signature.to_str().is_ok_and(|text| text.starts_with("sha256=")))
        );
        let slack = |call: &Call| {
            let text = call.json.to_string();
            text.contains("kustomization/app") && text.contains("danger") && text.contains("prod")
        };
        let commit = repository.resolve("main")?;
        let status = alerts
            .sink
            .until(&format!("api/v3/repos/acme/app/statuses/{commit}"), |_| true)
            .await?;
        let context = status.json["context"].as_str().unwrap_or_default();
        ensure!(
            status.json["state"] == "failure" && context.starts_with("kustomization/app/"),
            "{}",
            status.json
        );
        ensure!(
            status
                .headers
                .get("authorization")
                .is_some_and(|login| login == "Bearer ghp_key")
        );
        alerts.sink.until("slack", slack).await?;
        let told = |path| {
            alerts
                .sink
                .said_to(path)
                .iter()
                .filter(|call| call.json.to_string().contains("app"))
                .count()
        };
        ensure!(
            told("signed") == 1,
            "it was told more than once: {:?}",
            alerts.sink.said_to("signed")
        );
        Ok(())
    });
}

#[test]
fn an_event_is_told_once_however_it_comes() {
    run("alert-ways", |test| async move {
        let alerts = Alerts::start(&test, &[]).await?;
        alerts.generic("told", json!({})).await?;
        let event = |message| alerts.event("Kustomization", "web", "error", message);
        ensure!(alerts.post(&event("posted")).await? == StatusCode::ACCEPTED);
        ensure!(alerts.post(&event("posted")).await? == StatusCode::TOO_MANY_REQUESTS);
        alerts.record("watched", &event("watched")).await?;
        alerts.sink.until_message("told", "watched").await?;
        // It is no repetition for who posts it first.
        ensure!(alerts.post(&event("watched")).await? == StatusCode::ACCEPTED);
        ensure!(alerts.post(&event("both")).await? == StatusCode::ACCEPTED);
        alerts.record("both", &event("both")).await?;
        alerts.record("end", &event("end")).await?;
        let call = alerts.sink.until_message("told", "end").await?;
        ensure!(
            call.json["metadata"]["revision"] == "main@sha1:1",
            "{}",
            call.json
        );
        ensure!(
            alerts.messages("told") == ["posted", "watched", "both", "end"],
            "{:?}",
            alerts.messages("told")
        );

        let http = reqwest::Client::builder().no_proxy().build()?;
        for (body, status) in [
            (b"no JSON".to_vec(), StatusCode::BAD_REQUEST),
            (vec![b' '; (3 << 20) + 1], StatusCode::PAYLOAD_TOO_LARGE),
        ] {
            let answer = http
                .post(alerts.controller.events_url())
                .body(body)
                .send()
                .await?;
            ensure!(answer.status() == status, "{}", answer.status());
        }
        let measured = alerts
            .controller
            .metric("gotk_event_http_request_duration_seconds_count{code=\"429\"")
            .await?;
        ensure!(measured == Some(1.0), "{measured:?}");
        Ok(())
    });
}

#[test]
fn alerts_choose_by_name_label_severity_and_text() {
    run("alert-routes", |test| async move {
        let alerts =
            Alerts::start(&test, &["--watch-events=false", "--no-cross-namespace-refs=true"]).await?;
        let one = |source: Value| json!({"eventSources": [source]});
        let specs = [
            ("all", json!({})),
            ("errors", json!({"eventSeverity": "error"})),
            ("named", one(json!({"kind": "Kustomization", "name": "web"}))),
            (
                "labelled",
                one(json!({"kind": "Kustomization", "name": "*", "matchLabels": {"team": "a"}})),
            ),
            ("included", json!({"inclusionList": ["^in"]})),
            ("excluded", json!({"exclusionList": ["known|^in"]})),
            (
                "foreign",
                one(json!({"kind": "Kustomization", "name": "*", "namespace": "elsewhere"})),
            ),
            ("suspended", json!({"suspend": true})),
        ];
        for (name, spec) in specs {
            alerts.provider("generic", name, None).await?;
            alerts.alert(name, spec).await?;
        }
        alerts
            .alert(
                "orphan",
                json!({"providerRef": {"name": "nobody"}, "inclusionList": ["^in"]}),
            )
            .await?;
        let labelled = objects::kustomization(&test.namespace, "labelled", ("GitRepository", "none"), "./");
        let mut labelled = objects::with_spec(labelled, json!({"suspend": true}));
        labelled["metadata"]["labels"] = json!({"team": "a"});
        test.apply(&labelled).await?;
        alerts.until_known(&["all", "errors"]).await?;

        for (name, severity, message) in [
            ("web", "info", "in one"),
            ("web", "error", "out two"),
            ("labelled", "info", "out three"),
            ("missing", "error", "in four"),
        ] {
            alerts
                .post(&alerts.event("Kustomization", name, severity, message))
                .await?;
        }
        let mut foreign = alerts.event("Kustomization", "web", "error", "in five");
        foreign["involvedObject"]["namespace"] = json!("elsewhere");
        alerts.post(&foreign).await?;
        let refused = alerts
            .told_on("foreign", "NotificationDispatchFailed")
            .await?
            .message
            .unwrap_or_default();
        ensure!(
            refused.contains("cross-namespace references have been blocked"),
            "{refused}"
        );
        let refused = alerts
            .told_on("orphan", "NotificationDispatchFailed")
            .await?
            .message
            .unwrap_or_default();
        ensure!(refused.contains("failed to read provider"), "{refused}");
        alerts.told_on("labelled", "SourceFetchFailed").await?;

        for (path, last) in [
            ("all", "in four"),
            ("errors", "in four"),
            ("named", "out two"),
            ("labelled", "out three"),
            ("included", "in four"),
            ("excluded", "out three"),
        ] {
            alerts.sink.until_message(path, last).await?;
        }
        for (path, expected) in [
            ("all", &["in one", "out two", "out three", "in four"][..]),
            ("errors", &["out two", "in four"]),
            ("named", &["in one", "out two"]),
            ("labelled", &["out three"]),
            ("included", &["in one", "in four"]),
            ("excluded", &["out two", "out three"]),
            ("foreign", &[]),
            ("suspended", &[]),
        ] {
            ensure!(
                alerts.messages(path) == expected,
                "{path}: {:?}",
                alerts.messages(path)
            );
        }
        Ok(())
    });
}

#[test]
fn what_a_provider_refuses_for_good_is_told_on_the_alert_and_counted() {
    run("alert-drop", |test| async move {
        let alerts = Alerts::start(&test, &[]).await?;
        alerts.generic("refusing", json!({})).await?;
        alerts.sink.answer(400);
        // The first refusal might be due to a Secret that has changed since; it is tried once more.
        alerts
            .post(&alerts.event("Kustomization", "web", "error", "unheard"))
            .await?;
        let told = alerts
            .told_on("refusing", "NotificationDispatchFailed")
            .await?
            .message
            .unwrap_or_default();
        ensure!(
            told.contains("failed to send notification for Kustomization/") && told.contains("400"),
            "{told}"
        );
        let dropped = "windlass_notifications_total{provider_type=\"generic\",result=\"dropped\"}";
        for _ in 0..200 {
            if alerts.controller.metric(dropped).await? == Some(1.0) {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        anyhow::bail!("{}", alerts.controller.metrics().await?)
    });
}

#[test]
fn what_waits_for_a_provider_survives_restarts_and_comes_once_and_in_order() {
    run("alert-restart", |test| async move {
        let mut alerts = Alerts::start(&test, &[]).await?;
        alerts.generic("told", json!({})).await?;
        alerts
            .record("past", &alerts.event("Kustomization", "web", "error", "before"))
            .await?;
        alerts.sink.until_message("told", "before").await?;

        alerts.sink.stop().await?;
        for message in ["one", "two"] {
            alerts
                .post(&alerts.event("Kustomization", "web", "error", message))
                .await?;
        }
        // Its first attempt has failed, and the Alert says so.
        alerts.told_on("told", "NotificationDispatchFailed").await?;
        alerts.controller.terminate(PATIENCE)?;
        alerts
            .record("away", &alerts.event("Kustomization", "web", "error", "three"))
            .await?;
        alerts.controller.restart().await?;
        alerts
            .post(&alerts.event("Kustomization", "web", "error", "four"))
            .await?;
        state_is_written(&alerts).await?;
        alerts.controller.kill();
        alerts
            .record("killed", &alerts.event("Kustomization", "web", "error", "five"))
            .await?;
        alerts.sink.start_again().await?;
        alerts.controller.restart().await?;
        alerts.sink.until_message("told", "five").await?;
        alerts
            .record("end", &alerts.event("Kustomization", "web", "error", "end"))
            .await?;
        alerts.sink.until_message("told", "end").await?;
        let mut messages = alerts.messages("told");
        ensure!(messages[..3] == ["before", "one", "two"], "{messages:?}");
        messages.sort();
        ensure!(
            messages == ["before", "end", "five", "four", "one", "three", "two"],
            "{messages:?}"
        );
        Ok(())
    });
}

#[test]
fn a_provider_that_was_down_gets_what_it_missed() {
    run("alert-down", |test| async move {
        let mut alerts = Alerts::start(&test, &[]).await?;
        alerts.generic("told", json!({})).await?;
        alerts.sink.answer(503);
        for message in ["one", "two", "three"] {
            alerts
                .post(&alerts.event("Kustomization", "web", "error", message))
                .await?;
        }
        alerts.told_on("told", "NotificationDispatchFailed").await?;
        alerts.sink.stop().await?;
        alerts.sink.answer(200);
        alerts.sink.start_again().await?;
        alerts.sink.until_message("told", "three").await?;
        ensure!(
            alerts.messages("told") == ["one", "two", "three"],
            "{:?}",
            alerts.messages("told")
        );
        Ok(())
    });
}

#[test]
fn annotations_make_few_messages_of_many_and_say_when_it_is_over() {
    run("alert-engine", |test| async move {
        let alerts = Alerts::start(&test, &[]).await?;
        for name in ["plain", "grouped"] {
            alerts.provider("generic", name, None).await?;
        }
        alerts.alert("plain", json!({"eventSeverity": "error"})).await?;
        let annotations = json!({
            "windlass.dev/group-window": "4s", "windlass.dev/resolve": "true", "windlass.dev/digest": "1m",
            "windlass.dev/template": "{{ .event.involvedObject.name }}: {{ .event.message }}",
        });
        alerts
            .annotated_alert("grouped", json!({"eventSeverity": "error"}), annotations)
            .await?;
        let problem = alerts
            .told_on("grouped", "InvalidConfig")
            .await?
            .message
            .unwrap_or_default();
        ensure!(problem.contains("windlass.dev/digest"), "{problem}");
        alerts.until_known(&["plain"]).await?;

        let ns = &test.namespace;
        let repository = test.repository(&[("deploy/a.yaml", "a: [".to_owned())])?;
        test.git_source(&repository).await?;
        test.apply(&test.kustomization("app", json!({}))).await?;
        alerts
            .sink
            .until("plain", |call| call.json["involvedObject"]["name"] == "app")
            .await?;
        let names_app = |call: &Call| {
            call.json["message"]
                .as_str()
                .is_some_and(|text| text.contains("app"))
        };
        alerts.sink.until("grouped", names_app).await?;
        for number in 0..20 {
            alerts
                .post(&alerts.event("Kustomization", &format!("other-{number}"), "error", "broken"))
                .await?;
        }
        let is_last = |call: &Call| {
            call.json["reason"] == "Group" && call.json["message"].to_string().contains("other-19")
        };
        alerts.sink.until("grouped", is_last).await?;

        crate::world::commit(&repository, &[("deploy/a.yaml", config_map(ns, "a", "1"))])?;
        objects::poke(&test.git_repositories(), "app").await?;
        let resolved =
            |call: &Call| call.json["involvedObject"]["name"] == "app" && call.json["severity"] == "info";
        alerts.sink.until("grouped", resolved).await?;
        let said = alerts.sink.said_to("grouped");
        ensure!(said.len() <= 6, "{said:?}");
        Ok(())
    });
}

#[test]
fn a_status_of_which_no_event_tells_is_told() {
    run("alert-status", |test| async move {
        let alerts = Alerts::start(&test, &[]).await?;
        alerts.generic("told", json!({"eventSeverity": "error"})).await?;
        for name in ["silent", "waiting"] {
            let object = objects::kustomization(&test.namespace, name, ("GitRepository", "none"), "./");
            test.apply(&test.in_own_shard(object)).await?;
        }
        for (name, reason) in [("waiting", "DependencyNotReady"), ("silent", "BuildFailed")] {
            let condition = json!({
                "type": "Ready", "status": "False", "reason": reason, "message": format!("{name} fails"),
                "lastTransitionTime": "2026-11-21T10:00:00Z",
            });
            let status =
                json!({"status": {"conditions": [condition], "lastAttemptedRevision": "main@sha1:2"}});
            let parameters = PatchParams::default();
            test.kustomizations()
                .patch_status(name, &parameters, &Patch::Merge(&status))
                .await?;
        }
        let call = alerts.sink.until_message("told", "silent fails").await?;
        ensure!(
            call.json["reason"] == "BuildFailed" && call.json["severity"] == "error",
            "{}",
            call.json
        );
        ensure!(
            call.json["metadata"]["revision"] == "main@sha1:2",
            "{}",
            call.json
        );
        // The other way comes later, and is no news.
        let mut event = alerts.event("Kustomization", "silent", "error", "silent fails");
        event["metadata"]["kustomize.toolkit.fluxcd.io/revision"] = json!("main@sha1:2");
        alerts.record("late", &event).await?;
        alerts
            .record("end", &alerts.event("Kustomization", "web", "error", "end"))
            .await?;
        alerts.sink.until_message("told", "end").await?;
        ensure!(
            alerts.messages("told") == ["silent fails", "end"],
            "{:?}",
            alerts.messages("told")
        );
        Ok(())
    });
}

#[test]
fn a_kind_without_a_definition_is_waited_for_and_the_alert_says_so() {
    run("alert-unserved", |test| async move {
        let alerts = Alerts::start(&test, &[]).await?;
        let sources = json!([
            {"kind": "Kustomization", "name": "*"},
            {"kind": "ImageUpdateAutomation", "name": "*"},
        ]);
        alerts.generic("images", json!({"eventSources": sources})).await?;
        let told = alerts.told_on("images", "KindNotServed").await?;
        let message = told.message.unwrap_or_default();
        ensure!(
            message.contains("kind ImageUpdateAutomation of image.toolkit.fluxcd.io is not served"),
            "{message}"
        );
        // It is told of the others, and nothing asks for what is not there.
        let log = alerts.controller.log();
        ensure!(!log.contains("a watch failed"), "{log}");
        Ok(())
    });
}

#[test]
fn finalizers_of_older_controllers_are_taken_off() {
    run("alert-finalizer", |test| async move {
        let alerts = Alerts::start(&test, &[]).await?;
        alerts.provider("generic", "old", None).await?;
        alerts.alert("old", json!({})).await?;
        for kind in ["Alert", "Provider"] {
            let api = test.objects(NOTIFICATION, kind);
            let patch = json!({"metadata": {"finalizers": ["finalizers.fluxcd.io"]}});
            api.patch("old", &PatchParams::default(), &Patch::Merge(&patch))
                .await?;
            let free =
                |object: &kube::api::DynamicObject| object.metadata.finalizers.iter().flatten().count() == 0;
            testkit::wait_for(&api, "old", free, PATIENCE).await?;
        }
        Ok(())
    });
}

/// Waits until the Secret was begun to be written after this was called.
async fn state_is_written(alerts: &Alerts<'_>) -> Result<()> {
    let secrets: Api<v1::Secret> = Api::namespaced(alerts.test.client.clone(), &alerts.test.namespace);
    let name = "notification-controller-state";
    let mut before = secrets
        .get_opt(name)
        .await?
        .and_then(|secret| secret.metadata.resource_version);
    for _ in 0..2 {
        let is_newer = |secret: &v1::Secret| secret.metadata.resource_version != before;
        let secret = testkit::wait_for(&secrets, name, is_newer, PATIENCE).await?;
        before = secret.metadata.resource_version;
    }
    Ok(())
}
