//! Version of Helm that the command stands for.

use std::io::{self, Write as _};

use helm_chart::Helm;

use super::failure::Failure;

/// The environment's choice of the version of Helm to follow.
pub(super) const HELM_VERSION: &str = "WINDLASS_HELM_VERSION";

pub(super) fn print(text: &[u8]) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text)
        .and_then(|()| out.flush())
        .map_err(Failure::Print)
}

pub(super) fn helm_version(name: &str) -> Option<Helm> {
    match name {
        "3" | "v3" => Some(Helm::V3),
        "4" | "v4" => Some(Helm::V4),
        _ => None,
    }
}
