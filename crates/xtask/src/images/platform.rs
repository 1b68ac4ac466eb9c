//! What images are for: an operating system and an architecture, in Docker's words and in rustc's.

use std::fmt;
use std::process::Command;
use std::str::FromStr;

use anyhow::{Context as _, Result, bail};

use super::commands::read;

/// A platform that programs are built for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Platform {
    Amd64,
    Arm64,
}

impl Platform {
    /// This machine's.
    pub(crate) fn host() -> Result<Self> {
        let version = read(Command::new("rustc").arg("-vV"))?;
        let host = version.lines().find_map(|line| line.strip_prefix("host: "));
        let host = host.context("rustc -vV names no host")?;
        match host.split('-').next() {
            Some("x86_64") => Ok(Self::Amd64),
            Some("aarch64") => Ok(Self::Arm64),
            _ => bail!("images are built for linux/amd64 and linux/arm64, and this machine is {host}"),
        }
    }

    /// The architecture, as images and file names have it.
    pub(crate) fn architecture(self) -> &'static str {
        match self {
            Self::Amd64 => "amd64",
            Self::Arm64 => "arm64",
        }
    }

    /// The target triple of rustc.
    pub(crate) fn target(self) -> &'static str {
        match self {
            Self::Amd64 => "x86_64-unknown-linux-gnu",
            Self::Arm64 => "aarch64-unknown-linux-gnu",
        }
    }

    /// The package of Debian with that compiler.
    pub(super) fn package(self) -> &'static str {
        match self {
            Self::Amd64 => "gcc-x86-64-linux-gnu",
            Self::Arm64 => "gcc-aarch64-linux-gnu",
        }
    }

    /// The compiler of Debian that links for it from another platform.
    pub(super) fn linker(self) -> &'static str {
        match self {
            Self::Amd64 => "x86_64-linux-gnu-gcc",
            Self::Arm64 => "aarch64-linux-gnu-gcc",
        }
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "linux/{}", self.architecture())
    }
}

impl FromStr for Platform {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "linux/amd64" => Ok(Self::Amd64),
            "linux/arm64" => Ok(Self::Arm64),
            _ => Err("it is neither linux/amd64 nor linux/arm64".to_owned()),
        }
    }
}
