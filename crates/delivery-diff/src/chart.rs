//! The chart of a HelmRelease: out of the content where it lies there, else as the cluster's source has it.

use std::io::{self, Read};
use std::path::Path;

use api::helm::{ChartTemplate, HelmRelease};
use delivery_graph::kind;
use delivery_graph::object::text;
use error_chain::chain;
use helm_chart::Helm;
use helm_package::dependencies::{Fetch, Fetched};
use helm_package::{Entry, Files, Limits, Options, What, local};
use helm_render::Renderer;
use kube::ResourceExt as _;
use kustomize_build::{FileKind, FsError};
use manifest::ObjectId;
use serde_json::{Value, json};

use crate::archive::Archives;
use crate::content::Content;
use crate::reader::Reader;
use crate::subject::Compared;
use crate::world::World;

/// The largest archive of a chart; Helm takes no more when it is unpacked.
const MAX_CHART: u64 = 100 << 20;

/// Gets the chart, and says in the section where it is from.
pub(crate) async fn fetch_chart(
    world: &World,
    object: &HelmRelease,
    compared: &mut Compared,
) -> Result<Renderer, String> {
    let release = format!("{}/{}", object.namespace().unwrap_or_default(), object.name_any());
    if let Some(path) = world.charts.get(&release) {
        return given(path, object, compared);
    }
    if let Some(template) = &object.spec.chart {
        let source = source_of(object, template);
        if source
            .as_ref()
            .is_some_and(|source| world.content.stands_for(source))
        {
            compared.section.from = format!("./{}", template.spec.chart.trim_matches(['.', '/']));
            return in_content(&*world.content, template, metadata_of(object));
        }
    }
    let source = chart_of(object).ok_or("its spec names no chart")?;
    let found = in_cluster(world, object, &source, compared).await?;
    let revision = text(&found, "/status/artifact/revision").to_owned();
    compared.section.from = format!("{source} at {revision}");
    let data = world.archives.fetch(&world.reader, &found, MAX_CHART).await?;
    let mut chart = helm_chart::load_archive(&data[..], Helm::V4, &mut Vec::new())
        .map_err(|error| format!("the chart of {source}: {error}"))?;
    let digits = (source.kind != "HelmChart").then(|| digits(&revision)).flatten();
    if let Some(tracked) = digits.and_then(|digits| with_metadata(&chart.metadata.version, digits)) {
        std::sync::Arc::make_mut(&mut chart.metadata).version = tracked;
    }
    Ok(Renderer::new(chart, Helm::V4))
}

/// The source with the chart: as the cluster has it, or fetched if that would be another one.
async fn in_cluster(
    world: &World,
    object: &HelmRelease,
    source: &ObjectId,
    compared: &mut Compared,
) -> Result<Value, String> {
    match (world.changed_source(source), &world.fetcher) {
        (Some(changed), Some(fetcher)) => return fetcher.fetch(changed).await,
        (Some(_), None) => {
            let note = format!("{source} would change too; the chart is the one that it has now");
            compared.section.notes.push(note);
        }
        (None, _) => {}
    }
    let repository = object
        .spec
        .chart
        .as_ref()
        .and_then(|template| source_of(object, template));
    if let Some(repository) = repository.filter(|repository| world.changed_source(repository).is_some()) {
        let note = format!("{repository} would change too; the chart is the one that it has now");
        compared.section.notes.push(note);
    }
    let found = world.reader.get(source).await?;
    let missing = || format!("the chart cannot be had: {source} does not exist (yet)");
    let Some(template) = &object.spec.chart else {
        return found.ok_or_else(missing);
    };
    let same = match &found {
        Some(found) => check_same(template, found, world.names_flags),
        None => Err(missing()),
    };
    match (found, same, &world.fetcher) {
        (Some(found), Ok(()), _) => Ok(found),
        (_, _, Some(fetcher)) => {
            let spec = serde_json::to_value(flux_spec::release::chart_spec(object));
            let wanted = json!({
                "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "HelmChart",
                "metadata": {"name": source.name, "namespace": source.namespace},
                "spec": spec.map_err(|error| error.to_string())?,
            });
            fetcher.fetch(&wanted).await
        }
        (_, Err(why), None) => Err(why),
        (None, Ok(()), None) => Err(missing()),
    }
}

/// What a chart takes.
#[derive(Debug, Clone, PartialEq)]
pub struct ChartFacts {
    /// Its values.schema.json, if it has one that is JSON.
    pub schema: Option<Value>,
    /// Its values.yaml.
    pub defaults: Value,
}

/// Reads the chart that an OCIRepository or a HelmChart has.
///
/// # Errors
/// When there is none, or it cannot be had or read.
pub async fn chart_facts(
    reader: &Reader,
    archives: &Archives,
    source: &ObjectId,
) -> Result<ChartFacts, String> {
    let found = reader.get(source).await?;
    let found = found.ok_or_else(|| format!("{source} does not exist"))?;
    let data = archives.fetch(reader, &found, MAX_CHART).await?;
    let chart = helm_chart::load_archive(&data[..], Helm::V4, &mut Vec::new())
        .map_err(|error| format!("the chart of {source}: {error}"))?;
    let schema = chart.content.schema.as_ref();
    Ok(ChartFacts {
        schema: schema.and_then(|schema| serde_json::from_slice(&schema.file().data).ok()),
        defaults: Value::Object((*chart.values).clone()),
    })
}

/// A chart that lies on this machine.
fn given(path: &Path, object: &HelmRelease, compared: &mut Compared) -> Result<Renderer, String> {
    let shown = path.display().to_string();
    compared.section.from.clone_from(&shown);
    let template = object.spec.chart.as_ref();
    if template.is_some_and(|template| !template.spec.values_files.is_empty()) {
        let note = "spec.chart.spec.valuesFiles are not laid over a chart that is given with --chart";
        compared.section.notes.push(note.to_owned());
    }
    let chart = helm_chart::load(&shown, Helm::V4, &mut Vec::new());
    let chart = chart.map_err(|error| format!("the chart {shown}: {error}"))?;
    Ok(Renderer::new(chart, Helm::V4))
}

fn source_of(object: &HelmRelease, template: &ChartTemplate) -> Option<ObjectId> {
    let reference = &template.spec.source_ref;
    let namespace = reference
        .namespace
        .clone()
        .filter(|namespace| !namespace.is_empty());
    let namespace = namespace.or_else(|| object.namespace()).unwrap_or_default();
    let kind = kind::exact(&format!("{:?}", reference.kind))?;
    Some(kind.id(&namespace, &reference.name))
}

/// The object of the cluster that has the chart.
pub(crate) fn chart_of(object: &HelmRelease) -> Option<ObjectId> {
    let own = object.namespace().unwrap_or_default();
    if let Some(reference) = &object.spec.chart_ref {
        let namespace = reference
            .namespace
            .clone()
            .filter(|namespace| !namespace.is_empty());
        let kind = kind::exact(&format!("{:?}", reference.kind))?;
        return Some(kind.id(&namespace.unwrap_or(own), &reference.name));
    }
    let source = source_of(object, object.spec.chart.as_ref()?)?;
    let name = format!("{own}-{}", object.name_any());
    Some(kind::exact("HelmChart")?.id(&source.namespace, &name))
}

/// The cluster has one version of a chart; another one it would have to fetch first.
fn check_same(template: &ChartTemplate, found: &Value, names_flags: bool) -> Result<(), String> {
    let spec = &template.spec;
    let wanted = [
        spec.chart.clone(),
        spec.version.clone().unwrap_or_else(|| "*".to_owned()),
        spec.source_ref.name.clone(),
        spec.values_files.join(","),
    ];
    let values_files = found.pointer("/spec/valuesFiles").and_then(Value::as_array);
    let values_files = values_files.into_iter().flatten().filter_map(Value::as_str);
    let version = Some(text(found, "/spec/version")).filter(|version| !version.is_empty());
    let there = [
        text(found, "/spec/chart").to_owned(),
        version.unwrap_or("*").to_owned(),
        text(found, "/spec/sourceRef/name").to_owned(),
        values_files.collect::<Vec<_>>().join(","),
    ];
    if wanted == there {
        return Ok(());
    }
    Err(format!(
        "the chart cannot be had: it would be {} {} of {} then, and the cluster has {} {} of {}; \
         source-controller fetches it after the push{}",
        wanted[0],
        wanted[1],
        wanted[2],
        there[0],
        there[1],
        there[2],
        if names_flags {
            ", and --chart gives it now"
        } else {
            ""
        }
    ))
}

/// The digits that become part of the version of a chart that an artifact of a registry holds.
fn digits(revision: &str) -> Option<&str> {
    let digest = revision.rsplit_once('@').map_or(revision, |(_, digest)| digest);
    digest.split_once(':')?.1.get(..12)
}

fn with_metadata(version: &str, metadata: &str) -> Option<String> {
    let version = go_semver::Version::parse(version).ok()?.set_metadata(metadata);
    version.ok().map(|version| version.to_string())
}

/// With `reconcileStrategy: Revision` a commit becomes part of the version. Which one that would be no one knows yet; with that
/// of the release that is there, not every label changes.
fn metadata_of(object: &HelmRelease) -> String {
    let latest = object.status.as_ref().and_then(|status| status.history.first());
    let metadata = latest.and_then(|latest| Some(latest.chart_version.split_once('+')?.1.to_owned()));
    metadata.unwrap_or_default()
}

fn in_content(content: &dyn Content, template: &ChartTemplate, metadata: String) -> Result<Renderer, String> {
    let options = Options {
        version_metadata: metadata,
        values_files: template.spec.values_files.clone(),
        ignore_missing_values_files: template.spec.ignore_missing_values_files,
        limits: Limits::default(),
    };
    let failed = |error: helm_package::Error| format!("the chart {}: {}", template.spec.chart, chain(&error));
    let files = InContent(content);
    let found = local::find(&files, &template.spec.chart, &options).map_err(failed)?;
    let mut archive = Vec::new();
    found
        .build(&files, &options, &Refused, &mut archive)
        .map_err(failed)?;
    let chart = helm_chart::load_archive(&archive[..], Helm::V4, &mut Vec::new());
    let chart = chart.map_err(|error| format!("the chart {}: {error}", template.spec.chart))?;
    Ok(Renderer::new(chart, Helm::V4))
}

/// Charts that others depend on come out of charts/.
struct Refused;

impl Fetch for Refused {
    fn fetch(
        &self,
        repository: &str,
        name: &str,
        version: &str,
    ) -> Result<Fetched, Box<dyn std::error::Error + Send + Sync>> {
        Err(format!(
            "{name} {version} of {repository} is not fetched here; put it into charts/ with `helm dependency build`"
        )
        .into())
    }
}

/// Files of a chart.
struct InContent<'a>(&'a dyn Content);

impl Files for InContent<'_> {
    fn what(&self, path: &str) -> io::Result<Option<What>> {
        Ok(match self.0.kind(path).map_err(unreadable)? {
            None => None,
            Some(FileKind::Directory) => Some(What::Folder),
            Some(FileKind::File) => {
                let size = self.0.read(path).map_err(unreadable)?.len();
                Some(What::File(size.try_into().unwrap_or(u64::MAX)))
            }
        })
    }

    fn entries(&self, folder: &str) -> io::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        for entry in self.0.list(folder).map_err(unreadable)? {
            if let Some(what) = self.what(&flux_spec::build::path::join(folder, &entry.name))? {
                entries.push(Entry {
                    name: entry.name,
                    what,
                });
            }
        }
        entries.sort_by(|a, b| a.name.as_bytes().cmp(b.name.as_bytes()));
        Ok(entries)
    }

    fn open(&self, path: &str) -> io::Result<Box<dyn Read + '_>> {
        Ok(Box::new(io::Cursor::new(self.0.read(path).map_err(unreadable)?)))
    }
}

fn unreadable(error: FsError) -> io::Error {
    match error {
        FsError::NotFound => io::ErrorKind::NotFound.into(),
        error => io::Error::other(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(spec: Value) -> HelmRelease {
        serde_json::from_value(
            json!({"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
            "metadata": {"name": "web", "namespace": "shop"}, "spec": spec}),
        )
        .unwrap()
    }

    #[test]
    fn the_chart_is_where_the_spec_says() {
        let template = json!({"interval": "1m", "chart": {"spec": {"chart": "./charts/web", "version": "1.x",
            "sourceRef": {"kind": "HelmRepository", "name": "r", "namespace": "infra"}}}});
        let release = object(template);
        assert_eq!(
            chart_of(&release).unwrap().to_string(),
            "HelmChart/infra/shop-web"
        );
        let template = release.spec.chart.as_ref().unwrap();
        let there = |version: &str| json!({"spec": {"chart": "./charts/web", "version": version, "sourceRef": {"name": "r"}}});
        assert_eq!(check_same(template, &there("1.x"), true), Ok(()));
        let why = check_same(template, &there("2.x"), true).unwrap_err();
        assert!(
            why.contains("1.x of r then, and the cluster has ./charts/web 2.x of r"),
            "{why}"
        );
        let by_reference =
            object(json!({"interval": "1m", "chartRef": {"kind": "OCIRepository", "name": "web"}}));
        assert_eq!(
            chart_of(&by_reference).unwrap().to_string(),
            "OCIRepository/shop/web"
        );
    }

    #[test]
    fn a_digest_becomes_part_of_the_version() {
        let digest = "sha256:0123456789abcdef";
        assert_eq!(digits(digest), Some("0123456789ab"));
        assert_eq!(digits(&format!("1.2.3@{digest}")), Some("0123456789ab"));
        assert_eq!(digits("1.2.3"), None);
        assert_eq!(
            with_metadata("1.2.3", "0123456789ab").as_deref(),
            Some("1.2.3+0123456789ab")
        );
    }
}
