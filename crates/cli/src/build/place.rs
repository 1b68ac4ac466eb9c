//! Which folder a PATH names, as kustomize finds it: made absolute and cleaned as text first, then links resolved.

use std::path::{Component, Path, PathBuf};
use std::{env, fs, io};

use kustomize_build::without_credentials;

use super::Failure;

/// Returns the folder below the root of the file system.
pub(super) fn folder(path: &str) -> Result<String, Failure> {
    if path.is_empty() {
        return Err(Failure::Place("directory path cannot be empty".to_owned()));
    }
    if path.contains("://") || path.starts_with("git@") || path.starts_with("github.com/") {
        return Err(Failure::Remote(without_credentials(path)));
    }
    let absolute = clean(&current_folder()?.join(path));
    let resolved = fs::canonicalize(&absolute).map_err(|error| missing(path, &absolute, &error))?;
    if !resolved.is_dir() {
        return Err(Failure::Place(format!("'{path}': file is not directory")));
    }
    match resolved.to_str() {
        Some(text) => Ok(text.trim_start_matches('/').to_owned()),
        None => Err(Failure::Place(format!("'{path}': the path is not valid UTF-8"))),
    }
}

/// Go believes $PWD when it leads to the current folder: `..` then leads back over the links that led there.
fn current_folder() -> Result<PathBuf, Failure> {
    let real = env::current_dir().map_err(|error| Failure::path("getwd", ".", &error))?;
    let logical = env::var_os("PWD").map(PathBuf::from);
    let logical =
        logical.filter(|path| path.is_absolute() && fs::canonicalize(path).is_ok_and(|at| at == real));
    Ok(logical.unwrap_or(real))
}

/// Takes `.` and `..` out of an absolute path without a look at the files.
fn clean(path: &Path) -> PathBuf {
    let mut clean = PathBuf::from("/");
    for part in path.components() {
        match part {
            Component::ParentDir => {
                clean.pop();
            }
            Component::Normal(name) => clean.push(name),
            _ => {}
        }
    }
    clean
}

fn missing(path: &str, absolute: &Path, error: &io::Error) -> Failure {
    let there = |path: &&Path| fs::symlink_metadata(path).is_err();
    let first_missing = absolute.ancestors().take_while(there).last().unwrap_or(absolute);
    let Failure::Path(why) = Failure::path("lstat", first_missing, error) else {
        return Failure::Place(path.to_owned());
    };
    Failure::Place(format!(
        "not a valid directory: evalsymlink failure on '{path}' : {why}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_cleaned_as_text() {
        for (path, cleaned) in [("/a/./b//../c/", "/a/c"), ("/../..", "/"), ("/", "/")] {
            assert_eq!(clean(Path::new(path)), Path::new(cleaned));
        }
    }
}
