//! `Bucket`: the objects of a bucket.

mod access;

use api::delivery::PolicySourceKind;
use api::meta::Artifact;
use api::source::{Bucket, BucketStatus, Source as _};
use artifact::store::Ingest;
use bucket_client::index::Memory;
use bucket_client::{self, File};
use kube::ResourceExt as _;
use verification_policy::sources::{Origin, Trust};

use super::{Failure, Fetch, Fetched, Kind, Seen};
use crate::error::{BucketError, Error};
use crate::reconcile::fetch::Fetcher;
use crate::reconcile::reader::Reader;

pub(crate) use access::{AccessError, Purpose, References, read, remote};

/// The files of a bucket, and where their index is kept.
pub(crate) struct Content {
    content: bucket_client::Content,
    memory: Memory,
}

impl Kind for Bucket {
    const NAME: &'static str = "Bucket";
    const HAS_LATEST_URL: bool = true;
    const POLICY_KIND: PolicySourceKind = PolicySourceKind::Bucket;
    type References = References;
    type Content = Content;

    fn refusal(&self) -> Option<Error> {
        access::refusal(self)
    }

    async fn read_references(&self, reader: &Reader) -> Result<References, Error> {
        access::read(self, reader).await
    }

    /// Ignore rules are part of the revision: if they change, the revision changes only with the artifact.
    fn settings_changed(&self) -> bool {
        false
    }

    async fn fetch(
        &self,
        references: &References,
        unless_revision: Option<String>,
        fetcher: &Fetcher,
    ) -> Result<Fetch<Content>, Failure> {
        let namespace = self.namespace().unwrap_or_default();
        let memory = Memory::new(
            &fetcher.indexes,
            &namespace,
            &self.name_any(),
            references.store.clone(),
        );
        let request = bucket_client::Request {
            remote: access::remote(self, references, fetcher, Purpose::Read).await?,
            bucket: self.spec.bucket_name.clone(),
            has_prefix: self.spec.prefix.is_some(),
            ignore: self.spec.ignore.clone(),
            memory: memory.clone(),
            deadline: fetcher.deadline(self.timeout()),
            directory: fetcher.directory.clone(),
        };
        let fetched = bucket_client::fetch(request, unless_revision.as_deref()).await;
        let content = match fetched.map_err(|error| Error::Bucket(BucketError::Fetch(error)))? {
            bucket_client::Fetched::Unchanged(revision) => return Ok(Fetch::Unchanged { revision }),
            bucket_client::Fetched::Changed(content) => content,
        };
        let revision = content.revision.clone();
        Ok(Fetch::New(Fetched {
            filename: format!("{}.tar.gz", revision.trim_start_matches("sha256:")),
            seen: Seen {
                message: format!("new upstream revision '{revision}'"),
                revision,
            },
            metadata: std::collections::BTreeMap::new(),
            headline: Some(format!("{} fetched files", content.index.count())),
            content: Content { content, memory },
        }))
    }

    fn origin(&self, references: &References) -> Option<Origin> {
        Some(access::origin(self, references))
    }

    async fn meets(
        &self,
        _trust: &Trust,
        _references: &References,
        _fetched: &mut Fetched<Content>,
        _fetcher: &Fetcher,
    ) -> Result<(), String> {
        Err("the files of a bucket have no signature".to_owned())
    }

    fn fill(content: Content, ingest: &mut Ingest) -> Result<(), Error> {
        let Content { content, memory } = content;
        for (path, file) in &content.files {
            match file {
                File::Blob(digest) => ingest.add_file(path, false, memory.store().read_blob(digest, 0)?)?,
                File::Fetched(file) => {
                    let file = std::fs::File::open(file).map_err(Error::MakeDirectory)?;
                    ingest.add_file(path, false, file)?;
                }
                File::Ignore(text) => ingest.add_file(path, false, text.as_slice())?,
            }
        }
        // Without it everything is fetched the next time, which is no reason to have no artifact.
        if let Err(error) = memory.keep(&content.index) {
            tracing::warn!(%error, "failed to keep the index of a bucket");
        }
        Ok(())
    }

    fn in_storage_message(revision: &str) -> String {
        format!("stored artifact: revision '{revision}'")
    }

    fn announcement(&self, _artifact: &Artifact, headline: Option<&str>) -> String {
        let name = &self.spec.bucket_name;
        match headline {
            Some(files) => format!("stored artifact with {files} from '{name}' bucket"),
            None => format!("stored artifact from '{name}' bucket"),
        }
    }

    fn set_artifact(status: &mut BucketStatus, artifact: Option<Artifact>, latest_url: Option<String>) {
        status.artifact = artifact;
        status.url = latest_url;
    }

    fn note_settings(&self, status: &mut BucketStatus) {
        status.observed_ignore = self.spec.ignore.clone();
    }
}

#[cfg(test)]
mod tests;
