//! Generators that a resource configures.

use super::configuration::Configuration;
use super::iam_policy::IamPolicy;
use crate::charts::Chart;
use crate::error::Result;
use crate::generate::{self, Generated};
use crate::kustomization::decode::{self, Decode, Place};
use crate::kustomization::{GeneratorArgs, chart_fields};
use crate::load::Loader;
use crate::nodes::Nodes;
use crate::resource::Resource;

/// Generator of resources.
pub(crate) enum Generator {
    Data(Generated, Box<GeneratorArgs>),
    IamPolicy(IamPolicy),
    Chart(Box<Chart>),
}

impl Generator {
    /// Reads a configuration; None for a kind that is no generator.
    pub(super) fn read(config: &Configuration<'_, '_>, kind: &str) -> Option<Result<Self>> {
        Some(match kind {
            "ConfigMapGenerator" => Self::data(config, Generated::ConfigMap),
            "SecretGenerator" => Self::data(config, Generated::Secret),
            "IAMPolicyGenerator" => IamPolicy::decode(config.value, &Place::yaml(""))
                .map(Self::IamPolicy)
                .map_err(decode::in_yaml),
            "HelmChartInflationGenerator" => Self::chart(config),
            _ => return None,
        })
    }

    fn data(config: &Configuration<'_, '_>, what: Generated) -> Result<Self> {
        // The arguments are a struct in the plugin's, of which sigs.k8s.io/yaml does not find the types.
        let place = Place::yaml("").without_texts_from_scalars();
        let mut args = config.decode_at(&place, |fields| {
            let mut args = GeneratorArgs::default();
            args.take(fields);
            if what == Generated::Secret {
                fields.take("type", &mut args.secret_type);
            }
            args
        })?;
        if args.name.is_empty() {
            config.name.clone_into(&mut args.name);
        }
        if args.namespace.is_empty() {
            config.namespace.clone_into(&mut args.namespace);
        }
        Ok(Self::Data(what, Box::new(args)))
    }

    fn chart(config: &Configuration<'_, '_>) -> Result<Self> {
        let place = Place::yaml("").without_texts_from_scalars();
        let fields = config.decode_at(&place, chart_fields)?;
        Chart::read(config.loader, fields).map(|chart| Self::Chart(Box::new(chart)))
    }

    /// Makes the resources.
    pub(crate) fn run(&self, nodes: &mut Nodes, loader: &Loader<'_>) -> Result<Vec<Resource>> {
        match self {
            Self::Data(what, args) => generate::generate(nodes, loader, *what, args).map(|made| vec![made]),
            Self::IamPolicy(policy) => policy.generate(nodes).map(|made| vec![made]),
            Self::Chart(chart) => chart.generate(nodes, loader),
        }
    }
}
