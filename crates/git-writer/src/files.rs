//! Names of files in a repository. Pure.

/// Returns a path within the repository, from which none leads out.
pub fn cleaned(path: &str) -> String {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Returns the rest of a path below a folder.
pub fn below<'p>(path: &'p str, folder: &str) -> Option<&'p str> {
    path.strip_prefix(folder)?.strip_prefix('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_path_leads_out_of_the_repository() {
        for (path, expected) in [
            ("", ""),
            ("./", ""),
            ("./clusters/prod/", "clusters/prod"),
            ("/clusters", "clusters"),
            ("../../etc", "etc"),
            ("a/../../b", "b"),
        ] {
            assert_eq!(cleaned(path), expected);
        }
    }
}
