//! Charts that real Helm released, and the records that it made of them (hack/oracle/helm-release): ours are the same, byte
//! for byte, and Flux knows them by the same digests.

use std::io::Read as _;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use helm_chart::Helm;
use helm_release::record::{self, Written};
use helm_release::{
    ApplyMethod, Record, Release, Snapshot, Status, description, made, observation, snapshot, values,
};
use helm_render::{Options, PostRender, PostRenderStrategy, Renderer};
use serde::Deserialize;
use serde_json::{Map, Value};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Case {
    name: String,
    files: Vec<File>,
    values: Map<String, Value>,
    post_render: Option<String>,
    before: Option<String>,
    data: String,
    labels: record::Labels,
    digest: String,
}

#[derive(Deserialize)]
struct File {
    name: String,
    data: String,
}

/// Leaves everything as it is: what becomes of it is Helm's doing.
#[derive(Debug)]
struct Unchanged;

impl PostRender for Unchanged {
    fn run(&self, documents: &str) -> Result<String, String> {
        Ok(documents.to_owned())
    }
}

impl Case {
    fn renderer(&self) -> Renderer {
        let files = self.files.iter().map(|file| helm_chart::File {
            name: file.name.clone(),
            data: STANDARD.decode(&file.data).expect("base64").into(),
        });
        let chart = helm_chart::load_files(files.collect(), Helm::V4, &mut Vec::new());
        Renderer::new(chart.expect("a chart"), Helm::V4)
    }

    /// Renders the chart and makes a release of it, as the action does that Helm was asked for.
    fn released(&self) -> Record {
        let before = self.before.as_ref();
        let before =
            before.map(|data| Record::read(data.as_bytes(), record::Labels::new()).expect("a record"));
        let version = before.as_ref().map_or(1, |before| before.release.version + 1);
        let mut options = Options::new(helm_render::Release {
            name: "web".to_owned(),
            namespace: "apps".to_owned(),
            revision: version,
            is_upgrade: before.is_some(),
        });
        if let Some(strategy) = &self.post_render {
            options.post_render = Some(Arc::new(Unchanged));
            options.post_render_strategy = match strategy.as_str() {
                "combined" => PostRenderStrategy::Combined,
                "separate" => PostRenderStrategy::Separate,
                "nohooks" => PostRenderStrategy::NoHooks,
                other => panic!("{other}"),
            };
        }
        let mut config = self.values.clone();
        if let Some(Release {
            chart: Some(chart),
            config: given,
            ..
        }) = before.as_ref().map(|before| &before.release)
        {
            let defaults = chart.values().expect("values");
            let reused = helm_render::values::reuse(
                (chart.name(), &defaults),
                given,
                &config,
                Helm::V4,
                &mut Vec::new(),
            );
            let reused = reused.expect("they fit");
            options.chart_values = Some(reused.chart_values);
            config = reused.given;
        }
        let rendered = self.renderer().render(&config, &options);
        let rendered = rendered.unwrap_or_else(|error| panic!("{}: {error}", self.name));
        let mut release = made::release(rendered, ("web", "apps"), version, config);
        let at = "2026-11-22T09:00:00.1Z"
            .parse()
            .map(helm_release::Time::from_timestamp)
            .expect("a time");
        release.info.first_deployed = Some(at.clone());
        release.info.last_deployed = Some(at);
        let complete = if before.is_some() {
            description::UPGRADE_COMPLETE
        } else {
            description::INSTALL_COMPLETE
        };
        release.set_status(Status::Deployed, complete);
        release.apply_method = Some(ApplyMethod::ServerSide);
        Record {
            release,
            labels: record::Labels::new(),
        }
    }
}

fn cases() -> Vec<Case> {
    let lines = include_str!("charts.jsonl").lines();
    let cases: Vec<Case> = lines
        .map(|line| serde_json::from_str(line).expect("a recorded case"))
        .collect();
    assert!(cases.len() >= 11, "{}", cases.len());
    cases
}

fn json(data: &[u8]) -> String {
    let bytes = STANDARD.decode(data).expect("base64");
    let mut text = String::new();
    flate2::read::MultiGzDecoder::new(bytes.as_slice())
        .read_to_string(&mut text)
        .expect("gzip");
    text
}

#[test]
fn a_record_is_what_helm_writes() {
    for case in cases() {
        let ours = case.released();
        let data = record::encode(&ours.release).expect("it fits");
        assert_eq!(json(&data), json(case.data.as_bytes()), "{}", case.name);
        let at = jiff::Timestamp::new(1_700_000_000, 0).expect("a time");
        assert_eq!(ours.labels(Written::Modified(at)), case.labels, "{}", case.name);
    }
}

#[test]
fn flux_knows_it_by_the_same_digest_before_and_after_it_was_stored() {
    for case in cases() {
        let ours = case.released().release;
        assert_eq!(observation::digest(&ours, None), case.digest, "{}", case.name);
        let stored = record::decode(&record::encode(&ours).expect("it fits")).expect("a release");
        assert_eq!(
            snapshot::verify(&case.digest, None, &stored),
            Ok(()),
            "{}",
            case.name
        );
        assert_eq!(
            Snapshot::new(&ours, None),
            Snapshot::new(&stored, None),
            "{}",
            case.name
        );
        assert!(values::verify(
            &Snapshot::new(&ours, None).config_digest,
            &case.released().release.config
        ));
    }
}

#[test]
fn a_chart_that_was_loaded_is_the_one_that_is_read() {
    for case in cases() {
        let ours = case.released().release.chart.expect("a chart");
        let stored = record::decode(case.data.as_bytes())
            .expect("a release")
            .chart
            .expect("a chart");
        assert_eq!(ours, stored, "{}", case.name);
        assert_eq!((ours.name(), ours.version()), (stored.name(), stored.version()));
        assert_eq!(ours.app_version(), stored.app_version());
        assert_eq!(
            floats(&ours.values().expect("values")),
            floats(&stored.values().expect("values"))
        );
    }
}

/// Go knows nothing but floats here, whatever a text looks like.
fn floats(values: &Map<String, Value>) -> Value {
    fn values_of(value: &Value) -> Value {
        match value {
            Value::Number(number) => Value::from(number.as_f64().expect("a number")),
            Value::Array(items) => items.iter().map(values_of).collect(),
            Value::Object(fields) => Value::Object(
                fields
                    .iter()
                    .map(|(key, value)| (key.clone(), values_of(value)))
                    .collect(),
            ),
            other => other.clone(),
        }
    }
    values_of(&Value::Object(values.clone()))
}
