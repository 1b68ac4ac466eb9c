//! `windlass push artifact`: a folder to a registry, as an artifact of Flux, for an OCIRepository.
//!
//! The same folder, source, revision and annotations give the same digest, whenever and wherever it is pushed.

mod folder;
mod image;
pub(crate) mod login;
pub(crate) mod registry;

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use oci_client::name::Name;
use serde_json::json;

use crate::cluster::{Failure, Output, output, print};
use crate::progress::Progress;
use image::Image;

/// Command line of `push`.
#[derive(Debug, Args)]
pub(crate) struct Flags {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Push a directory or file as an OCI artifact for an OCIRepository.
    Artifact(Box<Artifact>),
}

#[derive(Debug, Args)]
struct Artifact {
    /// oci://HOST/REPOSITORY:TAG
    #[arg(value_name = "URL")]
    url: String,

    /// Directory or file to push
    #[arg(long, short = 'f', value_name = "PATH")]
    path: PathBuf,

    /// Origin of the content, e.g. the URL of the Git repository
    #[arg(long, value_name = "URL")]
    source: String,

    /// Revision of the content, as BRANCH@sha1:COMMIT or TAG@sha1:COMMIT
    #[arg(long, value_name = "REVISION")]
    revision: String,

    /// Annotations of the artifact, as KEY=VALUE
    #[arg(long, short, value_name = "KEY=VALUE", value_parser = annotation)]
    annotations: Vec<(String, String)>,

    /// Creation time, e.g. 2026-01-02T03:04:05Z; defaults to $SOURCE_DATE_EPOCH, or 1970-01-01T00:00:00Z
    #[arg(long, value_name = "TIME")]
    created: Option<jiff::Timestamp>,

    /// Paths to exclude, in .gitignore syntax, in addition to .sourceignore files
    #[arg(long, value_name = "PATTERN", value_delimiter = ',', default_value = folder::IGNORED)]
    ignore_paths: Vec<String>,

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

    /// Do not show progress
    #[arg(long, short)]
    quiet: bool,

    /// Output format
    #[arg(long, short, value_enum, default_value_t)]
    output: Form,
}

/// The forms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Form {
    /// One line
    #[default]
    Text,
    /// JSON
    Json,
    /// YAML
    Yaml,
}

/// Pushes.
pub(crate) fn run(flags: &Flags) -> Result<(), Failure> {
    let What::Artifact(flags) = &flags.what;
    let (name, tag) = place(&flags.url)?;
    let layer = folder::pack(&flags.path, &flags.ignore_paths)?;
    let image = Image::new(layer, annotations(flags)?, created(flags)?)?;
    let credentials = login::credentials(&name, flags.creds.as_deref())?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failure::Runtime)?;
    let progress = Progress::new(flags.quiet);
    let digest = image.digest.clone();
    let pushed = runtime.block_on(async {
        let repository = registry::repository(name.clone(), credentials, flags.insecure_registry)?;
        registry::push(&repository, image, &tag, &progress).await
    });
    pushed.map_err(|why| Failure::Request {
        what: format!("push to {}", name.tagged(&tag)),
        why,
    })?;
    progress.clear();
    let url = format!("oci://{}", name.pinned(&digest));
    match flags.output {
        Form::Text => print(&format!("pushed {url}\n")),
        form => {
            let repository = format!("{}/{}", name.registry, name.repository);
            let value = json!({"url": url, "repository": repository, "tag": tag, "digest": digest});
            let output = if form == Form::Json {
                Output::Json
            } else {
                Output::Yaml
            };
            print(&output::document(&value, output)?)
        }
    }
}

fn annotation(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("write KEY=VALUE".to_owned()),
    }
}

/// Takes the tag off a URL.
pub(crate) fn place(url: &str) -> Result<(Name, String), Failure> {
    let usage = |why: String| Failure::Usage(format!("{url:?}: {why}"));
    if url.contains('@') {
        return Err(usage("name a tag, and no digest".to_owned()));
    }
    let last = url.rfind('/').unwrap_or(0);
    let (repository, tag) = match url[last..].split_once(':') {
        Some((name, tag)) => (&url[..last + name.len()], tag),
        None => (url, "latest"),
    };
    if !oci_client::is_tag(tag) {
        return Err(usage(format!("{tag:?} is no tag")));
    }
    let name = Name::parse(repository).map_err(|error| usage(error.to_string()))?;
    Ok((name, tag.to_owned()))
}

fn annotations(flags: &Artifact) -> Result<BTreeMap<String, String>, Failure> {
    let mut annotations = BTreeMap::from([
        (image::SOURCE.to_owned(), flags.source.clone()),
        (image::REVISION.to_owned(), flags.revision.clone()),
    ]);
    annotations.extend(flags.annotations.iter().cloned());
    annotations.insert(image::CREATED.to_owned(), created(flags)?);
    Ok(annotations)
}

/// A time that is the same for the same content, unless someone wants to report_line one.
fn created(flags: &Artifact) -> Result<String, Failure> {
    if let Some((_, given)) = flags.annotations.iter().find(|(key, _)| key == image::CREATED) {
        return Ok(given.clone());
    }
    let seconds = |time: jiff::Timestamp| jiff::Timestamp::from_second(time.as_second()).unwrap_or(time);
    if let Some(time) = flags.created {
        return Ok(seconds(time).to_string());
    }
    let epoch = std::env::var("SOURCE_DATE_EPOCH")
        .ok()
        .filter(|text| !text.is_empty());
    let epoch = epoch.map(|text| {
        text.parse()
            .ok()
            .and_then(|epoch| jiff::Timestamp::from_second(epoch).ok())
    });
    match epoch {
        None => Ok(jiff::Timestamp::UNIX_EPOCH.to_string()),
        Some(Some(time)) => Ok(time.to_string()),
        Some(None) => Err(Failure::Usage(
            "$SOURCE_DATE_EPOCH is no number of seconds since 1970".to_owned(),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_ends_with_a_tag() {
        let placed = |url: &str| place(url).map(|(name, tag)| name.tagged(&tag));
        for (url, expected) in [
            ("oci://ghcr.io/org/app:v1", "ghcr.io/org/app:v1"),
            ("oci://localhost:5000/app:main", "localhost:5000/app:main"),
            ("oci://localhost:5000/app", "localhost:5000/app:latest"),
        ] {
            assert_eq!(placed(url).unwrap(), expected);
        }
        for url in [
            "ghcr.io/org/app:v1",
            "oci://ghcr.io/app@sha256:00",
            "oci://ghcr.io/app:",
            "oci://ghcr.io/app:a b",
            "oci://ghcr.io/App:v1",
        ] {
            assert!(matches!(place(url), Err(Failure::Usage(_))), "{url}");
        }
    }
}
