//! A chart in a folder of a source: which of its files belong to the chart, and reading them.

use helm_chart::{Chart, File, IgnoreRules, MAX_CHART_SIZE};

use crate::error::Words;
use crate::files::{self, Entry, Files, What};
use crate::{HELM, Limits};

const IGNORE_FILE: &str = ".helmignore";

/// Loads the chart of a folder.
pub(crate) fn load(files: &dyn Files, folder: &str, limits: &Limits) -> Result<Chart, Words> {
    let rules = ignore_rules(files, folder, limits)
        .map_err(|error| Words(format!("cannot load ignore rules for chart: {error}")))?;
    let mut walk = Walk {
        files,
        rules,
        limits,
        remaining: MAX_CHART_SIZE,
        found: Vec::new(),
    };
    walk.folder(folder, "")
        .map_err(|error| Words(format!("failed to load files from /{folder}: {error}")))?;
    helm_chart::load_files(walk.found, HELM, &mut Vec::new())
        .map_err(|error| Words(format!("failed to load chart from /{folder}: {error}")))
}

fn ignore_rules(files: &dyn Files, folder: &str, limits: &Limits) -> Result<IgnoreRules, String> {
    let path = files::within(folder, IGNORE_FILE);
    let is_there = matches!(
        files.what(&path).map_err(|error| error.to_string())?,
        Some(What::File(_))
    );
    let text = is_there.then(|| files::read(files, &path, limits.file));
    let text = text.transpose().map_err(|error| error.to_string())?;
    IgnoreRules::new(text.as_deref()).map_err(|error| error.to_string())
}

struct Walk<'a> {
    files: &'a dyn Files,
    rules: IgnoreRules,
    limits: &'a Limits,
    remaining: u64,
    found: Vec<File>,
}

impl Walk<'_> {
    /// Reads all files of a folder in the order of their paths. How deep folders are is bounded by the source's tree.
    fn folder(&mut self, folder: &str, below: &str) -> Result<(), String> {
        let entries = self
            .files
            .entries(folder)
            .map_err(|error| format!("error reading {below}: {error}"))?;
        for Entry { name, what } in entries {
            let path = files::within(folder, &name);
            let name = if below.is_empty() {
                name
            } else {
                format!("{below}/{name}")
            };
            if self.rules.ignore(&name, what == What::Folder) {
                continue;
            }
            match what {
                What::Folder => self.folder(&path, &name)?,
                What::File(size) => self.file(&path, name, size)?,
            }
        }
        Ok(())
    }

    fn file(&mut self, path: &str, name: String, size: u64) -> Result<(), String> {
        let limit = self.limits.file;
        if size > limit {
            return Err(format!(
                "cannot load file {name} as file size ({size}) exceeds limit ({limit})"
            ));
        }
        if self.found.len() == self.limits.files {
            return Err(format!("chart has more than {} files", self.limits.files));
        }
        if size > self.remaining {
            return Err(format!(
                "chart exceeds maximum decompressed size of {MAX_CHART_SIZE} bytes"
            ));
        }
        let data =
            files::read(self.files, path, limit).map_err(|error| format!("error reading {name}: {error}"))?;
        self.remaining = self.remaining.saturating_sub(data.len() as u64);
        let data = data.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&data).into();
        self.found.push(File { name, data });
        Ok(())
    }
}
