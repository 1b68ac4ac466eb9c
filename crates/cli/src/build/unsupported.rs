//! Flags of `kustomize build` that ask for what is not supported.
//!
//! They are known, so that a command line that was written for kustomize is told why it cannot work, and works where
//! it only says what is the case anyway (`--enable-helm=false`).

use clap::Args;

use super::Failure;
use super::bool::parse_bool;

const HEADING: &str = "Refused, with the reason";

/// Flags that are accepted but not supported.
#[derive(Debug, Args)]
#[command(next_help_heading = HEADING)]
pub(super) struct Unsupported {
    /// Run plugins
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true",
          value_parser = parse_bool)]
    enable_alpha_plugins: Option<bool>,
    /// Run exec functions
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true",
          value_parser = parse_bool)]
    enable_exec: Option<bool>,
    /// Run Starlark functions
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true",
          value_parser = parse_bool)]
    enable_star: Option<bool>,
    /// Run functions as the current user
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true",
          value_parser = parse_bool)]
    as_current_user: Option<bool>,
    /// Environment variables of functions
    #[arg(long, short, value_name = "NAME=VALUE")]
    env: Vec<String>,
    /// Directories mounted into functions
    #[arg(long, value_name = "OPTIONS")]
    mount: Vec<String>,
    /// Allow functions to use the network
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true",
          value_parser = parse_bool)]
    network: Option<bool>,
    /// Network of containerized functions
    #[arg(long, value_name = "NAME")]
    network_name: Option<String>,
}

const PLUGINS: &str =
    "exec and container plugins are not supported by design: a build starts no other program";

impl Unsupported {
    /// Refuses the first flag that asks for something.
    pub(super) fn refuse(&self) -> Result<(), Failure> {
        let asked = |flag: &Option<bool>| *flag == Some(true);
        let flags = [
            ("enable-alpha-plugins", asked(&self.enable_alpha_plugins), PLUGINS),
            ("enable-exec", asked(&self.enable_exec), PLUGINS),
            ("enable-star", asked(&self.enable_star), PLUGINS),
            ("as-current-user", asked(&self.as_current_user), PLUGINS),
            ("env", !self.env.is_empty(), PLUGINS),
            ("mount", !self.mount.is_empty(), PLUGINS),
            ("network", asked(&self.network), PLUGINS),
            ("network-name", self.network_name.is_some(), PLUGINS),
        ];
        match flags.into_iter().find(|(_, is_set, _)| *is_set) {
            Some((flag, _, reason)) => Err(Failure::Unsupported { flag, reason }),
            None => Ok(()),
        }
    }
}
