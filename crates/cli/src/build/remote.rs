//! What a build may get from elsewhere: Helm charts with `--enable-helm`, and what is remote with `--allow-remote`.

use std::env;
use std::path::PathBuf;

use build_remote::{Remote, Settings};

use super::Failure;
use crate::push::login;

/// Private keys that OpenSSH looks for, the youngest type first.
const KEYS: [&str; 3] = ["id_ed25519", "id_ecdsa", "id_rsa"];

/// Settings of this machine's user.
pub(super) fn settings(charts: bool, ssh_key: Option<PathBuf>) -> Settings {
    let home = env::home_dir();
    let below_home = |path: &str| home.as_ref().map(|home| home.join(path));
    Settings {
        charts,
        bases: remote_base::Settings {
            ssh_keys: match ssh_key {
                Some(key) => vec![key],
                None => KEYS
                    .iter()
                    .filter_map(|name| below_home(&format!(".ssh/{name}")))
                    .collect(),
            },
            known_hosts: below_home(".ssh/known_hosts"),
            only: None,
        },
        docker_config: login::config_file(),
    }
}

/// Builds with a runtime for the requests, if there may be any, which runs on a thread of its own.
pub(super) fn with<T>(
    settings: Settings,
    network: bool,
    build: impl FnOnce(&Remote) -> T,
) -> Result<T, Failure> {
    if !network {
        return Ok(build(&Remote::new(settings, None)));
    }
    _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|error| Failure::path("start", "a thread", &error))?;
    Ok(build(&Remote::new(settings, Some(runtime.handle().clone()))))
}
