//! Where the registry of a running demo is, for `make images`: a file that is there as long as the demo is.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use testkit::tools::repository_root;

/// The file, removed when dropped.
pub(super) struct Sign {
    path: PathBuf,
}

impl Sign {
    /// Tells others the registry's address. Of two demos the later one is found.
    pub(super) fn put_up(address: &str) -> Result<Self> {
        let path = path();
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).with_context(|| format!("failed to make {}", folder.display()))?;
        }
        fs::write(&path, address).with_context(|| format!("failed to write {}", path.display()))?;
        Ok(Self { path })
    }
}

impl Drop for Sign {
    fn drop(&mut self) {
        // A demo that ends does not fail for it; whoever reads it asks whether the registry is still there.
        _ = fs::remove_file(&self.path);
    }
}

/// The address of the registry of a demo that runs now.
pub(crate) fn find() -> Option<String> {
    let address = fs::read_to_string(path()).ok()?;
    let reached = TcpStream::connect(address.parse::<SocketAddr>().ok()?);
    reached.is_ok().then_some(address)
}

fn path() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR");
    let target = target.map_or_else(|| repository_root().join("target"), PathBuf::from);
    target.join("demo-registry")
}
