//! What a release would change in the files of an environment's targets: a dry run of a promotion.

use api::delivery::{AppKind, AppReference, Environment, Pipeline, Release, Target};
use delivery_graph::kind;
use delivery_graph::object::{self, text};
use manifest::ObjectId;
use promotion::manifests::Wanted;
use promotion::values::{Fields, fields, reference};
use serde_json::Value as Object;

use crate::archive::Archives;
use crate::artifact_files::ArtifactFiles;
use crate::reader::Reader;
use crate::source::source_of;
use crate::subject::inventory;

/// What a release would change for one target.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Promoted {
    /// The target.
    pub target: String,
    /// The source whose files were looked at, with its revision.
    pub place: String,
    /// Files that would change: path, content now, content then.
    pub files: Vec<(String, String, String)>,
    /// Values that would change in them.
    pub values: Vec<Value>,
    /// Why nothing, or not everything, would be changed.
    pub problem: Option<String>,
}

/// A value in a file that would change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Value {
    /// The file and the line.
    pub file: String,
    /// Kind, namespace and name of the object.
    pub object: String,
    /// What it is, such as `chart` or `image ghcr.io/shop/web`; the name of a marker, where there is one.
    pub field: String,
    /// As it is.
    pub old: String,
    /// As it would be.
    pub new: String,
}

/// Finds out what a release would change in an environment, with the newest artifact of what delivers each target.
pub async fn promoted(
    reader: &Reader,
    archives: &Archives,
    pipeline: &Pipeline,
    (environment, release): (&Environment, &Release),
) -> Vec<Promoted> {
    let mut all = Vec::new();
    for target in &environment.targets {
        let mut found = Promoted::default();
        let mut target = target.clone();
        let own = pipeline.metadata.namespace.clone().unwrap_or_default();
        let namespace = target.namespace.get_or_insert(own).clone();
        found.target = target.called();
        let looking = Looking {
            reader,
            archives,
            pipeline,
            environment: &environment.name,
            release,
            namespace: &namespace,
        };
        if let Err(problem) = looking.look(&target, &mut found).await {
            found.problem = Some(problem);
        }
        all.push(found);
    }
    all
}

struct Looking<'a> {
    reader: &'a Reader,
    archives: &'a Archives,
    pipeline: &'a Pipeline,
    environment: &'a str,
    release: &'a Release,
    namespace: &'a str,
}

impl Looking<'_> {
    async fn look(&self, target: &Target, found: &mut Promoted) -> Result<(), String> {
        if target.kube_config.is_some() {
            return Err("it is in another cluster, which is not looked at".to_owned());
        }
        let (mut has, mut owners) = (Vec::new(), Vec::new());
        for app in self.pipeline.apps() {
            let object = self
                .need(&id(app.kind.as_str(), self.namespace, &app.name)?)
                .await?;
            has.push(fields_of(app, &object));
            owners.push(object::owner(&object));
        }
        let place = (self.environment, self.namespace);
        let wanted = Wanted::new(self.pipeline, place, self.release, |at| has.get(at));
        if wanted.apps.iter().all(|(_, fields)| fields.is_empty()) {
            return Err("none of the applications has a field that the release carries".to_owned());
        }
        // As the controller does: the applications of one folder together.
        let mut places: Vec<(ObjectId, String, Vec<usize>)> = Vec::new();
        for (at, (app, fields)) in wanted.apps.iter().enumerate() {
            if fields.is_empty() {
                continue;
            }
            let (source, path) = self.place(app, owners[at].as_ref()).await?;
            match places
                .iter_mut()
                .find(|place| (&place.0, &place.1) == (&source, &path))
            {
                Some(place) => place.2.push(at),
                None => places.push((source, path, vec![at])),
            }
        }
        let mut seen = Vec::new();
        for (source, path, apps) in places {
            let files = ArtifactFiles::fetch(self.reader, self.archives, &source).await?;
            seen.push(format!(
                "{source} at {}",
                object::short_revision(files.revision())
            ));
            let part = Wanted {
                apps: apps.iter().map(|at| wanted.apps[*at].clone()).collect(),
                ..wanted.clone()
            };
            let contents = files.yaml_below(&path, &|content| part.may_be_in(content));
            let edited = part.edit(&path, &contents).map_err(|error| error.to_string())?;
            found.values.extend(edited.changes.iter().map(|(file, change)| {
                let object = &change.object;
                Value {
                    file: format!("{file}:{}", change.line),
                    object: format!("{}/{}/{}", object.kind, object.namespace, object.name),
                    field: change.setter.clone(),
                    old: change.old.clone(),
                    new: change.new.clone(),
                }
            }));
            for (file, then) in edited.contents {
                let now = contents.iter().find(|(known, _)| *known == file);
                let now = now.map_or(String::new(), |(_, now)| {
                    String::from_utf8_lossy(now).into_owned()
                });
                found.files.push((file, now, then));
            }
        }
        found.place = seen.join(", ");
        Ok(())
    }

    async fn need(&self, id: &ObjectId) -> Result<Object, String> {
        let found = self.reader.get(id).await?;
        found.ok_or_else(|| format!("{id} does not exist"))
    }

    /// The source and the folder that have the manifest of an application. Its labels are believed only if the Kustomization has it.
    async fn place(
        &self,
        app: &AppReference,
        owner: Option<&ObjectId>,
    ) -> Result<(ObjectId, String), String> {
        let applied = id(app.kind.as_str(), self.namespace, &app.name)?;
        let owner = owner.filter(|owner| owner.kind == "Kustomization");
        let owner = owner.ok_or_else(|| format!("{applied} was not applied by a Kustomization"))?;
        let built = self.need(owner).await?;
        let inventory = inventory(&built);
        if !inventory.iter().any(|(known, _)| *known == applied) {
            return Err(format!(
                "the labels of {applied} name {owner}, which has not applied it"
            ));
        }
        let source = source_of(&built).filter(|source| source.kind == "GitRepository");
        let source = source.ok_or_else(|| format!("{owner} is not built from a GitRepository"))?;
        let path = flux_spec::build::path::clamp(text(&built, "/spec/path"));
        Ok((source, path))
    }
}

fn id(kind: &str, namespace: &str, name: &str) -> Result<ObjectId, String> {
    let kind = kind::exact(kind).ok_or_else(|| format!("{kind} is no known kind"))?;
    Ok(kind.id(namespace, name))
}

/// What an application has that could move.
fn fields_of(app: &AppReference, object: &Object) -> Fields {
    match app.kind {
        AppKind::HelmRelease | AppKind::Kustomization => fields(&object["spec"]),
        AppKind::OCIRepository | AppKind::GitRepository => {
            let revision = text(object, "/status/artifact/revision");
            reference(app.kind, &object["spec"]["ref"], revision)
        }
    }
}
