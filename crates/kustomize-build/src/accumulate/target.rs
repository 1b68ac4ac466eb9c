//! One kustomization: its file, and the steps that it asks for, in kustomize's order.

mod generators;
mod transformers;
mod validators;

use std::rc::Rc;
use std::sync::Arc;

use manifest::yaml::{self, Dialect, Kind};
use serde_json::{Map, Value};

use super::accumulated::Accumulated;
use crate::error::{Error, ErrorKind, Result};
use crate::fetch::without_credentials;
use crate::field_spec::{TransformerConfig, config_of_definitions};
use crate::kustomization::{COMPONENT_KIND, FILE_NAMES, Kustomization};
use crate::load::Loader;
use crate::nodes::Nodes;
use crate::patch;
use crate::resource::{self, BuildOrigin, Resource};
use crate::resource_map::ResourceMap;
use crate::schema::Custom;

/// How much a build may read and make, in nodes of its trees: some half a gigabyte of memory.
const NODES: usize = 4_000_000;

/// The only version of Kubernetes whose schemas kustomize 5.8 has built in.
const BUILT_IN_SCHEMA: &str = "v1.21.2";

/// A kustomization or component that was read, with its folder.
pub(super) struct Target<'a> {
    loader: Rc<Loader<'a>>,
    kustomization: Kustomization,
    file_name: &'static str,
    /// Where the folder is as seen from the one that is built, when `buildMetadata` asks for origins.
    origin: Option<BuildOrigin>,
    /// The namespace that the kustomizations above set, for helm charts.
    inherited_namespace: String,
}

impl<'a> Target<'a> {
    /// Reads the kustomization file of a folder.
    pub(super) fn load(loader: Rc<Loader<'a>>) -> Result<Self> {
        let mut found = None;
        for name in FILE_NAMES {
            if let Some(content) = loader.load_if_there(name)? {
                if found.is_some() {
                    let folder = loader.shown_folder();
                    return Err(Error::invalid(format!(
                        "Found multiple kustomization files under: {folder}\n"
                    )));
                }
                found = Some((name, content));
            }
        }
        let Some((file_name, content)) = found else {
            let folder = loader.shown_folder();
            let message = format!(
                "unable to find one of 'kustomization.yaml', 'kustomization.yml' or 'Kustomization' in directory \
                 '{folder}'"
            );
            return Err(Error::new(ErrorKind::NotFound, message).in_file(loader.folder(), 0));
        };
        let file = loader.place(file_name);
        let kustomization = parse(&content, &file, &loader)?;
        Ok(Self {
            loader,
            kustomization,
            file_name,
            origin: None,
            inherited_namespace: String::new(),
        })
    }

    pub(super) fn kustomization(&self) -> &Kustomization {
        &self.kustomization
    }

    /// Makes the build remember where resources come from.
    pub(super) fn track_origin(&mut self, origin: BuildOrigin) {
        self.origin = Some(origin);
    }

    fn file(&self) -> String {
        self.loader.place(self.file_name)
    }

    /// Places an error about something that the kustomization names: where it does.
    fn at_entry(&self, error: Error, entry: &str) -> Error {
        if error.line() > 0 {
            return error;
        }
        error.placed(&self.file(), self.line_of(entry))
    }

    /// Finds the line of a text in the kustomization file, which is read again; 0 when it is not there.
    fn line_of(&self, text: &str) -> u32 {
        let Ok(Some(content)) = self.loader.load_if_there(self.file_name) else {
            return 0;
        };
        let content = String::from_utf8_lossy(&content);
        let mut nodes = yaml::Nodes::default();
        let Ok(Some(root)) = yaml::compose_first(&*content, &mut nodes, Dialect::Sigs) else {
            return 0;
        };
        let mut open = vec![root];
        while let Some(id) = open.pop() {
            let node = &nodes[id];
            if node.kind == Kind::Scalar && node.value == text {
                return node.line;
            }
            open.extend(node.content.iter().rev());
        }
        0
    }

    fn load_text(&self, entry: &str) -> Result<String> {
        let loaded = self.loader.load_text(entry);
        loaded.map_err(|error| self.at_entry(error, entry))
    }

    /// Takes the schemas that the kustomization asks for, unless one that was read before did so.
    pub(super) fn choose_schemas(&self, nodes: &mut Nodes) -> Result<()> {
        let open_api = &self.kustomization.open_api;
        let version = open_api.get("version").map(String::as_str);
        let file = match open_api.get("path") {
            Some(path) => {
                let content = self.loader.load(path);
                Some((path, content.map_err(|error| self.at_entry(error, path))?))
            }
            None => None,
        };
        if nodes.schemas.are_chosen() {
            return Ok(());
        }
        match (file, version) {
            (Some(_), Some(_)) => Err(Error::invalid(
                "builtin version and custom schema provided, cannot use both",
            )),
            (Some((path, content)), None) => {
                nodes.schemas.choose(self.read_schema(path, &content)?);
                Ok(())
            }
            (None, None | Some("")) => Ok(()),
            (None, Some(BUILT_IN_SCHEMA)) => {
                nodes.schemas.choose_built_in();
                Ok(())
            }
            (None, Some(_)) => Err(Error::invalid("the specified OpenAPI version is not built in")),
        }
        .map_err(|error| error.in_file(&self.file(), 0))
    }

    /// kustomize panics where this fails.
    fn read_schema(&self, path: &str, content: &[u8]) -> Result<Custom> {
        let place = self.loader.place(path);
        let failed = |error: Error| error.context("invalid schema file").in_file(&place, 0);
        let text = std::str::from_utf8(content)
            .map_err(|_| failed(Error::invalid("yaml: invalid leading UTF-8 octet")))?;
        let document = first_document(text, &place).map_err(failed)?;
        Custom::from_json(&document).map_err(|reason| failed(Error::invalid(reason)))
    }

    /// Carries out the kustomization on top of what is there: nothing, or for a component what its parent has.
    pub(super) fn accumulate(&mut self, nodes: &mut Nodes, mut base: Accumulated) -> Result<Accumulated> {
        let resources = std::mem::take(&mut self.kustomization.resources);
        for entry in &resources {
            self.accumulate_resource(nodes, &mut base, entry)
                .map_err(|error| error.context("accumulating resources"))?;
        }
        self.merge_config(&mut base)?;
        self.run_generators(nodes, &mut base)?;
        let components = std::mem::take(&mut self.kustomization.components);
        for entry in &components {
            base = self
                .accumulate_component(nodes, base, entry)
                .map_err(|error| error.context("accumulating components"))?;
        }
        self.run_transformers(nodes, &mut base)?;
        self.run_validators(nodes, &mut base)?;
        let vars = &self.kustomization.vars;
        base.variables
            .define(nodes, &mut base.map, vars)
            .map_err(|error| error.in_file(&self.file(), 0))?;
        Ok(base)
    }

    /// Reads a resource file, or builds a base: whichever the path leads to.
    fn accumulate_resource(&mut self, nodes: &mut Nodes, base: &mut Accumulated, entry: &str) -> Result<()> {
        let Err(file_error) = self.accumulate_file(nodes, base, entry) else {
            return Ok(());
        };
        if matches!(file_error.kind(), ErrorKind::Unsupported | ErrorKind::Fetch) {
            return Err(self.at_entry(file_error, entry));
        }
        let words = format!("accumulation err='{file_error}'");
        let loader = match self.loader.open_base(entry) {
            Ok(loader) => loader,
            Err(_) if file_error.to_string().contains("MalformedYAMLError") => return Err(file_error),
            Err(error) if error.kind() == ErrorKind::Unsupported => {
                return Err(self.at_entry(error, entry));
            }
            Err(error) => {
                let message = format!("{words}: {error}");
                // A file that was read says more about what is wrong than the folder that it is not.
                return Err(if file_error.line() > 0 {
                    file_error.reworded(message)
                } else {
                    self.at_entry(error.reworded(message), entry)
                });
            }
        };
        let (folder, shown) = (loader.folder().to_owned(), loader.shown_folder());
        let built = self
            .build_folder(nodes, loader, entry, None)
            .map_err(|error| error.context(&words).through(&folder))?;
        merge(nodes, base, built).map_err(|error| {
            error
                .context(format!("recursed merging from path '{shown}'"))
                .context(&words)
        })
    }

    fn accumulate_file(&self, nodes: &mut Nodes, base: &mut Accumulated, entry: &str) -> Result<()> {
        let shown = without_credentials(entry);
        let mut resources = self
            .read_resources(nodes, entry)
            .map_err(|error| error.context(format!("accumulating resources from '{shown}'")))?;
        if let Some(origin) = &self.origin {
            for resource in &mut resources {
                resource.origin = Some(origin.append(entry));
            }
        }
        // kustomize checks the file for itself first, and then against what is there.
        let checked = ResourceMap::from_list(nodes, resources)
            .map_err(|error| error.context(format!("accumulating resources from '{shown}'")))?;
        base.map
            .append_all(nodes, checked.into_list())
            .map_err(|error| error.context(format!("merging resources from '{shown}'")))
    }

    fn read_resources(&self, nodes: &mut Nodes, entry: &str) -> Result<Vec<Resource>> {
        let text = self.loader.load_text(entry)?;
        if nodes.len() > NODES {
            return Err(Error::invalid(format!("the build has more than {NODES} nodes")));
        }
        resource::parse_resources(nodes, &text, &self.loader.place(entry))
            .map_err(|error| patch::in_kustomize_words(error, entry))
    }

    fn accumulate_component(
        &mut self,
        nodes: &mut Nodes,
        base: Accumulated,
        entry: &str,
    ) -> Result<Accumulated> {
        let quoted = |error: Error, prefix: &str| {
            let message = format!("{prefix} {}", go_text::quote::quoted(&error.to_string()));
            error.reworded(message)
        };
        let loader = self
            .loader
            .open_base(entry)
            .map_err(|error| self.at_entry(quoted(error, "loader.New"), entry))?;
        let (folder, shown) = (loader.folder().to_owned(), loader.shown_folder());
        let built = self
            .build_folder(nodes, loader, entry, Some(base))
            .and_then(|built| {
                // kustomize goes on with an empty accumulator, which the component's is merged into.
                let mut base = Accumulated::default();
                merge(nodes, &mut base, built)
                    .map(|()| base)
                    .map_err(|error| error.context(format!("recursed merging from path '{shown}'")))
            });
        built.map_err(|error| quoted(error, "accumulateDirectory:").through(&folder))
    }

    /// Builds another folder: a component on top of `parent`, a base by itself.
    fn build_folder(
        &self,
        nodes: &mut Nodes,
        loader: Rc<Loader<'a>>,
        entry: &str,
        parent: Option<Accumulated>,
    ) -> Result<Accumulated> {
        let folder = loader.shown_folder();
        let mut target = Target::load(loader)
            .map_err(|error| error.context(format!("couldn't make target for path '{folder}'")))?;
        target
            .kustomization
            .build_metadata
            .clone_from(&self.kustomization.build_metadata);
        target.origin = self.origin.as_ref().map(|origin| origin.append(entry));
        target.inherited_namespace = match self.kustomization.namespace.as_str() {
            "" => self.inherited_namespace.clone(),
            own => own.to_owned(),
        };
        target.choose_schemas(nodes)?;
        let kind = &target.kustomization.kind;
        if parent.is_some() && kind != COMPONENT_KIND {
            let message = format!("expected kind '{COMPONENT_KIND}' for path '{folder}' but got '{kind}'");
            return Err(Error::invalid(message).in_file(&target.file(), 0));
        }
        if parent.is_none() && kind == COMPONENT_KIND {
            let message = format!("expected kind != '{COMPONENT_KIND}' for path '{folder}'");
            return Err(Error::invalid(message).in_file(&target.file(), 0));
        }
        target
            .accumulate(nodes, parent.unwrap_or_default())
            .map_err(|error| error.context(format!("recursed accumulation of path '{folder}'")))
    }

    /// Adds what `configurations` say about fields.
    fn merge_config(&self, base: &mut Accumulated) -> Result<()> {
        let mut config = Arc::clone(TransformerConfig::built_in());
        let mut added = TransformerConfig::default();
        for entry in &self.kustomization.configurations {
            let place = self.loader.place(entry);
            let text = self.load_text(entry)?;
            let value = first_document(&text, &place).map_err(converting)?;
            let more = TransformerConfig::from_json(&value).map_err(|error| error.in_file(&place, 0))?;
            added.merge(&more)?;
        }
        if added != TransformerConfig::default() {
            Arc::make_mut(&mut config).merge(&added)?;
        }
        TransformerConfig::merge_shared(&mut base.config, &config)
            .map_err(|error| error.context("merging config"))?;
        self.merge_definitions(base)
    }

    /// Adds what the definitions of custom types say about fields.
    fn merge_definitions(&self, base: &mut Accumulated) -> Result<()> {
        for entry in &self.kustomization.crds {
            let failed =
                |error: Error| error.context(format!("loading CRDs [{}]", self.kustomization.crds.join(" ")));
            let place = self.loader.place(entry);
            let text = self.load_text(entry).map_err(failed)?;
            let value = match text.starts_with('{') {
                true => json(&text),
                false => first_document(&text, &place).map_err(converting),
            };
            let config = value
                .and_then(|value| config_of_definitions(&value))
                .map_err(|error| {
                    let context = format!("unable to parse open API definition from '{entry}'");
                    failed(error.context(context)).in_file(&place, 0)
                })?;
            Arc::make_mut(&mut base.config).merge(&config)?;
        }
        Ok(())
    }

    fn plugin_origin(&self, nodes: &Nodes, config: &Resource) -> Option<BuildOrigin> {
        let origin = config.origin.as_ref()?;
        let id = config.id(nodes);
        Some(BuildOrigin {
            path: String::new(),
            repository: origin.repository.clone(),
            reference: origin.reference.clone(),
            configured_in: origin.path.clone(),
            api_version: id.gvk.api_version(),
            kind: id.gvk.kind,
            name: id.name,
            namespace: id.namespace,
        })
    }

    fn in_configuration(&self, error: Error, name: &str, config: &str) -> Error {
        error
            .context(format!(
                "trouble configuring builtin {name} with config: `\n{config}`"
            ))
            .in_file(&self.file(), 0)
    }
}

fn parse(content: &[u8], file: &str, loader: &Loader<'_>) -> Result<Kustomization> {
    let text = std::str::from_utf8(content).map_err(|_| {
        Error::invalid("invalid Kustomization: yaml: invalid leading UTF-8 octet").in_file(file, 0)
    })?;
    let value = first_document(text, file).map_err(|error| error.context("invalid Kustomization"))?;
    let value = if value.is_null() {
        Value::Object(Map::new())
    } else {
        value
    };
    let mut kustomization = Kustomization::read(&value).map_err(|error| error.in_file(file, 0))?;
    // kustomize warns before it looks at what the file says.
    for warning in kustomization.deprecations() {
        loader.warn(warning);
    }
    kustomization.fix();
    kustomization
        .check(&loader.shown_folder())
        .map_err(|error| error.in_file(file, 0))?;
    Ok(kustomization)
}

fn first_document(text: &str, file: &str) -> Result<Value> {
    let mut nodes = Nodes::default();
    let failed = |problem: yaml::Problem| Error::invalid(problem.to_string()).in_file(file, problem.line);
    match yaml::compose_first(text, &mut nodes, Dialect::Sigs).map_err(failed)? {
        Some(root) => yaml::json::decode(&nodes, root).map_err(failed),
        None => Ok(Value::Null),
    }
}

/// sigs.k8s.io/yaml's words for what is no YAML.
fn converting(error: Error) -> Error {
    error.context("error converting YAML to JSON")
}

/// Reads JSON; the words are encoding/json's where they are of use.
fn json(text: &str) -> Result<Value> {
    let mut documents = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let value = match documents.next() {
        Some(Ok(value)) => value,
        Some(Err(error)) if error.is_eof() => return Err(Error::invalid("unexpected end of JSON input")),
        Some(Err(error)) => return Err(Error::invalid(error.to_string())),
        None => Value::Null,
    };
    let after = text[documents.byte_offset()..].trim_start_matches([' ', '\t', '\r', '\n']);
    match after.chars().next() {
        Some(other) => Err(Error::invalid(format!(
            "invalid character '{other}' after top-level value"
        ))),
        None => Ok(value),
    }
}

fn merge(nodes: &Nodes, base: &mut Accumulated, built: Accumulated) -> Result<()> {
    base.map.append_all(nodes, built.map.into_list())?;
    TransformerConfig::merge_shared(&mut base.config, &built.config)?;
    base.variables.merge(built.variables.into_list())
}
