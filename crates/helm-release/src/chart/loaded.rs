//! A loaded chart as Helm writes it into a record: the fields of its structs, with their names, in their order.
//!
//! Charts within the chart are no part of it, nor is what it was packed with.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;
use go_time::Time;
use helm_chart::{Chart, Dependency, File, Lock, Maintainer, Metadata};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::time::ZERO;
use go_text::json::{self, Any, AnyMap};

/// How Go reads times in JSON, and how it writes them.
const RFC_3339: &[u8] = b"2006-01-02T15:04:05Z07:00";
const RFC_3339_NANO: &[u8] = b"2006-01-02T15:04:05.999999999Z07:00";

/// Chart.yaml as it stands in a record.
pub(super) fn metadata(metadata: &Metadata) -> Box<RawValue> {
    let text = json::to_string(&MetadataFields::from_metadata(metadata));
    RawValue::from_string(text).expect("it was written as JSON")
}

/// Writes a chart.
pub(super) struct Loaded<'a>(pub(super) &'a Chart);

#[derive(Serialize)]
struct ChartFields<'a> {
    metadata: MetadataFields<'a>,
    lock: Option<LockFields<'a>>,
    templates: Option<Vec<FileFields<'a>>>,
    values: Option<AnyMap<'a>>,
    schema: Option<Bytes<'a>>,
    schemamodtime: &'static str,
    files: Option<Vec<FileFields<'a>>>,
}

impl Serialize for Loaded<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Chart {
            metadata,
            content,
            values,
            ..
        } = self.0;
        // Go's map is nil without a values.yaml, unless processing the dependencies has made one.
        let has_values = content.values.is_some() || metadata.dependencies.is_some() || !values.is_empty();
        let fields = ChartFields {
            metadata: MetadataFields::from_metadata(metadata),
            lock: content.lock.as_ref().map(LockFields::from_lock),
            templates: files(&content.templates),
            values: has_values.then_some(AnyMap(values)),
            schema: content.schema.as_ref().map(|schema| Bytes(&schema.file().data)),
            schemamodtime: ZERO,
            files: files(&content.files),
        };
        fields.serialize(serializer)
    }
}

#[derive(Serialize)]
struct FileFields<'a> {
    name: &'a str,
    data: Bytes<'a>,
}

/// A slice to which nothing was appended is nil.
fn files(files: &[Arc<File>]) -> Option<Vec<FileFields<'_>>> {
    let fields = files.iter().map(|file| FileFields {
        name: &file.name,
        data: Bytes(&file.data),
    });
    (!files.is_empty()).then(|| fields.collect())
}

/// Bytes, which Go writes in base64; as a stream, since they may be many.
struct Bytes<'a>(&'a [u8]);

impl Serialize for Bytes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&Base64Display::new(self.0, &STANDARD))
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct MetadataFields<'a> {
    #[serde(skip_serializing_if = "is_blank")]
    name: &'a str,
    #[serde(skip_serializing_if = "is_blank")]
    home: &'a str,
    #[serde(skip_serializing_if = "is_none")]
    sources: &'a [String],
    #[serde(skip_serializing_if = "is_blank")]
    version: &'a str,
    #[serde(skip_serializing_if = "is_blank")]
    description: &'a str,
    #[serde(skip_serializing_if = "is_none")]
    keywords: &'a [String],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    maintainers: Vec<MaintainerFields<'a>>,
    #[serde(skip_serializing_if = "is_blank")]
    icon: &'a str,
    #[serde(skip_serializing_if = "is_blank")]
    api_version: &'a str,
    #[serde(skip_serializing_if = "is_blank")]
    condition: &'a str,
    #[serde(skip_serializing_if = "is_blank")]
    tags: &'a str,
    #[serde(skip_serializing_if = "is_blank")]
    app_version: &'a str,
    #[serde(skip_serializing_if = "is_false")]
    deprecated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    annotations: Option<&'a BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "is_blank")]
    kube_version: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    dependencies: Vec<DependencyFields<'a>>,
    #[serde(rename = "type", skip_serializing_if = "is_blank")]
    kind: &'a str,
}

impl<'a> MetadataFields<'a> {
    fn from_metadata(metadata: &'a Metadata) -> Self {
        let dependencies = metadata.dependencies.iter().flatten();
        let annotations = metadata.annotations.as_ref();
        Self {
            name: &metadata.name,
            home: &metadata.home,
            sources: &metadata.sources,
            version: &metadata.version,
            description: &metadata.description,
            keywords: &metadata.keywords,
            maintainers: metadata
                .maintainers
                .iter()
                .map(MaintainerFields::from_maintainer)
                .collect(),
            icon: &metadata.icon,
            api_version: &metadata.api_version,
            condition: &metadata.condition,
            tags: &metadata.tags,
            app_version: &metadata.app_version,
            deprecated: metadata.deprecated,
            annotations: annotations.filter(|annotations| !annotations.is_empty()),
            kube_version: &metadata.kube_version,
            dependencies: dependencies.map(DependencyFields::from_dependency).collect(),
            kind: &metadata.kind,
        }
    }
}

#[derive(Serialize)]
struct MaintainerFields<'a> {
    #[serde(skip_serializing_if = "is_blank")]
    name: &'a str,
    #[serde(skip_serializing_if = "is_blank")]
    email: &'a str,
    #[serde(skip_serializing_if = "is_blank")]
    url: &'a str,
}

impl<'a> MaintainerFields<'a> {
    fn from_maintainer(Maintainer { name, email, url }: &'a Maintainer) -> Self {
        Self { name, email, url }
    }
}

#[derive(Serialize)]
struct DependencyFields<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "is_blank")]
    version: &'a str,
    repository: &'a str,
    #[serde(skip_serializing_if = "is_blank")]
    condition: &'a str,
    #[serde(skip_serializing_if = "is_none")]
    tags: &'a [String],
    #[serde(skip_serializing_if = "is_false")]
    enabled: bool,
    #[serde(rename = "import-values", skip_serializing_if = "Vec::is_empty")]
    import_values: Vec<Any<'a>>,
    #[serde(skip_serializing_if = "is_blank")]
    alias: &'a str,
}

impl<'a> DependencyFields<'a> {
    fn from_dependency(dependency: &'a Dependency) -> Self {
        Self {
            name: &dependency.name,
            version: &dependency.version,
            repository: &dependency.repository,
            condition: &dependency.condition,
            tags: &dependency.tags,
            enabled: dependency.enabled,
            import_values: dependency.import_values.iter().map(Any).collect(),
            alias: &dependency.alias,
        }
    }
}

#[derive(Serialize)]
struct LockFields<'a> {
    generated: String,
    digest: &'a str,
    dependencies: Vec<DependencyFields<'a>>,
}

impl<'a> LockFields<'a> {
    fn from_lock(lock: &'a Lock) -> Self {
        let dependencies = lock.dependencies.iter().map(DependencyFields::from_dependency);
        Self {
            generated: generated(&lock.generated),
            digest: &lock.digest,
            dependencies: dependencies.collect(),
        }
    }
}

/// Go reads the time and writes it in its own way.
fn generated(text: &str) -> String {
    match Time::parse(RFC_3339, text.as_bytes()) {
        Ok(time) => String::from_utf8_lossy(&time.format(RFC_3339_NANO)).into_owned(),
        Err(_) => ZERO.to_owned(),
    }
}

fn is_blank(text: &&str) -> bool {
    text.is_empty()
}

fn is_none<T>(list: &&[T]) -> bool {
    list.is_empty()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_false(truth: &bool) -> bool {
    !*truth
}
