//! Renders a template as a partial of a small chart, so that every byte of its output can be seen.
//!
//! The same chart as in hack/oracle/helm/render.go: the output of a file of manifests would be split and trimmed.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use helm_chart::{File, Helm};
use helm_render::capabilities::{Capabilities, KubeVersion};
use helm_render::{Options, Release, Rendered, Renderer};
use serde_json::Map;

const CHART: &str = r#"apiVersion: v2
name: vec
version: 0.1.0
appVersion: "1.0"
description: vector chart
home: https://example.com/vec
keywords: [k1, k2]
maintainers: [{name: ann, email: ann@example.com}]
annotations: {note: "n"}
"#;
const OUT: &str = "out: {{ include \"vec/templates/_t.tpl\" . | replace \"<no value>\" \"\" | b64enc }}\n";

/// Gives what the template makes as a partial, or the error that it has as a file of its own.
pub fn render(template: &str, values: &str, helm: Helm) -> Result<Vec<u8>, String> {
    match manifests(
        &[("templates/_t.tpl", template), ("templates/out.yaml", OUT)],
        values,
        helm,
    ) {
        Ok(rendered) => Ok(decode(&rendered)),
        Err(error) => match error_of(template, values, helm) {
            Ok(()) => Err(format!("only as a partial: {error}")),
            Err(error) => Err(error),
        },
    }
}

/// Gives the error that a template has as a file of its own.
pub fn error_of(template: &str, values: &str, helm: Helm) -> Result<(), String> {
    manifests(&[("templates/t.yaml", template)], values, helm).map(drop)
}

fn decode(rendered: &Rendered) -> Vec<u8> {
    let content = &rendered
        .manifests
        .first()
        .expect("out.yaml has a document")
        .content;
    let encoded = content
        .split_once("out: ")
        .map_or("", |(_, encoded)| encoded.trim());
    BASE64_STANDARD
        .decode(encoded.trim_matches('"'))
        .expect("b64enc wrote it")
}

fn manifests(templates: &[(&str, &str)], values: &str, helm: Helm) -> Result<Rendered, String> {
    let always = [
        ("Chart.yaml", CHART),
        ("values.yaml", values),
        ("data/a.txt", "alpha\n"),
        ("templates/_other.tpl", "other {{ .Values.name }}\n"),
    ];
    let files = always.iter().chain(templates).map(|(path, content)| File {
        name: (*path).to_owned(),
        data: content.as_bytes().into(),
    });
    let chart =
        helm_chart::load_files(files.collect(), helm, &mut Vec::new()).map_err(|error| error.to_string())?;
    let mut capabilities = Capabilities::offline(helm);
    capabilities.kube_version = KubeVersion::parse("1.34.0", helm).expect("a version");
    let options = Options {
        capabilities: Some(capabilities),
        ..Options::new(Release::new("demo", "demo-ns"))
    };
    Renderer::new(chart, helm)
        .render(&Map::new(), &options)
        .map_err(|error| error.to_string())
}
