//! Helm's engine: from a chart whose dependencies are settled, and composed values, to rendered files.
//!
//! All templates of the tree of charts know each other. They are parsed, and then executed, from the deepest folder up; each
//! sees its own chart and its own part of the values. What comes out is text by the template's path, not yet manifests.

mod capabilities_data;
mod chart_data;
mod files_data;
mod job;
pub(crate) mod message;
mod parsed;
mod record;
mod scope;
mod values_type;

use go_template::{Map, MissingKey, Render, Templates, Value};

use helm_chart::Helm;
pub(crate) use parsed::Parsed;

use crate::functions::{self, State};
use crate::manifest::{Files, base};
use crate::{Error, ErrorKind};
use scope::Renderable;

pub(crate) use job::Job;

/// Output of a rendering.
pub(crate) struct Output {
    pub(crate) files: Files,
    pub(crate) warnings: Vec<String>,
}

/// Renders all templates of a chart. To be called on a thread with the stack that the limits name.
pub(crate) fn render(job: &Job<'_>) -> Result<Output, Error> {
    let scopes = scope::scopes(job);
    let mut renderables = scope::renderables(job.chart);
    renderables.sort_by(|a, b| deepest_first(&a.path, &b.path));
    let templates = job.parsed.templates(&renderables, job.helm)?;
    let output = execute(job, &templates, &renderables, &scopes);
    // Maps that hold each other would never be freed; all that templates saw ends here.
    scopes.iter().for_each(Map::clear);
    output
}

fn execute(
    job: &Job<'_>,
    templates: &Templates,
    renderables: &[Renderable<'_>],
    scopes: &[Map],
) -> Result<Output, Error> {
    let options = go_template::Options {
        missing_key: if job.strict {
            MissingKey::Error
        } else {
            MissingKey::Zero
        },
        limits: job.limits.clone(),
    };
    let mut render = Render::new(templates, functions::functions(job.helm), &options);
    let mut context = render.context();
    let state = context.state::<State>();
    state.lookup.clone_from(&job.lookup);
    state.lint = job.lint;
    let type_ = values_type::values_type(job.helm);
    let mut files = Files::new();
    for renderable in renderables {
        if base(&renderable.path).starts_with('_') {
            continue;
        }
        let scope = &scopes[renderable.chart];
        let template: Map = [("Name", &*renderable.path), ("BasePath", &*renderable.base_path)]
            .into_iter()
            .collect();
        // The scope is never a nil map.
        _ = scope.insert("Template", template.with_type(type_));
        let data = Value::Map(scope.with_type(type_));
        let output = render
            .execute(renderable.path.as_bytes(), &data)
            .map_err(|error| Error::of_template(&renderable.path, &error, job.helm))?;
        files.insert(renderable.path.clone(), functions::without_missing(output));
    }
    let warnings = std::mem::take(&mut render.context().state::<State>().warnings);
    Ok(Output { files, warnings })
}

/// Helm's `sortTemplates`: paths with more slashes first, then from the end of the alphabet.
fn deepest_first(a: &str, b: &str) -> std::cmp::Ordering {
    let slashes = |path: &str| path.bytes().filter(|byte| *byte == b'/').count();
    slashes(b).cmp(&slashes(a)).then_with(|| b.cmp(a))
}

impl Error {
    fn of_template(path: &str, error: &go_template::Error, helm: Helm) -> Self {
        let kind = if error.is_limit() {
            ErrorKind::Limit
        } else {
            ErrorKind::Template
        };
        Self::new(kind, message::of_execution(path, error, helm)).in_file(path, message::line_of(error))
    }
}
