//! Where a version of a chart is downloaded: its `urls` may be relative to the repository.

use url::Url;

/// An address that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("failed to parse {text} as URL: {source}")]
pub struct ResolveError {
    text: String,
    #[source]
    source: url::ParseError,
}

/// The absolute address of a chart. A relative one lies below the repository's address and keeps its query.
///
/// # Errors
/// When one of them is no address.
pub fn resolve_url(repository: &str, reference: &str) -> Result<String, ResolveError> {
    let failed = |text: &str| {
        let text = text.to_owned();
        move |source| ResolveError { text, source }
    };
    match Url::parse(reference) {
        Ok(_) => return Ok(reference.to_owned()),
        Err(url::ParseError::RelativeUrlWithoutBase) => {}
        Err(error) => return Err(failed(reference)(error)),
    }
    let mut base = Url::parse(repository).map_err(failed(repository))?;
    let query = base.query().map(str::to_owned);
    let folder = format!("{}/", base.path().strip_suffix('/').unwrap_or(base.path()));
    base.set_path(&folder);
    let mut resolved = base.join(reference).map_err(failed(reference))?;
    resolved.set_query(query.as_deref());
    Ok(resolved.into())
}

#[cfg(test)]
mod tests {
    use super::resolve_url;

    #[test]
    fn relative_addresses_lie_below_the_repository() {
        let cases = [
            ("https://h/charts", "a-1.tgz", "https://h/charts/a-1.tgz"),
            ("https://h/charts/", "a-1.tgz", "https://h/charts/a-1.tgz"),
            (
                "https://h/charts?token=x",
                "a-1.tgz",
                "https://h/charts/a-1.tgz?token=x",
            ),
            ("https://h/charts", "/top/a-1.tgz", "https://h/top/a-1.tgz"),
            ("https://h/charts", "../a-1.tgz?x=y", "https://h/a-1.tgz"),
            ("https://h/charts", "//other/a-1.tgz", "https://other/a-1.tgz"),
            ("https://h/a%20b/", "c%2Fd.tgz", "https://h/a%20b/c%2Fd.tgz"),
            ("https://h/charts", "http://other/a-1.tgz", "http://other/a-1.tgz"),
            ("https://h/charts", "oci://other/a:1", "oci://other/a:1"),
        ];
        for (repository, reference, expected) in cases {
            assert_eq!(resolve_url(repository, reference).unwrap(), expected);
        }
        let error = resolve_url("https://h/charts", "http://[x/a.tgz").unwrap_err();
        assert_eq!(
            error.to_string(),
            "failed to parse http://[x/a.tgz as URL: invalid IPv6 address"
        );
    }
}
