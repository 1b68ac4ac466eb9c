//! Addresses of pages. Names in them are encoded: none leads elsewhere.

use fleet::row::Row;
use url::form_urlencoded::{Serializer, byte_serialize};

/// One part of a path.
fn part(text: &str) -> String {
    let encoded: String = byte_serialize(text.as_bytes()).collect();
    // In a path, a plus is a plus; and dots alone are a way up.
    match encoded.replace('+', "%20") {
        dots if dots == "." || dots == ".." => dots.replace('.', "%2E"),
        encoded => encoded,
    }
}

/// The page of an object.
pub fn object(cluster: &str, kind: &str, namespace: &str, name: &str) -> String {
    format!(
        "/objects/{}/{}/{}/{}",
        part(cluster),
        part(kind),
        part(namespace),
        part(name)
    )
}

/// The page of a row's object.
pub fn row(row: &Row) -> String {
    object(&row.cluster, row.kind, &row.namespace, &row.name)
}

/// The page of `Kind/namespace/name` in a cluster; None if it is no object of Flux or Windlass.
pub fn id(cluster: &str, id: &str) -> Option<String> {
    let id = delivery_graph::kind::parse_id(id)?;
    Some(object(cluster, &id.kind, &id.namespace, &id.name))
}

/// A path with parameters; empty ones are left out.
pub fn with(path: &str, parameters: &[(&str, &str)]) -> String {
    let given = parameters.iter().filter(|(_, value)| !value.is_empty());
    match Serializer::new(String::new())
        .extend_pairs(given)
        .finish()
        .as_str()
    {
        "" => path.to_owned(),
        query => format!("{path}?{query}"),
    }
}

/// Where a change is.
pub fn change(revision: &str) -> String {
    with("/change", &[("q", commit_of(revision))])
}

/// The commit or digest of a revision: `main@sha1:4f3a…`.
pub fn commit_of(revision: &str) -> &str {
    revision.rsplit_once(':').map_or(revision, |(_, commit)| commit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_do_not_lead_elsewhere() {
        assert_eq!(
            object("eu/1", "ks", "..", "a?b#c"),
            "/objects/eu%2F1/ks/%2E%2E/a%3Fb%23c"
        );
        assert_eq!(
            with("/apps", &[("q", "a&b=c"), ("after", "")]),
            "/apps?q=a%26b%3Dc"
        );
        assert_eq!(change("main@sha1:4f3a"), "/change?q=4f3a");
        assert_eq!(id("eu", "Secret/shop/a"), None);
    }
}
