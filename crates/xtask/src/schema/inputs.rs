//! The published descriptions, as Go modules: what the tool that downloads them has verified.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// The library of kustomize v5.8.3.
const KUSTOMIZE: &str = "sigs.k8s.io/kustomize/kyaml@v0.21.3";
const KUSTOMIZE_BUNDLE: &str = "openapi/kubernetesapi/data/kubernetes-openapi-union-v1.21.2.bundle-v1.json";
const KUSTOMIZE_OWN: &str = "openapi/kustomizationapi/swagger.json";
/// The table of scopes is a literal in this source.
const KUSTOMIZE_SCOPES: &str = "openapi/openapi.go";
/// The Kubernetes release that hack/go.mod names too.
const KUBERNETES: &str = "k8s.io/kubernetes@v1.36.1";
const KUBERNETES_DOCUMENT: &str = "api/openapi-spec/swagger.json";

const TYPES: &str = "x-kubernetes-group-version-kind";

/// `apiVersion` and `kind`.
pub(super) type Type = (String, String);

/// Whether the objects of a type have a namespace.
pub(super) type Scopes = BTreeMap<Type, bool>;

/// Everything that is read.
pub(super) struct Inputs {
    pub(super) kustomize: Value,
    pub(super) kustomize_scopes: Scopes,
    pub(super) kubernetes: Value,
    /// Where each file comes from, with its digest.
    pub(super) origins: Vec<String>,
}

/// Downloads, where needed, and reads.
pub(super) fn read() -> Result<Inputs> {
    let mut origins = Vec::new();
    let module = download(KUSTOMIZE)?;
    let mut text = |module: &Path, name: &str, file: &str| -> Result<String> {
        let path = module.join(file);
        let text = fs::read_to_string(&path).with_context(|| format!("failed to read {}", path.display()))?;
        let digest = hex::encode(Sha256::digest(text.as_bytes()));
        origins.push(format!("{name}/{file}\nsha256:{digest}"));
        Ok(text)
    };
    let bundle = text(&module, KUSTOMIZE, KUSTOMIZE_BUNDLE)?;
    let own = text(&module, KUSTOMIZE, KUSTOMIZE_OWN)?;
    let source = text(&module, KUSTOMIZE, KUSTOMIZE_SCOPES)?;
    let document = text(&download(KUBERNETES)?, KUBERNETES, KUBERNETES_DOCUMENT)?;
    Ok(Inputs {
        kustomize: with_definitions_of(serde_json::from_str(&bundle)?, serde_json::from_str(&own)?)?,
        kustomize_scopes: scopes_of_source(&source)?,
        kubernetes: serde_json::from_str(&document)?,
        origins,
    })
}

fn download(module: &str) -> Result<PathBuf> {
    let output = Command::new("go")
        .args(["mod", "download", "-json", module])
        .current_dir(std::env::temp_dir())
        // kyaml asks for a newer Go than may be installed; nothing is compiled.
        .env("GOTOOLCHAIN", "auto")
        .output()
        .context("failed to run go")?;
    let answer: Value = serde_json::from_slice(&output.stdout).with_context(|| {
        format!(
            "failed to download {module}: {}",
            String::from_utf8_lossy(&output.stderr)
        )
    })?;
    match answer["Dir"].as_str() {
        Some(folder) => Ok(PathBuf::from(folder)),
        None => bail!("failed to download {module}: {}", answer["Error"]),
    }
}

/// kustomize adds its own document to the built-in one when it reads them.
fn with_definitions_of(mut document: Value, mut more: Value) -> Result<Value> {
    let definitions = document["definitions"]
        .as_object_mut()
        .context("no definitions")?;
    definitions.append(more["definitions"].as_object_mut().context("no definitions")?);
    Ok(document)
}

/// Reads the lines of `precomputedIsNamespaceScoped`.
fn scopes_of_source(source: &str) -> Result<Scopes> {
    let scope = |line: &str| {
        let (api_version, rest) = line
            .trim()
            .strip_prefix("{APIVersion: \"")?
            .split_once("\", Kind: \"")?;
        let (kind, rest) = rest.split_once("\"}:")?;
        let is_namespaced = rest.trim().split(',').next()?.parse().ok()?;
        Some(((api_version.to_owned(), kind.to_owned()), is_namespaced))
    };
    let table = source
        .split_once("precomputedIsNamespaceScoped = map")
        .context("no table of scopes")?
        .1;
    let lines = table.lines().skip(1).take_while(|line| *line != "}");
    let scopes: Option<Scopes> = lines.map(scope).collect();
    let scopes = scopes.context("a line of the table of scopes has another form")?;
    ensure!(!scopes.is_empty(), "the table of scopes is empty");
    Ok(scopes)
}

/// Finds the scopes as kustomize does in a document with paths: one with a namespace decides.
pub(super) fn scopes_of_paths(document: &Value) -> Result<Scopes> {
    let mut scopes = Scopes::new();
    for (path, operations) in document["paths"].as_object().context("no paths")? {
        if let Some(of) = operations["get"].get(TYPES) {
            *scopes.entry(type_of(of)?).or_default() |= path.contains("namespaces/{namespace}");
        }
    }
    Ok(scopes)
}

/// The types of a definition.
pub(super) fn types_of(definition: &Value) -> Result<Vec<Type>> {
    let types = definition.get(TYPES).and_then(Value::as_array);
    types.into_iter().flatten().map(type_of).collect()
}

fn type_of(value: &Value) -> Result<Type> {
    let text = |name: &str| {
        value[name]
            .as_str()
            .with_context(|| format!("a type without {name}: {value}"))
    };
    let version = text("version")?;
    let api_version = match value["group"].as_str() {
        None | Some("") => version.to_owned(),
        Some(group) => format!("{group}/{version}"),
    };
    Ok((api_version, text("kind")?.to_owned()))
}
