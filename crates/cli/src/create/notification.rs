//! `windlass create alert`, `alert-provider` and `receiver`.

use clap::Args;
use serde_json::{Value, json};

use super::{Common, Made, named, reference};
use crate::cluster::Failure;

/// Command line of `create alert`.
#[derive(Debug, Args)]
pub(super) struct Alert {
    #[command(flatten)]
    common: Common,

    /// Provider to send to
    #[arg(long, value_name = "NAME")]
    provider_ref: String,

    /// Objects to send events of, as KIND/NAME; * is all of them; repeatable
    #[arg(long, value_name = "OBJECT", value_delimiter = ',', required = true)]
    event_source: Vec<String>,

    /// Severity
    #[arg(long, value_name = "NAME", value_parser = ["info", "error"])]
    event_severity: Option<String>,
}

/// Command line of `create alert-provider`.
#[derive(Debug, Args)]
pub(super) struct Provider {
    #[command(flatten)]
    common: Common,

    /// Type, such as slack, msteams, github or generic
    #[arg(long = "type", value_name = "NAME")]
    type_: String,

    /// Channel
    #[arg(long, value_name = "NAME")]
    channel: Option<String>,

    /// User name to send as
    #[arg(long, value_name = "NAME")]
    username: Option<String>,

    /// Address
    #[arg(long, value_name = "URL")]
    address: Option<String>,

    /// Secret with the address or a token
    #[arg(long, value_name = "NAME")]
    secret_ref: Option<String>,
}

/// Command line of `create receiver`.
#[derive(Debug, Args)]
pub(super) struct Receiver {
    #[command(flatten)]
    common: Common,

    /// Type, such as github, gitlab or generic
    #[arg(long = "type", value_name = "NAME")]
    type_: String,

    /// Events to react to; repeatable
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    event: Vec<String>,

    /// Objects to reconcile, as KIND/NAME; repeatable
    #[arg(long, value_name = "OBJECT", value_delimiter = ',', required = true)]
    resource: Vec<String>,

    /// Secret with the token
    #[arg(long, value_name = "NAME")]
    secret_ref: String,
}

impl Alert {
    pub(super) fn objects(&self) -> Result<Made<'_>, Failure> {
        let object = self.common.object(
            "notification.toolkit.fluxcd.io/v1beta3",
            "Alert",
            json!({
                "providerRef": {"name": self.provider_ref},
                "eventSeverity": self.event_severity,
                "eventSources": references("--event-source", &self.event_source)?,
            }),
        );
        Ok((&self.common, vec![object]))
    }
}

impl Provider {
    pub(super) fn objects(&self) -> Result<Made<'_>, Failure> {
        let object = self.common.object(
            "notification.toolkit.fluxcd.io/v1beta3",
            "Provider",
            json!({
                "type": self.type_, "channel": self.channel, "username": self.username, "address": self.address,
                "secretRef": named(self.secret_ref.as_ref()),
            }),
        );
        Ok((&self.common, vec![object]))
    }
}

impl Receiver {
    pub(super) fn objects(&self) -> Result<Made<'_>, Failure> {
        let object = self.common.object(
            "notification.toolkit.fluxcd.io/v1",
            "Receiver",
            json!({
                "type": self.type_, "events": self.event, "resources": references("--resource", &self.resource)?,
                "secretRef": {"name": self.secret_ref},
            }),
        );
        Ok((&self.common, vec![object]))
    }
}

fn references(flag: &str, all: &[String]) -> Result<Vec<Value>, Failure> {
    let one = |text: &String| {
        let (kind, name, namespace) = reference(flag, text)?;
        Ok(json!({"kind": kind, "name": name, "namespace": namespace}))
    };
    all.iter().map(one).collect()
}
