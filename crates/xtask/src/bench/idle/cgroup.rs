//! Memory as Kubernetes counts it. kubelet reports a container's *working set*: what its control group is charged with, less the file
//! pages that are inactive, which the kernel takes back whenever it needs them. `kubectl top` shows it, and evictions go by it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

/// A control group of its own, removed when dropped.
pub(super) struct Group {
    folder: PathBuf,
    usage: &'static str,
    inactive: &'static str,
}

impl Group {
    /// None where this user may make none, or where memory is not counted.
    pub(super) fn new(name: &str) -> Option<Self> {
        let (one, two) = (Path::new("/sys/fs/cgroup/memory"), Path::new("/sys/fs/cgroup"));
        let controllers = fs::read_to_string(two.join("cgroup.subtree_control")).unwrap_or_default();
        let (parent, usage, inactive) = if one.join("memory.usage_in_bytes").exists() {
            (one, "memory.usage_in_bytes", "total_inactive_file ")
        } else if controllers
            .split_whitespace()
            .any(|controller| controller == "memory")
        {
            (two, "memory.current", "inactive_file ")
        } else {
            return None;
        };
        let folder = parent.join(format!("windlass-bench-{}-{name}", std::process::id()));
        fs::create_dir(&folder).ok()?;
        Some(Self {
            folder,
            usage,
            inactive,
        })
    }

    /// Words before a command that make it run in the group.
    pub(super) fn wrapper(&self) -> Vec<String> {
        let script = "echo $$ > \"$1\" && shift && exec \"$@\"";
        let processes = self.folder.join("cgroup.procs");
        ["sh", "-c", script, "sh", &processes.display().to_string()]
            .map(str::to_owned)
            .into()
    }

    /// In bytes.
    pub(super) fn working_set(&self) -> Result<u64> {
        let read = |file: &str| {
            let path = self.folder.join(file);
            fs::read_to_string(&path).with_context(|| format!("failed to read {}", path.display()))
        };
        let usage: u64 = read(self.usage)?
            .trim()
            .parse()
            .context("the usage is no number")?;
        let statistics = read("memory.stat")?;
        let inactive = statistics
            .lines()
            .find_map(|line| line.strip_prefix(self.inactive));
        let inactive: u64 = inactive.context("inactive pages are not counted")?.parse()?;
        Ok(usage.saturating_sub(inactive))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // It goes when its processes are gone; what is left of a killed run is empty and costs nothing.
        _ = fs::remove_dir(&self.folder);
    }
}
