//! The message of a commit: a Go template over what changed, with Flux's data.

use std::any::Any;
use std::collections::BTreeMap;
use std::rc::Rc;

use api::image::ImageUpdateAutomation;
use go_template::{
    Function, Functions, Kind, Limits, List, Object, Options, Str, Templates, Type, TypeInfo, Value, on_stack,
};
use yaml_setters::{Change, ObjectIdentifier};

/// Message without a template.
const DEFAULT: &str = "Update from image update automation";
const NAME: &str = "commit message";
/// Stack of a render, in bytes.
const STACK: usize = 4 << 20;
/// Longer messages are not made, in bytes.
const MAX_BYTES: usize = 256 << 10;
const MAX_STEPS: u64 = 2_000_000;
/// Functions of sprig whose result is not the same each time, or that take more than a message is worth; Flux leaves out
/// the first kind (sprig's hermetic functions).
const REFUSED: [&str; 37] = [
    "ago",
    "date",
    "dateInZone",
    "date_in_zone",
    "date_modify",
    "dateModify",
    "must_date_modify",
    "mustDateModify",
    "htmlDate",
    "htmlDateInZone",
    "now",
    "toDate",
    "mustToDate",
    "unixEpoch",
    "duration",
    "durationRound",
    "randAlphaNum",
    "randAlpha",
    "randAscii",
    "randNumeric",
    "randBytes",
    "randInt",
    "uuidv4",
    "getHostByName",
    "genPrivateKey",
    "genCA",
    "genSelfSignedCert",
    "genSignedCert",
    "genCAWithKey",
    "genSelfSignedCertWithKey",
    "genSignedCertWithKey",
    "buildCustomCert",
    "encryptAES",
    "decryptAES",
    "derivePassword",
    "htpasswd",
    "bcrypt",
];

/// Why there is no message.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Error {
    /// The template cannot be read.
    #[error("unable to create commit message template from spec: {0}")]
    Parse(String),
    /// It cannot be carried out.
    #[error("failed to run template from spec: {0}")]
    Run(String),
    /// It uses what Flux has removed.
    #[error(
        "template uses removed '{field}' field. Please use '{instead}' instead. See: \
         https://fluxcd.io/flux/components/image/imageupdateautomations/#message-template"
    )]
    RemovedField {
        /// The field.
        field: &'static str,
        /// What took its place.
        instead: &'static str,
    },
}

/// What a template sees.
#[derive(Debug, Clone, Default)]
pub(crate) struct Data {
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// For templates of a ChangePolicy: the policy whose changes these are, empty for all.
    pub(crate) policy: Option<String>,
    /// By file.
    pub(crate) files: BTreeMap<String, Vec<Change>>,
    pub(crate) values: BTreeMap<String, String>,
    /// For descriptions of pull requests.
    pub(crate) parts: Option<Parts>,
}

/// What a description is made of, as Markdown.
#[derive(Debug, Clone, Default)]
pub(crate) struct Parts {
    /// What changes where.
    pub(crate) table: String,
    /// Where the images come from.
    pub(crate) images: String,
    /// What changes in the objects of Kustomizations.
    pub(crate) objects: String,
}

impl Data {
    /// What a template sees of an automation that changes these files.
    pub(crate) fn new(
        object: &ImageUpdateAutomation,
        policy: Option<&str>,
        files: BTreeMap<String, Vec<Change>>,
    ) -> Self {
        let git = object.spec.git.as_ref();
        Self {
            namespace: object.metadata.namespace.clone().unwrap_or_default(),
            name: object.metadata.name.clone().unwrap_or_default(),
            policy: policy.map(str::to_owned),
            files,
            values: git
                .map(|git| git.commit.message_template_values.clone())
                .unwrap_or_default(),
            parts: None,
        }
    }
}

/// Makes the message.
pub(crate) fn render(template: Option<&str>, data: &Data) -> Result<String, Error> {
    let template = template.unwrap_or(DEFAULT);
    let data = data.clone();
    let rendered = on_stack(STACK, || {
        let mut functions = sprig_functions::all();
        for name in REFUSED {
            functions.remove(name);
        }
        run(template, data, &functions)
    });
    rendered.map_err(|error| Error::Run(error.to_string()))?
}

fn run(template: &str, data: Data, functions: &Functions) -> Result<String, Error> {
    let mut templates = Templates::new(NAME);
    let parsed = templates.parse(NAME, template, functions);
    parsed.map_err(|error| Error::Parse(error.to_string()))?;
    let options = Options {
        limits: Limits {
            stack: STACK - (512 << 10),
            bytes: MAX_BYTES,
            steps: MAX_STEPS,
            ..Limits::default()
        },
        ..Options::default()
    };
    let data = Value::object(Struct::data(data));
    let text = templates.execute(NAME, &data, functions, &options);
    let text = text.map_err(|error| {
        let problem = error.to_string();
        if problem.contains("can't evaluate field Updated in type") {
            Error::RemovedField {
                field: ".Updated",
                instead: ".Changed",
            }
        } else if problem.contains("can't evaluate field ImageResult in type") {
            Error::RemovedField {
                field: ".Changed.ImageResult",
                instead: ".Changed.FileChanges' or '.Changed.Objects",
            }
        } else {
            Error::Run(problem)
        }
    })?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// A struct of Go with these fields.
#[derive(Debug)]
struct Struct {
    type_: &'static TypeInfo,
    fields: Vec<(&'static str, Value)>,
    text: Option<String>,
    /// For methods.
    files: Rc<BTreeMap<String, Vec<Change>>>,
}

static DATA: TypeInfo = named("source.TemplateData", None);
static NAMESPACED_NAME: TypeInfo = named("types.NamespacedName", None);
static RESULT: TypeInfo = named("update.Result", Some(method_of_result));
static IDENTIFIER: TypeInfo = named("update.ObjectIdentifier", None);
static CHANGE: TypeInfo = named("update.Change", None);
static CHANGES: TypeInfo = TypeInfo::new("[]update.Change", Kind::Slice, Type::new(&CHANGE));
static OBJECT_CHANGES: TypeInfo = TypeInfo {
    name: "update.ObjectChanges",
    kind: Kind::Map,
    element: None,
    named: true,
    method: None,
};

const fn named(name: &'static str, method: Option<fn(&str) -> Option<Function>>) -> TypeInfo {
    TypeInfo {
        name,
        kind: Kind::Struct,
        element: None,
        named: true,
        method,
    }
}

impl Struct {
    fn new(type_: &'static TypeInfo, fields: Vec<(&'static str, Value)>) -> Self {
        Self {
            type_,
            fields,
            text: None,
            files: Rc::default(),
        }
    }

    fn data(data: Data) -> Self {
        let automation = Self {
            text: Some(format!("{}/{}", data.namespace, data.name)),
            ..Self::new(
                &NAMESPACED_NAME,
                vec![("Namespace", data.namespace.into()), ("Name", data.name.into())],
            )
        };
        let by_file = data.files.iter().map(|(file, changes)| {
            let objects = Value::object(Objects::new(changes.iter()));
            (file.as_str(), objects)
        });
        let by_file = Value::Map(by_file.collect());
        let changed = Self {
            files: Rc::new(data.files),
            ..Self::new(&RESULT, vec![("FileChanges", by_file)])
        };
        let values = data
            .values
            .iter()
            .map(|(key, value)| (key.as_str(), Value::from(value.as_str())));
        let mut fields = vec![
            ("AutomationObject", Value::object(automation)),
            ("Changed", Value::object(changed)),
            ("Values", Value::Map(values.collect())),
        ];
        if let Some(policy) = data.policy {
            fields.push(("Policy", policy.into()));
        }
        if let Some(parts) = data.parts {
            fields.push(("Table", parts.table.into()));
            fields.push(("Images", parts.images.into()));
            fields.push(("Objects", parts.objects.into()));
        }
        Self::new(&DATA, fields)
    }
}

impl Object for Struct {
    fn type_(&self) -> Type {
        Type::new(self.type_)
    }

    fn fields(&self) -> Vec<(&'static str, Value)> {
        self.fields.clone()
    }

    fn text(&self) -> Option<Str> {
        self.text.as_deref().map(Str::from)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Changes by object: a map of Go whose keys are structs.
#[derive(Debug)]
struct Objects(BTreeMap<ObjectIdentifier, Vec<Change>>);

impl Objects {
    fn new<'a>(changes: impl Iterator<Item = &'a Change>) -> Self {
        let mut objects: BTreeMap<_, Vec<Change>> = BTreeMap::new();
        for change in changes {
            objects
                .entry(change.object.clone())
                .or_default()
                .push(change.clone());
        }
        Self(objects)
    }
}

impl Object for Objects {
    fn type_(&self) -> Type {
        Type::new(&OBJECT_CHANGES)
    }

    fn entries(&self) -> Option<Vec<(Value, Value)>> {
        let entry = |(object, changes): (&ObjectIdentifier, &Vec<Change>)| {
            let changes: Vec<_> = changes.iter().map(change).collect();
            (
                identifier(object),
                Value::List(List::new(Type::new(&CHANGES), changes)),
            )
        };
        Some(self.0.iter().map(entry).collect())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn identifier(object: &ObjectIdentifier) -> Value {
    Value::object(Struct::new(
        &IDENTIFIER,
        vec![
            ("APIVersion", object.api_version.as_str().into()),
            ("Kind", object.kind.as_str().into()),
            ("Name", object.name.as_str().into()),
            ("Namespace", object.namespace.as_str().into()),
        ],
    ))
}

fn change(change: &Change) -> Value {
    Value::object(Struct::new(
        &CHANGE,
        vec![
            ("OldValue", change.old.as_str().into()),
            ("NewValue", change.new.as_str().into()),
            ("Setter", change.setter.as_str().into()),
        ],
    ))
}

/// The methods of `update.Result`.
fn method_of_result(name: &str) -> Option<Function> {
    fn files(arguments: &[Value]) -> Rc<BTreeMap<String, Vec<Change>>> {
        match arguments.first() {
            Some(Value::Object(object)) => object
                .as_any()
                .downcast_ref::<Struct>()
                .map(|result| result.files.clone())
                .unwrap_or_default(),
            _ => Rc::default(),
        }
    }
    match name {
        "Changes" => Some(Function::new(&[], |_, arguments| {
            let mut seen = Vec::new();
            for found in files(arguments).values().flatten() {
                let key = (found.old.clone(), found.new.clone(), found.setter.clone());
                if !seen.contains(&key) {
                    seen.push(key);
                }
            }
            let changes = seen.into_iter().map(|(old, new, setter)| {
                change(&Change {
                    object: ObjectIdentifier::default(),
                    old,
                    new,
                    setter,
                    line: 0,
                })
            });
            Ok(Value::List(List::new(Type::new(&CHANGES), changes.collect())))
        })),
        "Objects" => Some(Function::new(&[], |_, arguments| {
            let files = files(arguments);
            Ok(Value::object(Objects::new(files.values().flatten())))
        })),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data() -> Data {
        let change = |kind: &str, old: &str, new: &str| Change {
            object: ObjectIdentifier {
                api_version: "apps/v1".into(),
                kind: kind.into(),
                namespace: "prod".into(),
                name: "web".into(),
            },
            old: old.into(),
            new: new.into(),
            setter: "ns:app".into(),
            line: 1,
        };
        Data {
            policy: None,
            namespace: "flux-system".into(),
            name: "auto".into(),
            files: [
                (
                    "a.yaml".to_owned(),
                    vec![change("Deployment", "app:v1", "app:v2")],
                ),
                (
                    "b.yaml".to_owned(),
                    vec![change("CronJob", "app:v1", "app:v2"), change("CronJob", "x", "y")],
                ),
            ]
            .into(),
            values: [("cluster".to_owned(), "prod".to_owned())].into(),
            ..Data::default()
        }
    }

    fn message(template: &str) -> Result<String, String> {
        render(Some(template), &data()).map_err(|error| error.to_string())
    }

    #[test]
    fn templates_see_what_changed() {
        for (template, expected) in [
            ("{{ .AutomationObject }}", "flux-system/auto"),
            (
                "{{ .AutomationObject.Name }} {{ .Values.cluster | upper }}",
                "auto PROD",
            ),
            (
                "{{ range $file, $objects := .Changed.FileChanges }}{{ $file }}:{{ range $object, $changes := $objects }} \
                 {{ $object.Kind }}/{{ $object.Name }}{{ range $changes }} {{ .OldValue }}->{{ .NewValue }}{{ end }}{{ end }}\n{{ end }}",
                "a.yaml: Deployment/web app:v1->app:v2\nb.yaml: CronJob/web app:v1->app:v2 x->y\n",
            ),
            (
                "{{ range .Changed.Changes }}{{ .OldValue }}->{{ .NewValue }} {{ .Setter }};{{ end }}",
                "app:v1->app:v2 ns:app;x->y ns:app;",
            ),
            (
                "{{ range $object, $_ := .Changed.Objects }}{{ $object.Kind }}.{{ $object.APIVersion }} {{ end }}",
                "CronJob.apps/v1 Deployment.apps/v1 ",
            ),
            ("{{ if .Changed.Objects }}yes{{ end }}", "yes"),
            ("plain", "plain"),
        ] {
            assert_eq!(message(template).as_deref(), Ok(expected));
        }
        assert_eq!(render(None, &data()).unwrap(), DEFAULT);
    }

    #[test]
    fn what_was_removed_is_named_and_the_rest_is_an_error() {
        let error = render(Some("{{ .Updated.Files }}"), &data()).unwrap_err();
        assert!(
            matches!(
                error,
                Error::RemovedField {
                    field: ".Updated",
                    ..
                }
            ),
            "{error}"
        );
        let error = render(Some("{{ .Changed.ImageResult }}"), &data()).unwrap_err();
        assert!(matches!(error, Error::RemovedField { .. }), "{error}");
        assert!(matches!(render(Some("{{ .Nope }}"), &data()), Err(Error::Run(_))));
        assert!(matches!(render(Some("{{ if"), &data()), Err(Error::Parse(_))));
        assert!(
            matches!(render(Some("{{ now }}"), &data()), Err(Error::Parse(_))),
            "not hermetic"
        );
        assert!(matches!(
            render(Some("{{ genCA \"x\" 1 }}"), &data()),
            Err(Error::Parse(_))
        ));
        let endless = "{{ range until 100000 }}{{ range until 100000 }}x{{ end }}{{ end }}";
        assert!(matches!(render(Some(endless), &data()), Err(Error::Run(_))));
    }
}
