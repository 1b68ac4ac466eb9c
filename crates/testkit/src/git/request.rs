//! Requests of a Git client, read from HTTP: the evidence for "one `ls-refs` and nothing else".

use std::io::Read as _;

use axum::http::{HeaderMap, header};
use flate2::read::GzDecoder;

/// One request that reached the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The repository's name, without `.git`.
    pub repository: String,
    /// Kind of the request.
    pub kind: Kind,
    /// True if the credentials were good.
    pub allowed: bool,
}

/// Kind of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `GET info/refs` for reading: capabilities in protocol 2, all references in older ones.
    InfoRefs,
    /// The `ls-refs` command of protocol 2.
    LsRefs,
    /// A request for objects.
    Fetch,
    /// Anything of a push.
    Push,
    /// Anything else, such as the files of the dumb protocol.
    Other,
}

impl Kind {
    pub(super) fn new(path: &str, query: &str, headers: &HeaderMap, body: &[u8]) -> Self {
        if path.ends_with("/git-receive-pack") || query.contains("service=git-receive-pack") {
            return Self::Push;
        }
        if path.ends_with("/info/refs") && query.contains("service=git-upload-pack") {
            return Self::InfoRefs;
        }
        if !path.ends_with("/git-upload-pack") {
            return Self::Other;
        }
        // The command is the first packet of a protocol 2 request; older protocols only ever fetch with this.
        let start = start_of(headers, body);
        let command = b"command=ls-refs";
        if start.windows(command.len()).any(|window| window == command) {
            Self::LsRefs
        } else {
            Self::Fetch
        }
    }
}

/// git compresses requests of more than a kilobyte.
fn start_of(headers: &HeaderMap, body: &[u8]) -> Vec<u8> {
    let compressed = headers
        .get(header::CONTENT_ENCODING)
        .is_some_and(|encoding| encoding.as_bytes() == b"gzip");
    let mut start = Vec::new();
    let read = if compressed {
        GzDecoder::new(body).take(64).read_to_end(&mut start)
    } else {
        body.take(64).read_to_end(&mut start)
    };
    // What was read before an error is all that can be judged.
    let _ = read;
    start
}

/// How often each kind of request came.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// `GET info/refs` for reading.
    pub info_refs: usize,
    /// `ls-refs` commands.
    pub ls_refs: usize,
    /// Requests for objects.
    pub fetch: usize,
    /// Requests of pushes.
    pub push: usize,
    /// Everything else.
    pub other: usize,
}

impl Counts {
    pub(super) fn from_requests(requests: &[Request]) -> Self {
        let count = |kind| requests.iter().filter(|request| request.kind == kind).count();
        Self {
            info_refs: count(Kind::InfoRefs),
            ls_refs: count(Kind::LsRefs),
            fetch: count(Kind::Fetch),
            push: count(Kind::Push),
            other: count(Kind::Other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn requests_are_told_apart_by_path_service_and_command() {
        let plain = HeaderMap::new();
        for (path, query, body, kind) in [
            ("/a.git/info/refs", "service=git-upload-pack", "", Kind::InfoRefs),
            ("/a.git/info/refs", "service=git-receive-pack", "", Kind::Push),
            ("/a.git/info/refs", "", "", Kind::Other),
            (
                "/a.git/git-upload-pack",
                "",
                "0014command=ls-refs\n0000",
                Kind::LsRefs,
            ),
            (
                "/a.git/git-upload-pack",
                "",
                "0013command=ls-refs0000",
                Kind::LsRefs,
            ),
            ("/a.git/git-upload-pack", "", "0012command=fetch0000", Kind::Fetch),
            ("/a.git/git-upload-pack", "", "0032want 0123", Kind::Fetch),
            ("/a.git/git-receive-pack", "", "", Kind::Push),
            ("/a.git/HEAD", "", "", Kind::Other),
        ] {
            assert_eq!(
                Kind::new(path, query, &plain, body.as_bytes()),
                kind,
                "{path}?{query} {body}"
            );
        }
    }

    #[test]
    fn a_compressed_command_is_read() {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(b"0014command=ls-refs\n").unwrap();
        let headers = HeaderMap::from_iter([(header::CONTENT_ENCODING, "gzip".parse().unwrap())]);
        assert_eq!(
            Kind::new("/a.git/git-upload-pack", "", &headers, &encoder.finish().unwrap()),
            Kind::LsRefs
        );
    }
}
