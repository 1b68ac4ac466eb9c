//! `windlass tag`: another tag for what a registry has. Only the manifest is sent; no blob is moved.
//!
//! A release in the sense of a pipeline: the tested image, by its digest, gets the tag that an ImagePolicy follows.

use clap::Args;
use oci_client::name::Name;
use oci_client::registry::Repository;
use oci_client::{Digest, media_type};

use crate::cluster::{Failure, print};
use crate::push::{self, login, registry};

/// Command line of `tag`.
#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// Image to tag, as [oci://]HOST/REPOSITORY:TAG or [oci://]HOST/REPOSITORY@DIGEST
    #[arg(value_name = "SOURCE")]
    source: String,

    /// New tag; a tag that exists is moved
    #[arg(value_name = "TAG")]
    tag: String,

    /// Registry credentials, as USER:PASSWORD; defaults to those of `docker login`
    #[arg(
        long,
        value_name = "USER:PASSWORD",
        hide_env_values = true,
        env = "WINDLASS_CREDS"
    )]
    creds: Option<String>,

    /// Allow connections to the registry over HTTP
    #[arg(long)]
    insecure_registry: bool,
}

/// Tags.
pub(crate) fn run(flags: &Flags) -> Result<(), Failure> {
    let (name, reference) = source(&flags.source)?;
    if !oci_client::is_tag(&flags.tag) {
        return Err(Failure::Usage(format!("{:?} is no tag", flags.tag)));
    }
    let credentials = login::credentials(&name, flags.creds.as_deref())?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failure::Runtime)?;
    let tagged = runtime.block_on(async {
        let repository = registry::repository(name.clone(), credentials, flags.insecure_registry)?;
        tag(&repository, &reference, &flags.tag).await
    });
    let digest = tagged.map_err(|why| Failure::Request {
        what: format!("tag {} as {}", flags.source, flags.tag),
        why,
    })?;
    print(&format!(
        "tagged {} as {}\n",
        name.pinned(&digest.to_string()),
        name.tagged(&flags.tag)
    ))
}

/// The repository, and the tag or digest in it.
fn source(text: &str) -> Result<(Name, String), Failure> {
    let url = match text.strip_prefix("oci://") {
        Some(_) => text.to_owned(),
        None => format!("oci://{text}"),
    };
    let Some((repository, digest)) = url.split_once('@') else {
        return push::place(&url);
    };
    let usage = |why: String| Failure::Usage(format!("{text:?}: {why}"));
    let digest: Digest = digest
        .parse()
        .map_err(|_| usage(format!("{digest:?} is no digest")))?;
    let name = Name::parse(repository).map_err(|error| usage(error.to_string()))?;
    Ok((name, digest.to_string()))
}

async fn tag(repository: &Repository, reference: &str, tag: &str) -> Result<Digest, String> {
    let read = repository.manifest(reference).await;
    let (manifest, type_) = read.map_err(|error| registry::explained(&error))?;
    let digest = Digest::from_content(&manifest);
    if reference.contains(':') && reference != digest.to_string() {
        return Err(format!("the registry answers with {digest} instead"));
    }
    let type_ = type_.as_deref().and_then(media_type);
    let type_ = type_.ok_or("it is neither an image nor an index of images")?;
    let pushed = repository.push_manifest(tag, type_, &manifest).await;
    pushed.map_err(|error| registry::explained(&error))?;
    Ok(digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_named_by_tag_or_digest() {
        let digest = format!("sha256:{}", "0".repeat(64));
        let found =
            |text: &str| source(text).map(|(name, reference)| format!("{} {reference}", name.pinned("")));
        for (text, expected) in [
            ("ghcr.io/org/app:v1", "ghcr.io/org/app@ v1".to_owned()),
            (
                "oci://localhost:5000/app",
                "localhost:5000/app@ latest".to_owned(),
            ),
            (&format!("ghcr.io/app@{digest}"), format!("ghcr.io/app@ {digest}")),
        ] {
            assert_eq!(found(text).unwrap(), expected);
        }
        for text in [
            "ghcr.io/app@sha256:0",
            "ghcr.io/App:v1",
            "ghcr.io/app:",
            "https://ghcr.io/app:v1",
        ] {
            assert!(matches!(source(text), Err(Failure::Usage(_))), "{text}");
        }
    }
}
