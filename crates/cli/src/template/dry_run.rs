//! `--dry-run`: `helm template` is always one, so the flag only says whether a cluster is asked.

use helm_chart::Helm;

use super::Failure;
use super::flags::Settings;

/// Refuses what is no such value and what needs a cluster; returns what Helm 4 warns of.
pub(super) fn check(settings: &Settings) -> Result<Option<String>, Failure> {
    let Some(value) = settings.dry_run.as_deref() else {
        return Ok(None);
    };
    match settings.helm {
        Helm::V3 => check_v3(value).map(|()| None),
        Helm::V4 => check_v4(value),
    }
}

fn needs_cluster(value: &str) -> Failure {
    Failure::Flag(format!(
        "--dry-run={value} is not supported: windlass template asks no cluster"
    ))
}

fn check_v3(value: &str) -> Result<(), Failure> {
    match value {
        "" | "unset" | "true" | "client" => Ok(()),
        "false" | "none" | "server" => Err(needs_cluster(value)),
        _ => Err(Failure::Flag(
            "Invalid dry-run flag. Flag must one of the following: false, true, none, client, server"
                .to_owned(),
        )),
    }
}

fn check_v4(value: &str) -> Result<Option<String>, Failure> {
    let refuse = |legal: &str| {
        Err(Failure::Flag(format!(
            "invalid dry-run value ({value:?}). Must be {legal}"
        )))
    };
    match value {
        "client" => Ok(None),
        "unset" => Ok(Some(
            "--dry-run is deprecated and should be replaced with '--dry-run=client'".to_owned(),
        )),
        "server" => Err(needs_cluster(value)),
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Ok(Some(format!(
            "boolean '--dry-run={value}' flag is deprecated and must be replaced with '--dry-run=client'"
        ))),
        "none" | "0" | "f" | "F" | "FALSE" | "false" | "False" => refuse(r#""server" or "client""#),
        _ => refuse(r#""none", "server", or "client""#),
    }
}
