//! The command line of kustomize-controller, and what it means.

use std::time::Duration;

use api::kustomize::Kustomization;
use api::meta::{condition_types, reasons};
use artifact::client::ClientOptions;
use clap::{ArgAction, Parser};
use cluster_access::targets::Target;
use controller_kit::conditions;
use controller_kit::flags::{parse_bool, parse_label_selector};
use jiff::SignedDuration;
use kube::core::Selector;
use kube_apply::{Guard, Inventory, Share};
use oci_verify::SigstoreFlags;
use reconcile_kit::flags::{DeliveryFlags, check_default_accounts};
use remote_base::Listed;
use transport::http::Host;

use crate::confirmation::confirmation;

/// Reconciles Kustomizations. Accepts the flags of Flux's kustomize-controller.
#[derive(Debug, Clone, Parser)]
#[command(name = "apply-controller", version)]
pub struct Flags {
    /// Flags shared by all controllers that deliver.
    #[command(flatten)]
    pub delivery: DeliveryFlags,
    /// What keyless signatures are verified with.
    #[command(flatten)]
    pub sigstore: SigstoreFlags,

    /// Maximum number of Kustomizations that are reconciled concurrently.
    #[arg(long, default_value_t = 4, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub concurrent: u16,
    /// Maximum number of objects of one Kustomization that are applied concurrently.
    #[arg(long, default_value_t = 4, value_name = "N")]
    pub concurrent_ssa: usize,
    /// Reject remote bases in kustomizations, whatever --remote-hosts lists.
    #[arg(long, value_parser = parse_bool, action = ArgAction::Set, default_value = "false",
          num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub no_remote_bases: bool,
    /// Servers from which builds may fetch remote bases and files: HOST or HOST:PORT for https, http://HOST otherwise. No
    /// credentials are sent but those in the address. Without this flag, remote bases are rejected.
    #[arg(long, value_delimiter = ',', value_name = "HOST")]
    pub remote_hosts: Vec<Host>,
    /// Field managers, in addition to kubectl, whose fields are taken over.
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    pub override_manager: Vec<String>,
    /// Kinds, as Kind.group, that are applied and waited for before all others.
    #[arg(long, value_delimiter = ',', value_name = "KIND.GROUP")]
    pub custom_apply_stage_kinds: Vec<String>,
    /// Service account, in the namespace of the Kustomization, that authenticates to cloud providers and Vault for
    /// decryption when the Kustomization names none.
    #[arg(long, value_name = "NAME")]
    pub default_decryption_service_account: Option<String>,
    /// Secret in the controller's namespace with age keys, used when spec.decryption.secretRef is empty.
    #[arg(long, value_name = "NAME")]
    pub sops_age_secret: Option<String>,
    /// ConfigMap in the controller's namespace that lists the Vault servers to log in to for decryption. No other
    /// server receives a service account token.
    #[arg(long, value_name = "NAME")]
    pub sops_vault_configmap: Option<String>,

    /// Secret in the controller's namespace whose entry signing.key signs a statement of each delivery; without it none is made.
    #[arg(long, value_name = "NAME")]
    pub delivery_statements_secret: Option<String>,

    /// Maximum percentage of its inventory that a Kustomization may prune at once. A larger prune is refused until it
    /// is confirmed; fewer than five objects are always pruned.
    #[arg(long, default_value_t = 100, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(0..=100))]
    pub prune_max_share: u8,
    /// How long to keep an object that was removed from one Kustomization while another one that lists it has not
    /// applied it yet
    #[arg(long, default_value = "5m", value_name = "DURATION", value_parser = controller_kit::duration::parse)]
    pub handover_patience: Duration,
    /// Maximum size, in MiB, of the last healthy revisions kept for the Kustomizations of one namespace (windlass.dev/rollback); 0 keeps
    /// none
    #[arg(long, default_value_t = 32, value_name = "MIB")]
    pub rollback_storage: u32,
    /// Whether to prune a Namespace or CustomResourceDefinition that contains objects of others: refuse (until the
    /// prune is confirmed) or allow.
    #[arg(long, value_enum, default_value_t = PruneForeign::Refuse, value_name = "POLICY")]
    pub prune_foreign: PruneForeign,

    /// Size of the in-memory cache of manifests, in bytes; a new revision fetches only what changed.
    #[arg(long, default_value_t = 16 << 20, value_name = "BYTES")]
    pub artifact_cache_bytes: usize,
}

/// Whether objects may be pruned together with objects of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum PruneForeign {
    /// Refuse the prune until it is confirmed.
    Refuse,
    /// Prune everything, as Flux does.
    Allow,
}

/// Parsed flags.
#[derive(Debug)]
pub struct Settings {
    /// How objects are applied.
    pub apply: kube_apply::Settings,
    /// Where artifacts come from.
    pub artifacts: ClientOptions,
    /// Which Kustomizations are ours.
    pub shard: Selector,
    /// Policy for references between objects.
    pub policy: Policy,
    /// Fetches what builds name elsewhere, if servers are listed.
    pub remote: Option<Listed>,
    /// Labels of the ConfigMaps and Secrets that are watched; None if none are.
    pub watched_configs: Option<String>,
    /// The first failed object ends a wait for health (not with gate DisableFailFastBehavior).
    pub fail_fast: bool,
}

/// Flux's gates and their defaults. Those whose feature is not there have no effect; a misspelt one ends the start.
const FEATURE_GATES: [(&str, bool); 12] = [
    ("AdditiveCELDependencyCheck", false),
    ("CacheSecretsAndConfigMaps", false),
    // Without effect: here a newer revision always ends the wait for the older one.
    ("CancelHealthCheckOnNewRevision", false),
    ("DirectSourceFetch", false),
    ("DisableConfigWatchers", false),
    ("DisableFailFastBehavior", false),
    ("DisableStatusPollerCache", true),
    ("ExternalArtifact", false),
    ("GroupChangeLog", false),
    ("MigrateAPIVersion", false),
    ("ObjectLevelWorkloadIdentity", false),
    ("StrictPostBuildSubstitutions", true),
];

impl Settings {
    /// Checks what parsing alone cannot.
    pub fn from_flags(flags: &Flags) -> anyhow::Result<Self> {
        let gates = flags.delivery.common.features.resolve(&FEATURE_GATES)?;
        let object_level_identity = gates.enabled("ObjectLevelWorkloadIdentity");
        let accounts = [
            &flags.default_decryption_service_account,
            &flags.delivery.default_kubeconfig_service_account,
        ];
        check_default_accounts(object_level_identity, accounts).map_err(anyhow::Error::msg)?;
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
            artifacts: flags.delivery.artifacts(flags.artifact_cache_bytes),
            shard: parse_label_selector(&flags.delivery.common.watch.watch_label_selector)?,
            watched_configs: (!gates.enabled("DisableConfigWatchers"))
                .then(|| flags.delivery.common.watch.watched_configs()),
            fail_fast: !gates.enabled("DisableFailFastBehavior"),
            remote: (!flags.no_remote_bases && !flags.remote_hosts.is_empty())
                .then(|| Listed::new(flags.remote_hosts.iter().cloned().collect())),
            policy: Policy {
                no_cross_namespace_refs: flags.delivery.common.acl.no_cross_namespace_refs,
                strict_substitutions: gates.enabled("StrictPostBuildSubstitutions"),
                additive_expressions: gates.enabled("AdditiveCELDependencyCheck"),
                object_level_identity,
                external_artifacts: gates.enabled("ExternalArtifact"),
            },
        })
    }
}

/// Policy that decisions depend on, besides the object.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    /// References to sources in other namespaces are refused (`--no-cross-namespace-refs`).
    pub no_cross_namespace_refs: bool,
    /// A variable without value and default is an error (gate `StrictPostBuildSubstitutions`).
    pub strict_substitutions: bool,
    /// A dependency must be ready beside what its expression says (gate `AdditiveCELDependencyCheck`).
    pub additive_expressions: bool,
    /// ExternalArtifacts may be sources (gate `ExternalArtifact`).
    pub external_artifacts: bool,
    /// Objects may be ServiceAccounts at cloud providers (gate `ObjectLevelWorkloadIdentity`).
    pub object_level_identity: bool,
}

/// Objects that are not pruned without confirmation.
#[derive(Debug, Clone)]
pub struct PrunePolicy {
    /// The namespace of this controller.
    pub own_namespace: String,
    /// How much of an inventory may go at once, in percent.
    pub max_share: u8,
    /// Whether namespaces and definitions go together with what others made.
    pub foreign: PruneForeign,
    /// How long an object is kept for another Kustomization that does not come to apply it.
    pub handover_patience: SignedDuration,
}

impl PrunePolicy {
    /// The guard of a run. What is in `kept` stays in the source.
    pub(super) fn in_a_run(
        &self,
        object: &Kustomization,
        target: &Target,
        old: &Inventory,
        kept: &Inventory,
    ) -> Guard {
        let ready = object
            .status
            .as_ref()
            .and_then(|status| conditions::get(&status.conditions, condition_types::READY));
        let before = ready.filter(|ready| ready.reason == reasons::PRUNE_REFUSED);
        Guard {
            share: Some(Share {
                percent: self.max_share,
                of: old.len(),
            }),
            kept: kept.clone(),
            refused_before: before.map(|ready| ready.message.clone()),
            ..self.at_the_end(object, target)
        }
    }

    /// The guard of a Kustomization that is deleted: all of it goes, so that a share of it does not count.
    pub fn at_the_end(&self, object: &Kustomization, target: &Target) -> Guard {
        Guard {
            own_namespace: Some(self.own_namespace.clone()).filter(|_| target.place.is_home()),
            foreign: self.foreign == PruneForeign::Refuse,
            confirmation: confirmation(object).map(str::to_owned),
            ..Guard::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(arguments: &[&str]) -> anyhow::Result<Settings> {
        Settings::from_flags(&Flags::try_parse_from(
            [&["apply-controller"], arguments].concat(),
        )?)
    }

    #[test]
    fn the_command_lines_of_fluxs_manifests_are_taken() {
        let settings = settings(&[
            "--events-addr=http://notification-controller.flux-system.svc.cluster.local./",
            "--watch-all-namespaces=true",
            "--log-level=info",
            "--log-encoding=json",
            "--enable-leader-election",
            "--no-cross-namespace-refs=true",
            "--no-remote-bases=true",
            "--requeue-dependency=5s",
            "--concurrent=20",
            "--sops-age-secret=sops-age",
            "--feature-gates=DisableFailFastBehavior=true,StrictPostBuildSubstitutions=false",
            "--custom-apply-stage-kinds=ClusterIssuer.cert-manager.io",
        ])
        .unwrap();
        assert!(settings.policy.no_cross_namespace_refs && !settings.fail_fast);
        assert!(!settings.policy.strict_substitutions);
        assert_eq!(settings.watched_configs.as_deref(), Some("owner!=helm"));
        let stage = ("cert-manager.io".to_owned(), "ClusterIssuer".to_owned());
        assert!(settings.apply.custom_stage_kinds.contains(&stage));
    }

    #[test]
    fn what_cannot_be_held_or_is_misspelt_ends_the_start() {
        for argument in [
            "--default-decryption-service-account=tenant",
            "--default-kubeconfig-service-account=tenant",
            "--feature-gates=NoSuchGate=true",
            "--requeue-dependency=soon",
            "--concurrent=0",
        ] {
            assert!(settings(&[argument]).is_err(), "{argument}");
        }
        let gate = "--feature-gates=ObjectLevelWorkloadIdentity=true";
        let locked = settings(&[gate, "--default-decryption-service-account=tenant"]).unwrap();
        assert!(locked.policy.object_level_identity);
        assert!(settings(&[gate, "--default-kubeconfig-service-account=tenant"]).is_ok());
        assert!(settings(&["--default-service-account="]).unwrap().fail_fast);
    }

    #[test]
    fn pruning_is_guarded_by_default_as_far_as_it_takes_others_along() {
        let flags = |arguments: &[&str]| Flags::try_parse_from([&["apply-controller"], arguments].concat());
        let default = flags(&[]).unwrap();
        assert_eq!(
            (default.prune_max_share, default.prune_foreign),
            (100, PruneForeign::Refuse)
        );
        let chosen = flags(&["--prune-max-share=0", "--prune-foreign=allow"]).unwrap();
        assert_eq!(
            (chosen.prune_max_share, chosen.prune_foreign),
            (0, PruneForeign::Allow)
        );
        for wrong in [
            "--prune-max-share=101",
            "--prune-max-share=-1",
            "--prune-foreign=ask",
        ] {
            assert!(flags(&[wrong]).is_err(), "{wrong}");
        }
    }

    #[test]
    fn which_configs_are_watched_can_be_chosen() {
        let watched = |argument| settings(&[argument]).unwrap().watched_configs;
        let chosen = watched("--watch-configs-label-selector=team=a");
        assert_eq!(chosen.as_deref(), Some("team=a"));
        assert_eq!(watched("--feature-gates=DisableConfigWatchers=true"), None);
    }
}
