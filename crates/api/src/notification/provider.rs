//! `Provider`: a service that events are sent to.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::meta::{Duration, LocalObjectReference, filled, is_false};

/// Specification of the Provider.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "notification.toolkit.fluxcd.io",
    version = "v1beta3",
    kind = "Provider",
    plural = "providers",
    namespaced,
    category = "all",
    category = "fluxcd",
    category = "fluxcd-notifications",
    doc = "A service that events are sent to.",
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#,
    derive = "Default",
    derive = "PartialEq",
    attr = "cfg_attr(all(), serde(default))"
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "self.type == 'github' || self.type == 'gitlab' || self.type == 'gitea' || self.type == 'bitbucketserver' || self.type == 'bitbucket' || self.type == 'azuredevops' || !has(self.commitStatusExpr)",
    "message": "spec.commitStatusExpr is only supported for the 'github', 'gitlab', 'gitea', 'bitbucketserver', 'bitbucket', 'azuredevops' provider types",
}]))]
pub struct ProviderSpec {
    /// Type of the service.
    #[serde(rename = "type")]
    pub type_: ProviderType,

    /// Deprecated: no longer used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"))]
    pub interval: Option<Duration>,

    /// The channel, room or topic to post to.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048))]
    pub channel: Option<String>,

    /// Name under which messages are posted.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048))]
    pub username: Option<String>,

    /// Address of the service: usually a URL, for some services the name of a project or namespace.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048))]
    pub address: Option<String>,

    /// Timeout for sending an event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m))+$"))]
    pub timeout: Option<Duration>,

    /// URL of a proxy. Deprecated: use proxySecretRef.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048), regex(pattern = r"^(http|https)://.*$"))]
    pub proxy: Option<String>,

    /// Secret with the proxy settings: `address`, and optionally `username` and `password`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy_secret_ref: Option<LocalObjectReference>,

    /// Secret with the credentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalObjectReference>,

    /// ServiceAccount for workload identity at the cloud provider, for types that support it.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<String>,

    /// Secret for TLS: `tls.crt` and `tls.key` of the client, `ca.crt` to verify the service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cert_secret_ref: Option<LocalObjectReference>,

    /// Suspend sending of events.
    #[serde(default, skip_serializing_if = "is_false")]
    pub suspend: bool,

    /// CEL expression over event, provider and alert that returns the name of the commit status, for Git providers.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub commit_status_expr: Option<String>,
}

/// The services that events can be sent to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ProviderType {
    /// Slack.
    Slack,
    /// Discord.
    Discord,
    /// Microsoft Teams.
    Msteams,
    /// Rocket.Chat.
    Rocket,
    /// Any HTTP endpoint.
    #[default]
    Generic,
    /// Any HTTP endpoint that verifies a signature.
    #[serde(rename = "generic-hmac")]
    GenericHmac,
    /// Commit status at GitHub.
    Github,
    /// Commit status at GitLab.
    Gitlab,
    /// Commit status at Gitea.
    Gitea,
    /// Comments on pull requests at Gitea.
    GiteaPullRequestComment,
    /// Commit status at a Bitbucket server.
    BitbucketServer,
    /// Commit status at Bitbucket.
    Bitbucket,
    /// Commit status at Azure DevOps.
    AzureDevops,
    /// Google Chat.
    GoogleChat,
    /// Google Pub/Sub.
    GooglePubsub,
    /// Webex.
    Webex,
    /// Sentry.
    Sentry,
    /// Azure Event Hubs.
    AzureEventHub,
    /// Telegram.
    Telegram,
    /// Lark.
    Lark,
    /// Matrix.
    Matrix,
    /// Opsgenie.
    Opsgenie,
    /// Prometheus Alertmanager.
    Alertmanager,
    /// Grafana annotations.
    Grafana,
    /// Repository dispatch at GitHub.
    GithubDispatch,
    /// Comments on pull requests at GitHub.
    GithubPullRequestComment,
    /// Comments on merge requests at GitLab.
    GitlabMergeRequestComment,
    /// PagerDuty.
    Pagerduty,
    /// Datadog.
    Datadog,
    /// NATS.
    Nats,
    /// Zulip.
    Zulip,
    /// OpenTelemetry.
    Otel,
    /// Zoom.
    Zoom,
    /// incident.io.
    #[serde(rename = "incident.io")]
    IncidentIo,
}
