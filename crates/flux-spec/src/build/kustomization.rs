//! The folder's own kustomization file, read as leniently as Flux reads it.
//!
//! Flux reads the file into kustomize's types and writes them back before kustomize sees it
//! (fluxcd/pkg/kustomize `GenerateManifest`, with sigs.k8s.io/yaml's `Unmarshal`). So, in this one file, fields that
//! kustomize does not know are passed over, numbers and booleans are texts where a text is wanted (`newTag: 1.20` is
//! the tag 1.2), and a name counts in any case. What is still wrong is refused by the build.

use kustomize_build::FileSystem;
use manifest::yaml::{self, Dialect, Nodes};
use serde_json::{Map, Number, Value};

use crate::build::error::Error;

/// Type that a field may hold.
enum Shape {
    /// Whatever it is, it stays.
    Any,
    Text,
    /// A mapping from texts to texts.
    Texts,
    List(&'static Shape),
    Object(&'static [(&'static str, &'static Shape)]),
}

use Shape::{Any, List, Object, Text, Texts};

const NAMES: Shape = List(&Text);
const SELECTOR: Shape = Object(&[
    ("group", &Text),
    ("version", &Text),
    ("kind", &Text),
    ("name", &Text),
    ("namespace", &Text),
    ("annotationSelector", &Text),
    ("labelSelector", &Text),
]);
const PATCHES: Shape = List(&Object(&[
    ("path", &Text),
    ("patch", &Text),
    ("target", &SELECTOR),
    ("options", &Any),
]));
const IMAGES: Shape = List(&Object(&[
    ("name", &Text),
    ("newName", &Text),
    ("tagSuffix", &Text),
    ("newTag", &Text),
    ("digest", &Text),
]));
const FIELD_SPECS: Shape = List(&Object(&[
    ("group", &Text),
    ("version", &Text),
    ("kind", &Text),
    ("path", &Text),
    ("create", &Any),
]));
const LABELS: Shape = List(&Object(&[
    ("pairs", &Texts),
    ("includeSelectors", &Any),
    ("includeTemplates", &Any),
    ("fields", &FIELD_SPECS),
]));
const GENERATOR_OPTIONS: Shape = Object(&[
    ("labels", &Texts),
    ("annotations", &Texts),
    ("disableNameSuffixHash", &Any),
    ("immutable", &Any),
]);
const GENERATORS: Shape = List(&Object(&[
    ("namespace", &Text),
    ("name", &Text),
    ("behavior", &Text),
    ("literals", &NAMES),
    ("files", &NAMES),
    ("envs", &NAMES),
    ("env", &Text),
    ("options", &GENERATOR_OPTIONS),
    ("type", &Text),
]));
const FIELD_OPTIONS: Shape = Object(&[
    ("delimiter", &Text),
    ("index", &Any),
    ("encoding", &Text),
    ("create", &Any),
]);
const REPLACEMENTS: Shape = List(&Object(&[
    ("path", &Text),
    ("source", &SOURCE),
    ("sourceValue", &Text),
    ("targets", &TARGETS),
]));
const SOURCE: Shape = Object(&[
    ("group", &Text),
    ("version", &Text),
    ("kind", &Text),
    ("name", &Text),
    ("namespace", &Text),
    ("fieldPath", &Text),
    ("options", &FIELD_OPTIONS),
]);
const TARGETS: Shape = List(&Object(&[
    ("select", &SELECTOR),
    ("reject", &List(&SELECTOR)),
    ("fieldPaths", &NAMES),
    ("options", &FIELD_OPTIONS),
]));
const VARIABLES: Shape = List(&Object(&[
    ("name", &Text),
    (
        "objref",
        &Object(&[
            ("apiVersion", &Text),
            ("group", &Text),
            ("version", &Text),
            ("kind", &Text),
            ("name", &Text),
            ("namespace", &Text),
        ]),
    ),
    ("fieldref", &Object(&[("fieldPath", &Text)])),
]));
const SORT_OPTIONS: Shape = Object(&[
    ("order", &Text),
    (
        "legacySortOptions",
        &Object(&[("orderFirst", &NAMES), ("orderLast", &NAMES)]),
    ),
]);

/// The fields of kustomize's `types.Kustomization`.
const KUSTOMIZATION: Shape = Object(&[
    ("apiVersion", &Text),
    ("kind", &Text),
    ("metadata", &Any),
    ("openapi", &Texts),
    ("namePrefix", &Text),
    ("nameSuffix", &Text),
    ("namespace", &Text),
    ("commonLabels", &Texts),
    ("labels", &LABELS),
    ("commonAnnotations", &Texts),
    ("patchesStrategicMerge", &NAMES),
    ("patchesJson6902", &PATCHES),
    ("patches", &PATCHES),
    ("images", &IMAGES),
    ("imageTags", &IMAGES),
    ("replacements", &REPLACEMENTS),
    ("replicas", &List(&Object(&[("name", &Text), ("count", &Any)]))),
    ("vars", &VARIABLES),
    ("sortOptions", &SORT_OPTIONS),
    ("resources", &NAMES),
    ("components", &NAMES),
    ("crds", &NAMES),
    ("bases", &NAMES),
    ("configMapGenerator", &GENERATORS),
    ("secretGenerator", &GENERATORS),
    ("helmGlobals", &Any),
    ("helmCharts", &Any),
    ("helmChartInflationGenerator", &Any),
    ("generatorOptions", &GENERATOR_OPTIONS),
    ("configurations", &NAMES),
    ("generators", &NAMES),
    ("transformers", &NAMES),
    ("validators", &NAMES),
    ("buildMetadata", &NAMES),
]);

/// Reads a kustomization file; only its first document counts.
pub(crate) fn read(fs: &dyn FileSystem, path: &str) -> Result<Map<String, Value>, Error> {
    let bytes = fs.read(path).map_err(|source| Error::Read {
        path: path.to_owned(),
        source,
    })?;
    let parse = |problem| yaml::Error::new(path, problem);
    let mut nodes = Nodes::default();
    let value = match yaml::compose_first(&bytes[..], &mut nodes, Dialect::Sigs).map_err(parse)? {
        Some(root) => yaml::json::decode(&nodes, root).map_err(parse)?,
        None => Value::Null,
    };
    let mut fields = match fit(value, &KUSTOMIZATION) {
        Value::Object(fields) => fields,
        Value::Null => Map::new(),
        _ => {
            return Err(Error::Malformed {
                path: path.to_owned(),
                what: "a kustomization must be a mapping".to_owned(),
            });
        }
    };
    // Flux fills these before it reads the file, so that a Component without a version is refused.
    for (field, value) in [
        ("apiVersion", "kustomize.config.k8s.io/v1beta1"),
        ("kind", "Kustomization"),
    ] {
        fields
            .entry(field)
            .or_insert_with(|| Value::String(value.to_owned()));
    }
    Ok(fields)
}

/// Brings a value as near to its shape as Go's reading does; what does not fit stays, for the build to refuse.
fn fit(value: Value, shape: &Shape) -> Value {
    match (value, shape) {
        (Value::Bool(flag), Text) => Value::String(flag.to_string()),
        (Value::Number(number), Text) => Value::String(number_as_text(&number)),
        (Value::Array(items), List(shape)) => items.into_iter().map(|item| fit(item, shape)).collect(),
        (Value::Object(fields), Texts) => {
            let fitted = fields.into_iter().map(|(key, value)| (key, fit(value, &Text)));
            Value::Object(fitted.collect())
        }
        (Value::Object(fields), Object(known)) => Value::Object(fit_fields(fields, known)),
        (value, _) => value,
    }
}

fn fit_fields(fields: Map<String, Value>, known: &[(&str, &Shape)]) -> Map<String, Value> {
    let mut fields: Vec<_> = fields.into_iter().filter(|(_, value)| !value.is_null()).collect();
    // Of names that differ in case only the last in the order of bytes counts: the one that is written right.
    fields.sort_by(|(a, _), (b, _)| a.cmp(b));
    let fitted = fields.into_iter().filter_map(|(key, value)| {
        let (name, shape) = known.iter().find(|(name, _)| name.eq_ignore_ascii_case(&key))?;
        Some(((*name).to_owned(), fit(value, shape)))
    });
    fitted.collect()
}

/// Writes a number as Go's strconv does in sigs.k8s.io/yaml.
fn number_as_text(number: &Number) -> String {
    match number.as_f64() {
        Some(float) if number.is_f64() => yaml::number::format_g(float),
        _ => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use kustomize_build::MemoryFs;
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_are_known_in_any_case_and_unknown_ones_are_dropped() {
        let mut files = MemoryFs::default();
        files.insert(
            "k",
            "NAMEPREFIX: x-\nbogus: 1\nnameSuffix: null\nImages: [{Name: a, newtag: 7, other: b}]\n",
        );
        assert_eq!(
            Value::Object(read(&files, "k").unwrap()),
            json!({
                "apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization",
                "namePrefix": "x-", "images": [{"name": "a", "newTag": "7"}],
            })
        );
    }

    #[test]
    fn a_file_that_is_no_mapping_is_named() {
        let mut files = MemoryFs::default();
        files.insert("k/kustomization.yaml", "- a\n");
        let error = read(&files, "k/kustomization.yaml").unwrap_err();
        assert!(error.to_string().starts_with("k/kustomization.yaml: "), "{error}");
    }
}
