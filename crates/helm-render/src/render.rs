//! The whole way from a loaded chart and values to what a release consists of.

mod name;
mod notes;

use std::borrow::Cow;
use std::sync::Arc;

use go_template::Limits;
use helm_chart::{Chart, Helm, Warning, schema};
pub use name::name_from_template;
use serde_json::{Map, Value};

use crate::capabilities::Capabilities;
use crate::engine::{self, Job, Parsed};
use crate::functions::Lookup;
use crate::manifest::{self, Files, Hook, KindOrder, Manifest};
use crate::post_render::{self, PostRender, PostRenderStrategy};
use crate::{Error, ErrorKind, dependencies, values};

pub use crate::release::Release;

/// A chart that is parsed once and rendered many times.
///
/// It can be shared by threads. Templates are parsed when a rendering first needs them, and kept.
#[derive(Debug)]
pub struct Renderer {
    chart: Chart,
    helm: Helm,
    parsed: Parsed,
}

/// Options of a rendering, besides chart and values.
#[derive(Clone, Debug)]
pub struct Options {
    /// The release.
    pub release: Release,
    /// Capabilities of the cluster; None for those that Helm assumes offline.
    pub capabilities: Option<Capabilities>,
    /// Where `lookup` finds objects; without it finds none.
    pub lookup: Option<Arc<dyn Lookup>>,
    /// Changes what was rendered before it is split into manifests.
    pub post_render: Option<Arc<dyn PostRender>>,
    /// Input of the post-renderer.
    pub post_render_strategy: PostRenderStrategy,
    /// Defaults in place of those of the chart, such as Helm's upgrade takes that keeps the values of the release before
    /// ([`values::reuse`]).
    pub chart_values: Option<Arc<Map<String, Value>>>,
    /// Leaves values.schema.json aside.
    pub skip_schema_validation: bool,
    /// Adds the notes of dependencies to those of the chart.
    pub with_notes_of_dependencies: bool,
    /// Fails where a template names a key that is not there.
    pub strict: bool,
    /// Turns `fail` and `required` into warnings.
    pub lint: bool,
    /// Limits of the templates.
    pub limits: Limits,
    /// Size limit of manifests, hooks and notes together.
    pub output: OutputLimits,
}

impl Options {
    /// Makes the options of `helm template` for a release.
    pub fn new(release: Release) -> Self {
        Self {
            release,
            capabilities: None,
            lookup: None,
            post_render: None,
            post_render_strategy: PostRenderStrategy::default(),
            chart_values: None,
            skip_schema_validation: false,
            with_notes_of_dependencies: false,
            strict: false,
            lint: false,
            limits: Limits {
                stack: STACK,
                ..Limits::default()
            },
            output: OutputLimits::default(),
        }
    }
}

/// Size limits of the output of a rendering. Helm has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputLimits {
    /// Bytes of text.
    pub bytes: usize,
    /// YAML values in the manifests, with aliases expanded: an empty value takes a hundred times the memory of its text.
    pub values: usize,
}

impl Default for OutputLimits {
    fn default() -> Self {
        Self {
            bytes: usize::MAX,
            values: usize::MAX,
        }
    }
}

impl OutputLimits {
    fn check_text(self, files: &Files) -> Result<(), Error> {
        let bytes: usize = files.values().map(Vec::len).sum();
        if bytes <= self.bytes {
            return Ok(());
        }
        let text = format!(
            "the chart makes manifests of {bytes} bytes, which is more than {}",
            self.bytes
        );
        Err(Error::new(ErrorKind::Limit, text))
    }
}

/// How much stack templates get. Go's grow to a gigabyte; only what is used takes memory.
const STACK: usize = 256 * 1024 * 1024;

/// Stack that the thread keeps for what runs below the templates.
const STACK_BELOW: usize = 1024 * 1024;

/// Result of rendering a chart for a release.
#[derive(Clone, Debug)]
pub struct Rendered {
    /// The chart as it was rendered: without the dependencies that take no part, with the values that it imports. This is
    /// what Helm keeps of it in the record of a release.
    pub chart: Chart,
    /// Files of crds/, which are no templates, by their paths.
    pub crds: Vec<Crd>,
    /// Objects to install, in that order.
    pub manifests: Vec<Manifest>,
    /// Hooks that run at points of the release's life, sorted by kind.
    pub hooks: Vec<Hook>,
    /// NOTES.txt, rendered.
    pub notes: String,
    /// Warnings that Helm would log.
    pub warnings: Vec<Warning>,
}

/// A file of crds/.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crd {
    /// Where it stands: `chart/crds/file.yaml`.
    pub path: String,
    /// Its content, which may hold several documents.
    pub content: String,
}

impl Renderer {
    /// Takes a chart to render as a version of Helm does.
    pub fn new(chart: Chart, helm: Helm) -> Self {
        Self {
            chart,
            helm,
            parsed: Parsed::default(),
        }
    }

    /// Returns the chart, as it was loaded.
    pub fn chart(&self) -> &Chart {
        &self.chart
    }

    /// Returns the files of crds/ that a rendering with these values would return, for who installs them before it.
    pub fn crds(&self, values: &Map<String, Value>, options: &Options) -> Result<Vec<Crd>, Error> {
        let chart = self.processed(&values::from_json(values), options, &mut Vec::new())?;
        Ok(crds(&chart))
    }

    /// Renders the chart with values that are laid over its own.
    pub fn render(&self, values: &Map<String, Value>, options: &Options) -> Result<Rendered, Error> {
        name::check(&options.release.name, self.helm)?;
        go_template::on_stack(options.limits.stack + STACK_BELOW, || {
            self.render_here(values, options)
        })
        .map_err(|error| Error::new(ErrorKind::System, format!("failed to start a thread: {error}")))?
    }

    fn render_here(&self, given: &Map<String, Value>, options: &Options) -> Result<Rendered, Error> {
        let helm = self.helm;
        let mut warnings = Vec::new();
        let given = values::from_json(given);
        let chart = self.processed(&given, options, &mut warnings)?;
        let values = values::coalesce(&chart, &given, helm, &mut warnings)
            .map_err(|error| Error::new(ErrorKind::Values, error.to_string()))?;
        if !options.skip_schema_validation {
            check_schemas(&chart, &values, &mut warnings)?;
        }
        let offline;
        let capabilities = match &options.capabilities {
            Some(capabilities) => capabilities,
            None => {
                offline = Capabilities::offline(helm);
                &offline
            }
        };
        check_kube_version(&chart, capabilities, helm)?;
        let output = engine::render(&Job {
            helm,
            chart: &chart,
            parsed: &self.parsed,
            values,
            release: &options.release,
            capabilities,
            lookup: options.lookup.clone(),
            strict: options.strict,
            lint: options.lint,
            limits: options.limits.clone(),
        })?;
        warnings.extend(output.warnings.into_iter().map(Warning::new));
        self.finish(chart, output.files, warnings, options)
    }

    /// Settles which charts take part.
    fn processed(
        &self,
        given: &go_template::Map,
        options: &Options,
        warnings: &mut Vec<Warning>,
    ) -> Result<Chart, Error> {
        let mut chart = Cow::Borrowed(&self.chart);
        if let Some(values) = &options.chart_values {
            chart.to_mut().values = values.clone();
        }
        dependencies::process(&chart, given, self.helm, warnings)
            .map_err(|error| Error::new(ErrorKind::Dependencies, error.to_string()))
    }

    fn finish(
        &self,
        chart: Chart,
        mut files: Files,
        mut warnings: Vec<Warning>,
        options: &Options,
    ) -> Result<Rendered, Error> {
        options.output.check_text(&files)?;
        let notes = notes::take(&mut files, chart.name(), options.with_notes_of_dependencies);
        if let Some(post_render) = &options.post_render
            && self.helm == Helm::V4
        {
            files = post_render::run(files, &**post_render, options.post_render_strategy)?;
            options.output.check_text(&files)?;
        }
        let order = KindOrder::install(self.helm);
        let sorted = manifest::sort_within(&files, order, self.helm, options.output.values);
        let mut sorted = sorted.map_err(|error| {
            let path = error.path.clone();
            let error = Error::new(ErrorKind::Manifest, error.to_string()).in_file(&path, None);
            error.with_rendered(files)
        })?;
        warnings.append(&mut sorted.warnings);
        Ok(Rendered {
            crds: crds(&chart),
            chart,
            manifests: sorted.manifests,
            hooks: sorted.hooks,
            notes,
            warnings,
        })
    }
}

fn check_schemas(chart: &Chart, values: &go_template::Map, warnings: &mut Vec<Warning>) -> Result<(), Error> {
    schema::check_chart(chart, &values::to_json(values), warnings).map_err(|error| {
        let text = format!(
            "values don't meet the specifications of the schema(s) in the following chart(s):\n{error}"
        );
        Error::new(ErrorKind::Schema, text)
    })
}

fn check_kube_version(chart: &Chart, capabilities: &Capabilities, helm: Helm) -> Result<(), Error> {
    let range = &chart.metadata.kube_version;
    let version = &capabilities.kube_version;
    if range.is_empty() || version.is_in_range(range) {
        return Ok(());
    }
    let shown = match helm {
        Helm::V3 => version.to_string(),
        Helm::V4 => version.version.clone(),
    };
    Err(Error::new(
        ErrorKind::KubeVersion,
        format!("chart requires kubeVersion: {range} which is incompatible with Kubernetes {shown}"),
    ))
}

fn crds(chart: &Chart) -> Vec<Crd> {
    let files = chart.crd_files().into_iter();
    files
        .map(|crd| Crd {
            path: crd.path,
            content: String::from_utf8_lossy(&crd.file.data).into_owned(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use helm_chart::{File, load_files};

    #[test]
    fn a_chart_comes_back_as_it_was_rendered_and_its_definitions_are_known_before() {
        let file = |name: &str, text: &str| File {
            name: name.to_owned(),
            data: text.into(),
        };
        let files = vec![
            file(
                "Chart.yaml",
                "{apiVersion: v2, name: top, version: 1.0.0, dependencies: [{name: sub, version: '*', condition: used}]}",
            ),
            file("values.yaml", "own: 1"),
            file("crds/a.yaml", "kind: A"),
            file("templates/t.yaml", "kind: T\nall: {{ toJson .Values.own }}"),
            file(
                "charts/sub/Chart.yaml",
                "{apiVersion: v2, name: sub, version: 1.0.0}",
            ),
            file("charts/sub/crds/b.yaml", "kind: B"),
        ];
        let chart = load_files(files, Helm::V4, &mut Vec::new()).expect("the chart is valid");
        let renderer = Renderer::new(chart, Helm::V4);
        let mut options = Options::new(Release::new("demo", "default"));
        for (used, expected) in [
            (true, &["top/crds/a.yaml", "top/charts/sub/crds/b.yaml"][..]),
            (false, &["top/crds/a.yaml"]),
        ] {
            let values = json!({"used": used});
            let values = values.as_object().expect("a map");
            let crds = renderer.crds(values, &options).expect("they fit");
            let paths: Vec<_> = crds.iter().map(|crd| crd.path.as_str()).collect();
            assert_eq!(paths, expected);
            let rendered = renderer.render(values, &options).expect("they fit");
            assert_eq!(rendered.crds, crds);
            assert_eq!(rendered.chart.dependencies.len(), expected.len() - 1);
            // The files are those of the chart that was loaded.
            assert!(Arc::ptr_eq(&rendered.chart.content, &renderer.chart().content));
        }
        options.chart_values = Some(Arc::new(Map::from_iter([("own".to_owned(), json!(2.0))])));
        let rendered = renderer.render(&Map::new(), &options).expect("they fit");
        assert!(
            rendered.manifests[0].content.contains("all: 2"),
            "{:?}",
            rendered.manifests
        );
    }
}
