//! Between the messages of the service and the store's types.

use artifact::{
    Digest,
    store::{self, Record},
    tree::{Directory, EntryKind},
};
use artifact_proto::v1;
use tonic::Status;

pub(super) fn artifact(record: &Record, verbatim: bool) -> v1::Artifact {
    let object = v1::Object {
        kind: record.kind.clone(),
        namespace: record.namespace.clone(),
        name: record.name.clone(),
    };
    v1::Artifact {
        object: Some(object),
        revision: record.revision.clone(),
        digest: record.digest.to_string(),
        size: signed(record.size),
        tree: record.tree.to_string(),
        path: record.path.clone(),
        last_update_time: record.last_update_time.to_string(),
        metadata: record.metadata.clone().into_iter().collect(),
        verbatim,
    }
}

pub(super) fn directory(digest: &Digest, directory: &Directory) -> v1::Directory {
    let entry = |entry: &artifact::tree::Entry| {
        let kind = match entry.kind {
            EntryKind::File => v1::entry::Kind::File,
            EntryKind::Executable => v1::entry::Kind::Executable,
            EntryKind::Directory => v1::entry::Kind::Directory,
        };
        let (name, digest) = (entry.name.clone(), entry.digest.to_string());
        v1::Entry {
            kind: kind.into(),
            name,
            digest,
            size: signed(entry.size),
        }
    };
    v1::Directory {
        digest: digest.to_string(),
        entries: directory.entries().iter().map(entry).collect(),
    }
}

#[allow(clippy::result_large_err, reason = "tonic's own type")]
pub(super) fn digest(text: &str) -> Result<Digest, Status> {
    text.parse()
        .map_err(|error: artifact::digest::ParseError| Status::invalid_argument(error.to_string()))
}

/// The root that a request names, if it does.
#[allow(clippy::result_large_err, reason = "tonic's own type")]
pub(super) fn root(text: &str) -> Result<Option<Digest>, Status> {
    if text.is_empty() {
        return Ok(None);
    }
    digest(text).map(Some)
}

#[allow(clippy::result_large_err, reason = "tonic's own type")]
pub(super) fn offset(offset: i64) -> Result<u64, Status> {
    u64::try_from(offset).map_err(|_| Status::out_of_range("the offset is negative"))
}

/// Status for the client. Paths and messages of the file system are left out.
pub(in crate::serve) fn status(error: &store::Error) -> Status {
    match error {
        store::Error::NotFound { .. } => Status::not_found(error.to_string()),
        store::Error::Offset { .. } => Status::out_of_range(error.to_string()),
        store::Error::Corrupt { .. } => Status::data_loss(error.to_string()),
        _ => {
            tracing::error!(
                error = error as &dyn std::error::Error,
                "failed to serve an artifact"
            );
            Status::internal("the artifact store failed")
        }
    }
}

/// Sizes are those of files, which no file system has beyond this.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
