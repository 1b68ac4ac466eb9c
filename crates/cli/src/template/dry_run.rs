//! `--dry-run` and `--validate`: `helm template` is always a dry run, so they only say whether a cluster is asked.

use helm_chart::Helm;

use super::Failure;
use super::flags::Settings;

/// What a cluster is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Asked {
    /// Templates look objects up.
    pub(super) lookup: bool,
    /// Which version it has and what it serves, and whether it would take the release.
    pub(super) validate: bool,
}

/// Reads what is to be asked; refuses what is no such value, and returns what Helm 4 warns of.
pub(super) fn asked(settings: &Settings) -> Result<(Asked, Option<String>), Failure> {
    let value = settings.dry_run.as_deref();
    match settings.helm {
        Helm::V3 => {
            let lookup = value.map_or(Ok(false), check_v3)?;
            let validate = settings.validate;
            Ok((Asked { lookup, validate }, None))
        }
        Helm::V4 => {
            let (server, warning) = value.map_or(Ok((false, None)), check_v4)?;
            let everything = server || settings.validate;
            let asked = Asked {
                lookup: everything,
                validate: everything,
            };
            Ok((asked, warning))
        }
    }
}

/// Returns whether templates look objects up: in Helm 3 this flag asks nothing else.
fn check_v3(value: &str) -> Result<bool, Failure> {
    match value {
        "" | "unset" | "true" | "client" => Ok(false),
        "false" | "none" | "server" => Ok(true),
        _ => Err(Failure::Flag(
            "Invalid dry-run flag. Flag must one of the following: false, true, none, client, server"
                .to_owned(),
        )),
    }
}

/// Returns whether a cluster is asked.
fn check_v4(value: &str) -> Result<(bool, Option<String>), Failure> {
    let refuse = |legal: &str| {
        Err(Failure::Flag(format!(
            "invalid dry-run value ({value:?}). Must be {legal}"
        )))
    };
    match value {
        "client" => Ok((false, None)),
        "server" => Ok((true, None)),
        "unset" => {
            let warning = "--dry-run is deprecated and should be replaced with '--dry-run=client'";
            Ok((false, Some(warning.to_owned())))
        }
        "1" | "t" | "T" | "TRUE" | "true" | "True" => {
            let warning = format!(
                "boolean '--dry-run={value}' flag is deprecated and must be replaced with '--dry-run=client'"
            );
            Ok((false, Some(warning)))
        }
        "none" | "0" | "f" | "F" | "FALSE" | "false" | "False" => refuse(r#""server" or "client""#),
        _ => refuse(r#""none", "server", or "client""#),
    }
}
