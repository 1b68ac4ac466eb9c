//! Request for a fetch.

use std::path::PathBuf;

use reqwest::header::HeaderValue;
use tokio::time::Instant;
use transport::http;
use transport::stop::Stop;
use url::Url;

use crate::pack::Pack;
use crate::reference::Reference;
use crate::sparse::Sparse;

/// A repository and how to reach it.
pub struct Remote {
    /// Without a password; with a user only for ssh.
    pub url: Url,
    /// Over which protocol, and as whom.
    pub way: Way,
}

/// How a remote is reached.
pub enum Way {
    /// Over http or https.
    Http {
        /// Client with the object's TLS and proxy settings.
        client: http::Client,
        /// Sent to the server of the URL only.
        authorization: Option<HeaderValue>,
    },
    /// Over ssh.
    Ssh(Box<crate::ssh::Settings>),
}

/// One fetch.
pub struct Request {
    /// The repository.
    pub remote: Remote,
    /// The reference to fetch.
    pub reference: Reference,
    /// The folders that are wanted; all without.
    pub sparse: Option<Sparse>,
    /// When the remote is at this revision, nothing but ls-refs is requested.
    pub unless_revision: Option<String>,
    /// What was received before, all or a part: of a server that leaves out what is in it, the rest is received.
    pub over: Option<Pack>,
    /// Where temporary packs go.
    pub directory: PathBuf,
    /// How packs are received.
    pub packs: git_pack::Settings,
    /// All must be over by then.
    pub deadline: Instant,
    /// Ends the fetch before that.
    pub stop: Stop,
}
