//! Reads `.gitmodules`.

use std::collections::BTreeMap;

use gix::bstr::{BStr, ByteSlice as _};

/// A file that is not in the format of git config.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it is not in the format of git config")]
pub struct Malformed;

/// Reads `.gitmodules`: the address of each submodule by its folder.
///
/// # Errors
///
/// When the file is not in the format of git config.
pub fn addresses(file: &[u8]) -> Result<BTreeMap<String, String>, Malformed> {
    let text: &BStr = file.as_bstr();
    let config = gix::config::File::try_from(text).map_err(|_| Malformed)?;
    let mut addresses = BTreeMap::new();
    for section in config.sections_by_name("submodule").into_iter().flatten() {
        let text = |name: &str| {
            section
                .value(name)
                .and_then(|value| value.to_str().ok().map(str::to_owned))
        };
        if let (Some(path), Some(url)) = (text("path"), text("url")) {
            addresses.insert(path.trim_end_matches('/').to_owned(), url);
        }
    }
    Ok(addresses)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_git_reads_them() {
        let file = "[submodule \"a b\"]\n\tpath = x/y/\n\turl = \"../z.git\" ; why\n[submodule \"no-url\"]\npath = q\n[core]\nx=1\n";
        let found = addresses(file.as_bytes()).unwrap();
        assert_eq!(
            found.into_iter().collect::<Vec<_>>(),
            [("x/y".to_owned(), "../z.git".to_owned())]
        );
        assert!(addresses(b"[submodule").is_err());
        assert!(addresses(b"").unwrap().is_empty());
    }
}
