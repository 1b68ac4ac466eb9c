//! Programs as images need them: release builds, linked statically, that do not know where they were built.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::platform::Platform;

/// Where programs are built.
pub(crate) struct Place {
    /// The checkout.
    pub(crate) root: PathBuf,
    /// What cargo builds goes here.
    pub(crate) target: PathBuf,
    /// Where cargo keeps the sources of crates.
    pub(crate) cargo_home: PathBuf,
}

impl Place {
    /// This checkout, with the folders that cargo uses anyway.
    pub(crate) fn here() -> Result<Self> {
        let root = testkit::tools::repository_root();
        let folder = |name| env::var_os(name).map(PathBuf::from);
        let cargo_home = folder("CARGO_HOME").or_else(|| env::home_dir().map(|home| home.join(".cargo")));
        Ok(Self {
            target: folder("CARGO_TARGET_DIR").unwrap_or_else(|| root.join("target")),
            cargo_home: cargo_home.context("there is no home directory")?,
            root,
        })
    }

    /// What stands in programs instead of this place's folders. The longest paths come last: of several that match, rustc takes the last.
    fn names(&self) -> [(&Path, &'static str); 3] {
        [
            (self.cargo_home.as_path(), "/cargo"),
            (self.root.as_path(), "/windlass"),
            (self.target.as_path(), "/windlass/target"),
        ]
    }
}

/// Compiles programs and returns the folder that they are in.
pub(crate) fn compile(programs: &[&str], platform: Platform, place: &Place) -> Result<PathBuf> {
    let target = platform.target();
    let mut flags = vec![
        "-Ctarget-feature=+crt-static".to_owned(),
        "-Crelocation-model=static".to_owned(),
    ];
    let mut c_flags = Vec::new();
    for (from, to) in place.names() {
        flags.push(format!("--remap-path-prefix={}={to}", from.display()));
        let from = from.display().to_string();
        // C compilers get their flags in one text. Programs built in such a place differ from those of others.
        if !from.contains(char::is_whitespace) {
            c_flags.push(format!("-ffile-prefix-map={from}={to}"));
        }
    }
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo
        .current_dir(&place.root)
        .args([
            "build",
            "--release",
            "--locked",
            "--workspace",
            "--target",
            target,
        ])
        .env("CARGO_TARGET_DIR", &place.target)
        .env("CARGO_HOME", &place.cargo_home)
        // With the unit separator, paths may have spaces.
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"))
        .env("CFLAGS", c_flags.join(" "));
    if platform != Platform::host()? {
        let variable = target.replace('-', "_");
        cargo.env(
            format!("CARGO_TARGET_{}_LINKER", variable.to_uppercase()),
            platform.linker(),
        );
        cargo.env(format!("CC_{variable}"), platform.linker());
    }
    for program in programs {
        cargo.args(["--bin", program]);
    }
    let status = cargo.status().context("failed to start cargo")?;
    ensure!(
        status.success(),
        "cargo build for {platform} ended with {status}; another platform than this machine's needs `rustup target add {target}` and Debian's {}",
        platform.package(),
    );
    Ok(place.target.join(target).join("release"))
}
