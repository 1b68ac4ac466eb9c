//! The files of a chart folder, in the order and with the refusals of Helm (loader/directory.go, internal/sympath).
//!
//! Symbolic links are followed, whatever they point to, and each is warned of. The bytes read are bounded as in Helm; so is
//! the number of files and folders, because two links to `.` would otherwise make 2⁴⁰ of them.

use std::fs::{self, Metadata};
use std::io::Read;

use go_text::quote::quoted;

use super::archive::{MAX_CHART_SIZE, MAX_FILE_SIZE};
use super::error::{Error, ErrorKind, go_io};
use super::ignore::Rules;
use super::paths::{base, clean};
use crate::Warning;
use crate::chart::{File, Helm};
use crate::text::without_mark;

/// How many files and folders are visited: the largest charts have some thousands.
const MAX_VISITS: usize = 200_000;

/// How many links one path may lead through.
const MAX_LINKS: usize = 255;

/// Reads all files of a folder that are not ignored.
pub(super) fn read_folder(folder: &str, helm: Helm, warnings: &mut Vec<Warning>) -> Result<Vec<File>, Error> {
    let top = absolute(folder)?;
    let mut walk = Walk {
        prefix: format!("{top}/"),
        rules: read_rules(&top)?,
        helm,
        remaining: MAX_CHART_SIZE,
        visits: 0,
        files: Vec::new(),
        warnings,
    };
    let root = walk.prefix.clone();
    let info = fs::metadata(&root).map_err(|error| go_io("lstat", &root, &error))?;
    walk.visit(&top, &info)?;
    Ok(walk.files)
}

/// Returns the path from the root, without `.` and `..` (`filepath.Abs`).
pub(super) fn absolute(path: &str) -> Result<String, Error> {
    if path.starts_with('/') {
        return Ok(clean(path));
    }
    let here = std::env::current_dir().map_err(|error| go_io("getwd", "", &error))?;
    Ok(clean(&format!("{}/{path}", here.to_string_lossy())))
}

fn read_rules(top: &str) -> Result<Rules, Error> {
    let file = format!("{top}/.helmignore");
    if fs::metadata(&file).is_err() {
        return Rules::new(None);
    }
    Rules::new(Some(&read_whole(&file)?))
}

/// Reads a file with Go's words for what is wrong: a folder can be opened, but not read.
pub(super) fn read_whole(file: &str) -> Result<Vec<u8>, Error> {
    fs::read(file).map_err(|error| match error.kind() {
        std::io::ErrorKind::IsADirectory => go_io("read", file, &error),
        _ => go_io("open", file, &error),
    })
}

struct Walk<'a> {
    /// The chart's folder with a slash behind it.
    prefix: String,
    rules: Rules,
    helm: Helm,
    remaining: u64,
    visits: usize,
    files: Vec<File>,
    warnings: &'a mut Vec<Warning>,
}

impl Walk<'_> {
    fn visit(&mut self, path: &str, info: &Metadata) -> Result<(), Error> {
        self.visits += 1;
        if self.visits > MAX_VISITS {
            let text = format!("failed to read the chart: more than {MAX_VISITS} files and folders");
            return Err(Error::new(ErrorKind::Limit, text));
        }
        if info.is_symlink() {
            let (resolved, info) = resolve(path)?;
            self.warn_of_link(path, &resolved);
            return self.visit(path, &info);
        }
        // The chart's own folder is never ignored.
        let name = path.strip_prefix(&self.prefix).unwrap_or_default();
        if !name.is_empty() && self.rules.ignore(name, info.is_dir()) {
            return Ok(());
        }
        if info.is_dir() {
            return self.visit_folder(path);
        }
        let name = name.to_owned();
        let data = self.read_file(path, &name, info)?;
        self.files.push(File {
            name,
            data: data.into(),
        });
        Ok(())
    }

    fn visit_folder(&mut self, path: &str) -> Result<(), Error> {
        for name in sorted_names(path)? {
            let path = format!("{}/{name}", path.trim_end_matches('/'));
            let info = fs::symlink_metadata(&path).map_err(|error| go_io("lstat", &path, &error))?;
            self.visit(&path, &info)?;
        }
        Ok(())
    }

    fn read_file(&mut self, path: &str, name: &str, info: &Metadata) -> Result<Vec<u8>, Error> {
        if !info.is_file() {
            let text = format!("cannot load irregular file {path} as it has file mode type bits set");
            return Err(Error::new(ErrorKind::Read, text));
        }
        self.check_size(path, info.len())
            .map_err(|error| self.within(name, error))?;
        let data = self
            .read(path)
            .map_err(|error| error.within(format!("error reading {name}")))?;
        self.remaining -= data.len() as u64;
        Ok(without_mark(data))
    }

    fn check_size(&self, path: &str, size: u64) -> Result<(), Error> {
        let text = match self.helm {
            Helm::V3 if size > MAX_FILE_SIZE => format!(
                "chart file {} is larger than the maximum file size {MAX_FILE_SIZE}",
                quoted(base(path))
            ),
            _ if size > self.remaining => {
                format!("chart exceeds maximum decompressed size of {MAX_CHART_SIZE} bytes")
            }
            _ => return Ok(()),
        };
        Err(Error::new(ErrorKind::Limit, text))
    }

    /// Only Helm 4 names the file that made the chart too large.
    fn within(&self, name: &str, error: Error) -> Error {
        match self.helm {
            Helm::V3 => error,
            Helm::V4 => error.within(format!("error reading {name}")),
        }
    }

    fn read(&self, path: &str) -> Result<Vec<u8>, Error> {
        let file = fs::File::open(path).map_err(|error| go_io("open", path, &error))?;
        let mut data = Vec::new();
        // A file may grow after its size was asked.
        file.take(self.remaining + 1)
            .read_to_end(&mut data)
            .map_err(|error| go_io("read", path, &error))?;
        self.check_size(path, data.len() as u64)?;
        Ok(data)
    }

    fn warn_of_link(&mut self, path: &str, resolved: &str) {
        let text = match self.helm {
            Helm::V3 => format!(
                "found symbolic link in path: {path} resolves to {resolved}. Contents of linked file included and used"
            ),
            Helm::V4 => format!(
                "found symbolic link in path. Contents of linked file included and used path={path} resolved={resolved}"
            ),
        };
        self.warnings.push(Warning::new(text));
    }
}

fn sorted_names(folder: &str) -> Result<Vec<String>, Error> {
    let entries = fs::read_dir(folder).map_err(|error| go_io("open", folder, &error))?;
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| go_io("readdirent", folder, &error))?;
        // A name that is no text cannot be opened again: it is refused as missing.
        names.push(entry.file_name().to_string_lossy().into_owned());
    }
    names.sort_unstable();
    Ok(names)
}

/// Follows a link to the end; errors name the first path on the way that is wrong.
fn resolve(path: &str) -> Result<(String, Metadata), Error> {
    let resolved = follow(path).map_err(|error| error.within(format!("error evaluating symlink {path}")))?;
    let info = fs::symlink_metadata(&resolved).map_err(|error| go_io("lstat", &resolved, &error))?;
    Ok((resolved, info))
}

/// Follows all links of an absolute path, as many as Go does and more than the system (`filepath.EvalSymlinks`).
fn follow(path: &str) -> Result<String, Error> {
    let mut resolved = String::new();
    let mut ahead: Vec<String> = parts(path).collect();
    let mut links = 0;
    while let Some(part) = ahead.pop() {
        if part == ".." {
            resolved.truncate(resolved.rfind('/').unwrap_or(0));
            continue;
        }
        let next = format!("{resolved}/{part}");
        let info = fs::symlink_metadata(&next).map_err(|error| go_io("lstat", &next, &error))?;
        if info.is_symlink() {
            links += 1;
            if links > MAX_LINKS {
                return Err(Error::new(ErrorKind::Read, "EvalSymlinks: too many links"));
            }
            let target = fs::read_link(&next).map_err(|error| go_io("readlink", &next, &error))?;
            let target = target.to_string_lossy();
            if target.starts_with('/') {
                resolved.clear();
            }
            ahead.extend(parts(&target));
        } else if !info.is_dir() && !ahead.is_empty() {
            return Err(Error::new(ErrorKind::Read, "not a directory"));
        } else {
            resolved = next;
        }
    }
    Ok(if resolved.is_empty() {
        "/".to_owned()
    } else {
        resolved
    })
}

/// Returns the parts of a path, the last first.
fn parts(path: &str) -> impl Iterator<Item = String> {
    let parts = path.split('/').filter(|part| !matches!(*part, "" | "."));
    parts.map(str::to_owned).collect::<Vec<_>>().into_iter().rev()
}
