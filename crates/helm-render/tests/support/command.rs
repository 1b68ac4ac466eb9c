//! `helm template` in process: the arguments of a recorded case in, what it prints out.
//!
//! Only what cases need; the command's own reading of a command line is tested by the crate `cli`.

use std::path::Path;

use helm_chart::Helm;
use helm_chart::path_match::path_match;
use helm_chart::set_values::{merge, read_local};
use helm_render::capabilities::{Capabilities, KubeVersion};
use helm_render::manifest::split;
use helm_render::{Options, Release, Rendered, Renderer, name_from_template};
use serde_json::{Map, Value};

#[derive(Debug, Default)]
struct Command {
    words: Vec<String>,
    values: merge::Flags,
    namespace: Option<String>,
    kube_version: Option<String>,
    api_versions: Vec<String>,
    name_template: Option<String>,
    show_only: Vec<String>,
    switches: Vec<String>,
}

/// A chart, loaded, with the values and options of a command line.
pub struct Prepared {
    pub values: Map<String, Value>,
    renderer: Renderer,
    options: Options,
    command: Command,
    helm: Helm,
}

/// Runs the words behind `helm template`; an error is without its `Error: `.
#[allow(dead_code, reason = "a bench renders what it prepared many times")]
pub fn template(arguments: &[String], helm: Helm) -> Result<String, String> {
    prepare(arguments, helm)?.render()
}

/// Does everything that comes before the rendering.
pub fn prepare(arguments: &[String], helm: Helm) -> Result<Prepared, String> {
    parse(arguments)?.prepare(helm)
}

impl Prepared {
    /// Renders, and prints.
    pub fn render(&self) -> Result<String, String> {
        let rendered = self.renderer.render(&self.values, &self.options);
        self.command
            .print(&rendered.map_err(|error| error.to_string())?, self.helm)
    }
}

fn parse(arguments: &[String]) -> Result<Command, String> {
    let mut command = Command::default();
    let mut words = arguments.iter().cloned();
    while let Some(word) = words.next() {
        if !word.starts_with('-') {
            command.words.push(word);
            continue;
        }
        if let Some(name) = word.strip_prefix("--").filter(|name| SWITCHES.contains(name)) {
            command.switches.push(name.to_owned());
            continue;
        }
        let (flag, value) = match word.split_once('=') {
            Some((flag, value)) => (flag.to_owned(), value.to_owned()),
            None => (
                word.clone(),
                words
                    .next()
                    .ok_or_else(|| format!("flag needs an argument: {word}"))?,
            ),
        };
        let separated = || value.split(',').map(str::to_owned);
        match flag.as_str() {
            "-f" | "--values" => command.values.files.extend(separated()),
            "--set" => command.values.typed.push(value),
            "--set-string" => command.values.text.push(value),
            "--set-json" => command.values.json.push(value),
            "--set-file" => command.values.file.push(value),
            "--set-literal" => command.values.literal.push(value),
            "-n" | "--namespace" => command.namespace = Some(value),
            "--kube-version" => command.kube_version = Some(value),
            "-a" | "--api-versions" => command.api_versions.extend(separated()),
            "--name-template" => command.name_template = Some(value),
            "-s" | "--show-only" => command.show_only.extend(separated()),
            _ => return Err(format!("unknown flag: {flag}")),
        }
    }
    Ok(command)
}

const SWITCHES: [&str; 8] = [
    "include-crds",
    "skip-crds",
    "no-hooks",
    "skip-tests",
    "is-upgrade",
    "skip-schema-validation",
    "render-subchart-notes",
    "disable-openapi-validation",
];

impl Command {
    fn is_on(&self, switch: &str) -> bool {
        self.switches.iter().any(|name| name == switch)
    }

    fn prepare(self, helm: Helm) -> Result<Prepared, String> {
        let mut capabilities = Capabilities::offline(helm);
        if let Some(version) = &self.kube_version {
            capabilities.kube_version = KubeVersion::parse(version, helm)
                .map_err(|error| format!("invalid kube version '{version}': {error}"))?;
        }
        capabilities
            .api_versions
            .extend(self.api_versions.iter().cloned());
        let (name, path) = self.name_and_chart()?;
        if !Path::new(path).exists() {
            return Err(format!("path {path:?} not found"));
        }
        let values = merge::merge(&self.values, &mut read_local, helm).map_err(|error| error.to_string())?;
        let chart = helm_chart::load(path, helm, &mut Vec::new()).map_err(|error| error.to_string())?;
        helm_chart::check(&chart, helm, &mut Vec::new()).map_err(|error| error.to_string())?;
        let release = Release {
            is_upgrade: self.is_on("is-upgrade"),
            ..Release::new(
                name,
                self.namespace.clone().unwrap_or_else(|| "default".to_owned()),
            )
        };
        let options = Options {
            capabilities: Some(capabilities),
            skip_schema_validation: self.is_on("skip-schema-validation"),
            with_notes_of_dependencies: self.is_on("render-subchart-notes"),
            ..Options::new(release)
        };
        Ok(Prepared {
            values,
            renderer: Renderer::new(chart, helm),
            options,
            command: self,
            helm,
        })
    }

    fn name_and_chart(&self) -> Result<(String, &str), String> {
        match &self.words[..] {
            [name, chart] if self.name_template.is_none() => Ok((name.clone(), chart)),
            [_, _] => Err("cannot set --name-template and also specify a name".to_owned()),
            [chart] => match &self.name_template {
                Some(template) => Ok((name_from_template(template)?, chart)),
                None => Ok(("release-name".to_owned(), chart)),
            },
            [_, _, more @ ..] => Err(format!(
                "expected at most two arguments, unexpected arguments: {}",
                more.join(", ")
            )),
            [] => Err("\"helm template\" requires at least 1 argument".to_owned()),
        }
    }

    fn print(&self, rendered: &Rendered, helm: Helm) -> Result<String, String> {
        let document = |path: &str, content: &str| format!("---\n# Source: {path}\n{content}\n");
        let mut text = String::new();
        if self.is_on("include-crds") {
            text.extend(rendered.crds.iter().map(|crd| document(&crd.path, &crd.content)));
        }
        text.extend(
            rendered
                .manifests
                .iter()
                .map(|manifest| document(&manifest.path, &manifest.content)),
        );
        let mut text = format!("{}\n", text.trim());
        for hook in &rendered.hooks {
            if !(self.is_on("no-hooks") || self.is_on("skip-tests") && hook.is_test()) {
                text.push_str(&document(&hook.path, &hook.content));
            }
        }
        if self.show_only.is_empty() {
            Ok(text)
        } else {
            self.shown(&text, helm)
        }
    }

    fn shown(&self, text: &str, helm: Helm) -> Result<String, String> {
        let documents: Vec<_> = split(text.as_bytes(), helm)
            .into_iter()
            .map(String::from_utf8_lossy)
            .collect();
        let mut shown = String::new();
        for pattern in &self.show_only {
            let matches = |document: &str| {
                let source = document
                    .split_once("# Source: ")
                    .and_then(|(_, source)| source.lines().next());
                let name = source
                    .and_then(|source| source.split_once('/'))
                    .map(|(_, name)| name);
                name.is_some_and(|name| path_match(pattern, name) == Ok(true))
            };
            let before = shown.len();
            for chosen in documents.iter().filter(|text| matches(text)) {
                shown.push_str(&format!("---\n{chosen}\n"));
            }
            if shown.len() == before {
                return Err(format!("could not find template {pattern} in chart"));
            }
        }
        Ok(shown)
    }
}
