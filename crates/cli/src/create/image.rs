//! `windlass create image repository|policy|update`.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::{Common, Interval, Made, named};
use crate::cluster::Failure;

const API: &str = "image.toolkit.fluxcd.io/v1";

#[derive(Debug, Subcommand)]
pub(super) enum Kind {
    /// Create an ImageRepository: an image whose tags are watched.
    Repository(Box<Repository>),
    /// Create an ImagePolicy: which tag of an image is the newest.
    Policy(Box<Policy>),
    /// Create an ImageUpdateAutomation: which files get the newest tags.
    Update(Box<Update>),
}

/// Command line of `create image repository`.
#[derive(Debug, Args)]
pub(super) struct Repository {
    #[command(flatten)]
    common: Common,

    #[command(flatten)]
    interval: Interval,

    /// Image, without a tag
    #[arg(long, value_name = "IMAGE")]
    image: String,

    /// Secret with the credentials of the registry
    #[arg(long, value_name = "NAME")]
    secret_ref: Option<String>,

    /// Secret with certificates for the registry
    #[arg(long, value_name = "NAME")]
    cert_secret_ref: Option<String>,
}

/// Command line of `create image policy`.
#[derive(Debug, Args)]
pub(super) struct Policy {
    #[command(flatten)]
    common: Common,

    /// ImageRepository
    #[arg(long, value_name = "NAME")]
    image_ref: String,

    /// Take the highest version in this range
    #[arg(long, value_name = "RANGE", group = "select")]
    select_semver: Option<String>,

    /// Take the last tag in alphabetical order, or the first with desc
    #[arg(long, value_name = "ORDER", value_parser = ["asc", "desc"], group = "select")]
    select_alpha: Option<String>,

    /// Take the highest number, or the lowest with desc
    #[arg(long, value_name = "ORDER", value_parser = ["asc", "desc"], group = "select")]
    select_numeric: Option<String>,

    /// Consider only tags that match this pattern
    #[arg(long, value_name = "PATTERN")]
    filter_regex: Option<String>,

    /// Part of the tag to compare, such as $ts
    #[arg(long, value_name = "TEXT", requires = "filter_regex")]
    filter_extract: Option<String>,
}

/// Command line of `create image update`.
#[derive(Debug, Args)]
pub(super) struct Update {
    #[command(flatten)]
    common: Common,

    #[command(flatten)]
    interval: Interval,

    /// GitRepository to write to
    #[arg(long, value_name = "NAME")]
    git_repo_ref: String,

    /// Namespace of the GitRepository
    #[arg(long, value_name = "NAME")]
    git_repo_namespace: Option<String>,

    /// Folder of the manifests that are updated
    #[arg(long, value_name = "PATH")]
    git_repo_path: Option<String>,

    /// Branch to read; defaults to that of the GitRepository
    #[arg(long, value_name = "NAME")]
    checkout_branch: Option<String>,

    /// Branch to push to; defaults to the one that is read
    #[arg(long, value_name = "NAME")]
    push_branch: Option<String>,

    /// Template of the commit message
    #[arg(long, value_name = "TEXT")]
    commit_template: Option<String>,

    /// Author of the commits
    #[arg(long, value_name = "TEXT")]
    author_name: Option<String>,

    /// Mail address of the author
    #[arg(long, value_name = "TEXT")]
    author_email: String,
}

impl Kind {
    pub(super) fn objects(&self) -> Result<Made<'_>, Failure> {
        match self {
            Self::Repository(flags) => flags.objects(),
            Self::Policy(flags) => flags.objects(),
            Self::Update(flags) => flags.objects(),
        }
    }
}

impl Repository {
    fn objects(&self) -> Result<Made<'_>, Failure> {
        let spec = json!({
            "image": self.image, "interval": self.interval.text(),
            "secretRef": named(self.secret_ref.as_ref()), "certSecretRef": named(self.cert_secret_ref.as_ref()),
        });
        Ok((
            &self.common,
            vec![self.common.object(API, "ImageRepository", spec)],
        ))
    }
}

impl Policy {
    fn objects(&self) -> Result<Made<'_>, Failure> {
        let policy = match (&self.select_semver, &self.select_alpha, &self.select_numeric) {
            (Some(range), _, _) => json!({"semver": {"range": range}}),
            (_, Some(order), _) => json!({"alphabetical": {"order": order}}),
            (_, _, Some(order)) => json!({"numerical": {"order": order}}),
            _ => {
                return Err(Failure::Usage(
                    "say how tags are ordered, with --select-semver, --select-alpha or --select-numeric"
                        .to_owned(),
                ));
            }
        };
        let filter = match &self.filter_regex {
            Some(pattern) => json!({"pattern": pattern, "extract": self.filter_extract}),
            None => Value::Null,
        };
        let spec =
            json!({"imageRepositoryRef": {"name": self.image_ref}, "policy": policy, "filterTags": filter});
        Ok((&self.common, vec![self.common.object(API, "ImagePolicy", spec)]))
    }
}

impl Update {
    fn objects(&self) -> Result<Made<'_>, Failure> {
        let update = match &self.git_repo_path {
            Some(path) => json!({"path": path, "strategy": "Setters"}),
            None => Value::Null,
        };
        let spec = json!({
            "interval": self.interval.text(),
            "sourceRef": {"kind": "GitRepository", "name": self.git_repo_ref, "namespace": self.git_repo_namespace},
            "git": {
                "checkout": {"ref": {"branch": self.checkout_branch}},
                "commit": {
                    "author": {"name": self.author_name, "email": self.author_email},
                    "messageTemplate": self.commit_template,
                },
                "push": {"branch": self.push_branch},
            },
            "update": update,
        });
        Ok((
            &self.common,
            vec![self.common.object(API, "ImageUpdateAutomation", spec)],
        ))
    }
}
