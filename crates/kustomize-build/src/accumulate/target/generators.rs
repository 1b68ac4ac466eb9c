//! What a kustomization generates, by its fields and by plugins; and the configurations of plugins of all sorts.

use std::rc::Rc;
use std::sync::Arc;

use manifest::{Origin, yaml};
use serde_json::{Map, Value};

use super::Target;
use crate::accumulate::accumulated::Accumulated;
use crate::charts::Chart;
use crate::error::Result;
use crate::generate::Generated;
use crate::kustomization::{GeneratorArgs, Kustomization};
use crate::nodes::Nodes;
use crate::plugin::Generator;
use crate::resource::{self, BuildOrigin, Resource};

impl Target<'_> {
    /// Configures all generators before it runs one, as kustomize does.
    pub(super) fn run_generators(&self, nodes: &mut Nodes, base: &mut Accumulated) -> Result<()> {
        let fields = self.generators_of_fields()?;
        let plugins = self
            .generators_of_plugins(nodes)
            .map_err(|error| error.context("loading generator plugins"))?;
        for (generator, origin) in fields.into_iter().chain(plugins) {
            let resources = generator
                .run(nodes, &self.loader)
                .map_err(|error| error.in_file(&self.file(), 0))?;
            self.absorb(nodes, base, resources, origin)?;
        }
        Ok(())
    }

    fn charts(&self) -> Result<Vec<(Generator, Option<BuildOrigin>)>> {
        let origin = self.origin.as_ref();
        let origin = origin.map(|origin| origin.of_field(self.file_name, "HelmChartInflationGenerator"));
        let configurations = self.kustomization.helm_charts(&self.inherited_namespace);
        let read = |fields: Map<String, Value>| {
            let chart = Chart::read(&self.loader, fields.clone()).map_err(|error| {
                let config = yaml::write(&Value::Object(fields)).unwrap_or_default();
                error
                    .context(format!(
                        "trouble configuring builtin HelmChartInflationGenerator with config: `\n{config}`"
                    ))
                    .in_file(&self.file(), 0)
            })?;
            Ok((Generator::Chart(Box::new(chart)), origin.clone()))
        };
        configurations.into_iter().map(read).collect()
    }

    fn generators_of_fields(&self) -> Result<Vec<(Generator, Option<BuildOrigin>)>> {
        let k = &self.kustomization;
        let entries = |args: &[GeneratorArgs], what: Generated, kind: &str| {
            let origin = self.origin.as_ref();
            let origin = origin.map(|origin| origin.of_field(self.file_name, kind));
            let entry = |args: &GeneratorArgs| {
                let args = args.clone().with_defaults(k.generator_options.as_ref());
                (Generator::Data(what, Box::new(args)), origin.clone())
            };
            args.iter().map(entry).collect::<Vec<_>>()
        };
        let mut all = entries(
            &k.config_map_generator,
            Generated::ConfigMap,
            "ConfigMapGenerator",
        );
        all.extend(entries(&k.secret_generator, Generated::Secret, "SecretGenerator"));
        all.extend(self.charts()?);
        Ok(all)
    }

    fn generators_of_plugins(&self, nodes: &mut Nodes) -> Result<Vec<(Generator, Option<BuildOrigin>)>> {
        let entries = &self.kustomization.generators;
        let configs = self.plugin_configs(nodes, entries, "configuring external generator")?;
        let mut generators = Vec::with_capacity(configs.len());
        for config in configs {
            let generator = Generator::load(nodes, &self.loader, &config)
                .map_err(|error| error.context("failed to load generator"))?;
            generators.push((generator, self.plugin_origin(nodes, &config)));
        }
        Ok(generators)
    }

    fn absorb(
        &self,
        nodes: &mut Nodes,
        base: &mut Accumulated,
        mut resources: Vec<Resource>,
        origin: Option<BuildOrigin>,
    ) -> Result<()> {
        // Go shows the generator and its origin by their addresses.
        let shown = if origin.is_some() { "0xPTR" } else { "<nil>" };
        let file: Arc<str> = Arc::from(self.file());
        for resource in &mut resources {
            resource.origin.clone_from(&origin);
            resource.source = Some(Origin {
                file: Arc::clone(&file),
                line: 0,
            });
        }
        base.map.absorb_all(nodes, resources).map_err(|error| {
            error
                .context(format!("merging from generator &{{0xPTR {shown}}}"))
                .in_file(&self.file(), 0)
        })
    }

    /// Reads the configurations of plugins: resources that stand inline, in files or in folders.
    pub(super) fn plugin_configs(
        &self,
        nodes: &mut Nodes,
        entries: &[String],
        inline_context: &str,
    ) -> Result<Vec<Resource>> {
        let mut configs = Accumulated::default();
        let mut paths = Vec::new();
        for entry in entries {
            let Ok(mut inline) = resource::parse_resources(nodes, entry, &self.file()) else {
                paths.push(entry);
                continue;
            };
            for resource in &mut inline {
                resource.origin = self.origin.as_ref().map(|origin| origin.append(self.file_name));
            }
            configs
                .map
                .append_all(nodes, inline)
                .map_err(|error| error.context(inline_context))?;
        }
        for entry in paths {
            let mut reader = Target {
                loader: Rc::clone(&self.loader),
                kustomization: Kustomization::default(),
                file_name: self.file_name,
                origin: self.origin.clone(),
                inherited_namespace: self.inherited_namespace.clone(),
            };
            reader.accumulate_resource(nodes, &mut configs, entry)?;
        }
        Ok(configs.map.into_list())
    }
}
