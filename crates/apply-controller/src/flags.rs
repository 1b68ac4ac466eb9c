//! The command line of kustomize-controller, and what it means.

use artifact::client::ClientOptions;
use clap::Parser;
use controller_kit::flags::{
    AclFlags, ClientFlags, EndpointFlags, FeatureGateFlags, JitterFlags, KubeconfigFlags,
    LeaderElectionFlags, LogFlags, RateLimiterFlags, TokenCacheFlags, WatchFlags, parse_label_selector,
};
use kube::core::Selector;

use crate::reconcile::decide::Policy;

/// Brings clusters to what Kustomizations say. Takes the flags of Flux's kustomize-controller.
#[derive(Debug, Clone, Parser)]
#[command(name = "apply-controller", version)]
pub struct Flags {
    /// Where metrics and health are served.
    #[command(flatten)]
    pub endpoints: EndpointFlags,
    /// How the API server is spoken to.
    #[command(flatten)]
    pub client: ClientFlags,
    /// What is logged.
    #[command(flatten)]
    pub log: LogFlags,
    /// Who leads.
    #[command(flatten)]
    pub leader: LeaderElectionFlags,
    /// How failures back off.
    #[command(flatten)]
    pub rate: RateLimiterFlags,
    /// Optional features.
    #[command(flatten)]
    pub features: FeatureGateFlags,
    /// Which objects are in scope.
    #[command(flatten)]
    pub watch: WatchFlags,
    /// How intervals are spread.
    #[command(flatten)]
    pub jitter: JitterFlags,
    /// Who may refer to whom.
    #[command(flatten)]
    pub acl: AclFlags,
    /// How kubeconfigs of remote clusters are read; accepted for Flux's manifests, used when remote clusters are.
    #[command(flatten)]
    pub kubeconfig: KubeconfigFlags,
    /// How tokens are cached; accepted for Flux's manifests, used when decryption is.
    #[command(flatten)]
    pub token: TokenCacheFlags,

    /// The number of Kustomizations that are reconciled at once.
    #[arg(long, default_value_t = 4, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub concurrent: u16,
    /// The number of objects of one Kustomization that are applied at once.
    #[arg(long, default_value_t = 4, value_name = "N")]
    pub concurrent_ssa: usize,
    /// Accepted for Flux's manifests. Dependencies are watched, so that nothing is polled at this interval.
    #[arg(long, default_value = "30s", value_name = "DURATION", hide_short_help = true)]
    pub requeue_dependency: String,
    /// Refuse remote bases in kustomizations. They are refused in any case; accepted for Flux's manifests.
    #[arg(long, num_args = 0..=1, default_value_t = false, default_missing_value = "true", require_equals = true)]
    pub no_remote_bases: bool,
    /// The number of times that the download of an artifact is tried again.
    #[arg(long, default_value_t = 9, value_name = "N")]
    pub http_retry: u32,
    /// Field managers besides kubectl whose fields are taken over.
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    pub override_manager: Vec<String>,
    /// Kinds that are applied and waited for before all others, as Kind.group.
    #[arg(long, value_delimiter = ',', value_name = "KIND.GROUP")]
    pub custom_apply_stage_kinds: Vec<String>,
    /// Not supported yet: the controller refuses to start with a lock that it cannot hold.
    #[arg(long, value_name = "NAME")]
    pub default_service_account: Option<String>,

    /// Address of the artifact service, such as http://source-controller:9091. Without it, and for artifacts that the
    /// service does not know, archives are downloaded over HTTP.
    #[arg(long, env = "ARTIFACT_SERVICE", value_name = "URL")]
    pub artifact_service: Option<String>,
    /// Host to download archives from instead of the one in their URLs, for running outside of the cluster.
    #[arg(long, env = "SOURCE_CONTROLLER_LOCALHOST", value_name = "HOST")]
    pub source_controller_localhost: Option<String>,
    /// How many bytes of manifests are kept in memory, so that a new revision fetches only what it changed.
    #[arg(long, default_value_t = 16 << 20, value_name = "BYTES")]
    pub artifact_cache_bytes: usize,
}

/// What the flags mean.
#[derive(Debug)]
pub struct Settings {
    /// How objects are applied.
    pub apply: kube_apply::Settings,
    /// Where artifacts come from.
    pub artifacts: ClientOptions,
    /// Which Kustomizations are ours.
    pub shard: Selector,
    /// Who may refer to whom.
    pub policy: Policy,
}

impl Settings {
    /// Checks what parsing alone cannot.
    pub fn of(flags: &Flags) -> anyhow::Result<Self> {
        anyhow::ensure!(
            flags
                .default_service_account
                .as_ref()
                .is_none_or(String::is_empty),
            "--default-service-account is not supported yet: without impersonation the lock would not hold"
        );
        let stage = |kind: &String| {
            let (kind, group) = kind.split_once('.').unwrap_or((kind, ""));
            (group.to_owned(), kind.to_owned())
        };
        Ok(Self {
            apply: kube_apply::Settings {
                concurrency: flags.concurrent_ssa,
                custom_stage_kinds: flags.custom_apply_stage_kinds.iter().map(stage).collect(),
                disallowed_field_managers: flags.override_manager.clone(),
                ..kube_apply::Settings::default()
            },
            artifacts: ClientOptions {
                grpc_endpoint: flags
                    .artifact_service
                    .clone()
                    .filter(|endpoint| !endpoint.is_empty()),
                cache_bytes: flags.artifact_cache_bytes,
                http_retries: flags.http_retry,
                hostname: flags
                    .source_controller_localhost
                    .clone()
                    .filter(|host| !host.is_empty()),
                ..ClientOptions::default()
            },
            shard: parse_label_selector(&flags.watch.watch_label_selector)?,
            policy: Policy {
                no_cross_namespace_refs: flags.acl.no_cross_namespace_refs,
            },
        })
    }
}
