//! The flags of the backup: which bucket, and how it is reached.

use api::meta::LocalObjectReference;
use api::source::{BucketProvider, BucketSpec};
use clap::ArgAction;
use controller_kit::flags::parse_bool;

/// Where current artifacts are copied to. The fields are those of a Bucket.
#[derive(clap::Args, Debug, Clone)]
pub(crate) struct BackupFlags {
    /// Bucket that has a copy of all current artifacts, from which lost ones are restored. If empty, there is no backup
    #[arg(long, default_value = "", value_name = "NAME")]
    pub(crate) backup_bucket: String,
    /// Provider of the bucket
    #[arg(long, value_parser = ["generic", "aws", "gcp", "azure"], default_value = "generic", value_name = "NAME")]
    pub(crate) backup_provider: String,
    /// Host of an S3 bucket, such as s3.amazonaws.com or minio:9000, or URL of an Azure storage account
    #[arg(long, default_value = "", value_name = "ENDPOINT")]
    pub(crate) backup_endpoint: String,
    /// Region of the bucket
    #[arg(long, default_value = "", value_name = "REGION")]
    pub(crate) backup_region: String,
    /// Prefix of all names in the bucket, such as clusters/eu. Clusters that share a bucket need one each
    #[arg(long, default_value = "", value_name = "PREFIX")]
    pub(crate) backup_prefix: String,
    /// Secret in this controller's namespace with the credentials, as a Bucket's secretRef. If empty, the identity of this process is used
    #[arg(long, default_value = "", value_name = "NAME")]
    pub(crate) backup_secret: String,
    /// Secret in this controller's namespace with the certificate authority (ca.crt) of the endpoint
    #[arg(long, default_value = "", value_name = "NAME")]
    pub(crate) backup_cert_secret: String,
    /// Connect without TLS
    #[arg(long, value_parser = parse_bool, action = ArgAction::Set, default_value = "false",
          num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) backup_insecure: bool,
}

impl BackupFlags {
    /// The bucket; None if there is none.
    pub(crate) fn spec(&self) -> anyhow::Result<Option<BucketSpec>> {
        if self.backup_bucket.is_empty() {
            return Ok(None);
        }
        let given = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        let reference = |name: &String| given(name).map(|name| LocalObjectReference { name });
        let provider = match self.backup_provider.as_str() {
            "aws" => BucketProvider::Aws,
            "gcp" => BucketProvider::Gcp,
            "azure" => BucketProvider::Azure,
            _ => BucketProvider::Generic,
        };
        let endpoint = match (provider, given(&self.backup_endpoint)) {
            (_, Some(endpoint)) => endpoint,
            (BucketProvider::Aws, None) => "s3.amazonaws.com".to_owned(),
            (BucketProvider::Gcp, None) => "storage.googleapis.com".to_owned(),
            (BucketProvider::Generic | BucketProvider::Azure, None) => {
                anyhow::bail!(
                    "--backup-bucket needs --backup-endpoint for the provider {}",
                    self.backup_provider
                )
            }
        };
        let prefix = given(&self.backup_prefix.trim_matches('/').to_owned());
        let prefix = prefix.map(|prefix| format!("{prefix}/"));
        Ok(Some(BucketSpec {
            provider: Some(provider),
            bucket_name: self.backup_bucket.clone(),
            endpoint,
            sts: None,
            insecure: self.backup_insecure,
            region: given(&self.backup_region),
            prefix,
            secret_ref: reference(&self.backup_secret),
            service_account_name: None,
            cert_secret_ref: reference(&self.backup_cert_secret),
            proxy_secret_ref: None,
            interval: std::time::Duration::from_secs(60).into(),
            timeout: Some(std::time::Duration::from_secs(20).into()),
            ignore: None,
            suspend: false,
        }))
    }
}
