//! A folder of the disk as the source of a chart.

use std::fs;
use std::io::{self, Read};
use std::path::PathBuf;

use helm_package::{Entry, Files, What};

/// Files below a folder. Links are not followed, they are not there.
pub struct Disk(pub PathBuf);

impl Files for Disk {
    fn what(&self, path: &str) -> io::Result<Option<What>> {
        match fs::symlink_metadata(self.0.join(path)) {
            Ok(info) if info.is_dir() => Ok(Some(What::Folder)),
            Ok(info) if info.is_file() => Ok(Some(What::File(info.len()))),
            _ => Ok(None),
        }
    }

    fn entries(&self, folder: &str) -> io::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(self.0.join(folder))? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if let Some(what) = self.what(format!("{folder}/{name}").trim_start_matches('/'))? {
                entries.push(Entry { name, what });
            }
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    fn open(&self, path: &str) -> io::Result<Box<dyn Read + '_>> {
        Ok(Box::new(fs::File::open(self.0.join(path))?))
    }
}
