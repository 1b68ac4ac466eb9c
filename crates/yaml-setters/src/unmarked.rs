//! Images where no marker stands: in containers, in the `images` of kustomizations, and in the values of HelmReleases.
//!
//! An image is known by its name. Only scalars that are there are set: nothing is added to a file.

use manifest::yaml::{Kind, NodeId, Nodes};

use crate::ObjectIdentifier;

/// An image that a policy has chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// Name of the setter.
    pub setter: String,
    /// Name of the image.
    pub name: String,
    /// Its tag.
    pub tag: String,
    /// Its digest; empty if the policy has none.
    pub digest: String,
}

/// What is set without a marker.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unmarked {
    /// `image` of containers.
    pub containers: bool,
    /// `images` of kustomization.yaml files and of Flux's Kustomizations.
    pub kustomizations: bool,
    /// Pairs of `repository` and `tag`, and `image`, in the values of HelmReleases.
    pub values: bool,
    /// The images.
    pub images: Vec<Image>,
    /// Other fields that are set, each a scalar that is there.
    pub fields: Vec<Field>,
    /// Nothing but this object is changed, if there is one.
    pub object: Option<Subject>,
}

/// A scalar of an object, by the names of the fields that lead to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Name of the setter.
    pub setter: String,
    /// Such as `spec`, `chart`, `spec`, `version`.
    pub path: Vec<String>,
    /// What is to stand there.
    pub value: String,
}

/// One object, by what manifests say of it. A namespace is often given by what builds the files, so a manifest without one may
/// be the object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// API group.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Name.
    pub name: String,
    /// Namespace in the cluster.
    pub namespace: String,
}

impl Subject {
    fn is(&self, object: &ObjectIdentifier) -> bool {
        let (group, _) = object.api_version.split_once('/').unwrap_or_default();
        group == self.group
            && object.kind == self.kind
            && object.name == self.name
            && (object.namespace.is_empty() || object.namespace == self.namespace)
    }
}

impl Unmarked {
    /// Returns whether a text may name one of the images: cheap, before it is read.
    pub fn may_be_in(&self, text: &[u8]) -> bool {
        if let Some(object) = &self.object {
            let name = object.name.as_bytes();
            return !name.is_empty() && text.windows(name.len()).any(|window| window == name);
        }
        if !(self.containers || self.kustomizations || self.values) {
            return false;
        }
        let has =
            |word: &str| !word.is_empty() && text.windows(word.len()).any(|window| window == word.as_bytes());
        let mut ends = self.images.iter().map(|image| image.name.rsplit('/').next());
        ends.any(|end| end.is_some_and(has))
    }

    /// The image with a name; Err if several policies choose it.
    fn find(&self, name: &str) -> Option<Result<&Image, ()>> {
        let wanted = canonical(name);
        let mut found = self
            .images
            .iter()
            .filter(|image| canonical(&image.name) == wanted);
        let first = found.next()?;
        Some(found.next().map_or(Ok(first), |_| Err(())))
    }
}

/// What is to stand at a scalar.
pub(crate) enum Place<'i> {
    Set {
        id: NodeId,
        new: String,
        setter: &'i str,
    },
    /// It cannot be said what is to stand there.
    Unclear { id: NodeId, problem: &'static str },
}

const AMBIGUOUS: &str = "several policies choose this image: a marker must say which one is meant";
const NO_DIGEST: &str = "the image has a digest, and its policy reflects none (spec.digestReflectionPolicy)";

/// Lists of containers, wherever a template for Pods is.
const CONTAINERS: [&str; 3] = ["containers", "initContainers", "ephemeralContainers"];

/// Finds the images of an object.
pub(crate) fn places<'i>(
    nodes: &Nodes,
    object: &ObjectIdentifier,
    root: NodeId,
    unmarked: &'i Unmarked,
) -> Vec<Place<'i>> {
    let mut search = Search {
        nodes,
        unmarked,
        found: Vec::new(),
    };
    if unmarked.object.as_ref().is_some_and(|wanted| !wanted.is(object)) {
        return search.found;
    }
    for field in &unmarked.fields {
        search.one(root, field);
    }
    if unmarked.containers {
        search.containers(root);
    }
    let group = object.api_version.split('/').next().unwrap_or_default();
    if unmarked.kustomizations {
        let images = match group {
            "" | "kustomize.config.k8s.io" => nodes.field(root, "images"),
            "kustomize.toolkit.fluxcd.io" => search
                .field(root, "spec")
                .and_then(|spec| nodes.field(spec, "images")),
            _ => None,
        };
        images.into_iter().for_each(|images| search.images(images));
    }
    if unmarked.values
        && group == "helm.toolkit.fluxcd.io"
        && let Some(values) = search
            .field(root, "spec")
            .and_then(|spec| nodes.field(spec, "values"))
    {
        search.values(values);
    }
    search.found
}

struct Search<'n, 'i> {
    nodes: &'n Nodes,
    unmarked: &'i Unmarked,
    found: Vec<Place<'i>>,
}

impl<'n, 'i> Search<'n, 'i> {
    fn one(&mut self, root: NodeId, field: &'i Field) {
        let Some((last, path)) = field.path.split_last() else {
            return;
        };
        let parent = path.iter().try_fold(root, |node, name| self.field(node, name));
        if let Some((id, _)) = parent.and_then(|parent| self.scalar(parent, last)) {
            self.found.push(Place::Set {
                id,
                new: field.value.clone(),
                setter: &field.setter,
            });
        }
    }

    /// A field that is a mapping.
    fn field(&self, mapping: NodeId, name: &str) -> Option<NodeId> {
        let field = self.nodes.field(mapping, name)?;
        (self.nodes[field].kind == Kind::Mapping).then_some(field)
    }

    /// A field that is a scalar with a value.
    fn scalar(&self, mapping: NodeId, name: &str) -> Option<(NodeId, &'n str)> {
        let field = self.nodes.field(mapping, name)?;
        let node = &self.nodes[field];
        (node.kind == Kind::Scalar && !node.value.is_empty()).then_some((field, node.value.as_str()))
    }

    fn mappings(&self, sequence: NodeId) -> Vec<NodeId> {
        let node = &self.nodes[sequence];
        let items = node.content.iter().copied();
        match node.kind {
            Kind::Sequence => items
                .filter(|item| self.nodes[*item].kind == Kind::Mapping)
                .collect(),
            _ => Vec::new(),
        }
    }

    fn children(&self, id: NodeId) -> Vec<(&'n str, NodeId)> {
        let node = &self.nodes[id];
        match node.kind {
            Kind::Mapping => {
                let pairs = self.nodes.pairs(id);
                pairs
                    .map(|(key, value)| (self.nodes[key].value.as_str(), value))
                    .collect()
            }
            Kind::Sequence => node.content.iter().map(|item| ("", *item)).collect(),
            _ => Vec::new(),
        }
    }

    fn containers(&mut self, id: NodeId) {
        for (key, child) in self.children(id) {
            if CONTAINERS.contains(&key) {
                for container in self.mappings(child) {
                    if let Some((id, value)) = self.scalar(container, "image") {
                        self.reference(id, value);
                    }
                }
            }
            self.containers(child);
        }
    }

    /// The list of a kustomization.
    fn images(&mut self, images: NodeId) {
        for item in self.mappings(images) {
            let name = self.scalar(item, "newName").or_else(|| self.scalar(item, "name"));
            if let Some((id, name)) = name {
                let (tag, digest) = (self.scalar(item, "newTag"), self.scalar(item, "digest"));
                self.parts(id, name, tag, digest);
            }
        }
    }

    fn values(&mut self, id: NodeId) {
        if self.nodes[id].kind == Kind::Mapping
            && let Some((at, repository)) = self.scalar(id, "repository")
            && let Some(tag) = self.scalar(id, "tag")
        {
            let name = match self.scalar(id, "registry") {
                Some((_, registry)) => format!("{registry}/{repository}"),
                None => repository.to_owned(),
            };
            let digest = self.scalar(id, "digest");
            self.parts(at, &name, Some(tag), digest);
        }
        for (key, child) in self.children(id) {
            let node = &self.nodes[child];
            if key == "image" && node.kind == Kind::Scalar {
                self.reference(child, &node.value);
            }
            self.values(child);
        }
    }

    /// A whole reference. One without a tag means whatever is newest, and stays so.
    fn reference(&mut self, id: NodeId, value: &str) {
        let (name, tag, digest) = split(value);
        if tag.is_none() && digest.is_none() {
            return;
        }
        let new = match self.unmarked.find(name) {
            None => return,
            Some(Err(())) => Err(AMBIGUOUS),
            Some(Ok(image)) if digest.is_some() && image.digest.is_empty() => Err(NO_DIGEST),
            Some(Ok(image)) if image.digest.is_empty() => Ok((image, format!("{name}:{}", image.tag))),
            Some(Ok(image)) => Ok((image, format!("{name}:{}@{}", image.tag, image.digest))),
        };
        self.found.push(match new {
            Ok((image, new)) => Place::Set {
                id,
                new,
                setter: &image.setter,
            },
            Err(problem) => Place::Unclear { id, problem },
        });
    }

    /// A reference in parts, of which those are set that are there.
    fn parts(&mut self, at: NodeId, name: &str, tag: Option<(NodeId, &str)>, digest: Option<(NodeId, &str)>) {
        if tag.is_none() && digest.is_none() {
            return;
        }
        let image = match self.unmarked.find(name) {
            None => return,
            Some(Ok(image)) if digest.is_none() || !image.digest.is_empty() => image,
            Some(unclear) => {
                let problem = unclear.map_or(AMBIGUOUS, |_| NO_DIGEST);
                self.found.push(Place::Unclear { id: at, problem });
                return;
            }
        };
        let parts = [(tag, &image.tag), (digest, &image.digest)];
        for (part, new) in parts {
            if let Some((id, _)) = part {
                self.found.push(Place::Set {
                    id,
                    new: new.clone(),
                    setter: &image.setter,
                });
            }
        }
    }
}

/// Returns the name, tag and digest of a reference to an image.
pub fn split(reference: &str) -> (&str, Option<&str>, Option<&str>) {
    let (rest, digest) = match reference.split_once('@') {
        Some((rest, digest)) => (rest, Some(digest)),
        None => (reference, None),
    };
    match rest.rsplit_once(':') {
        // The port of a registry is no tag.
        Some((name, tag)) if !tag.contains('/') => (name, Some(tag), digest),
        _ => (rest, None, digest),
    }
}

/// The name without what Docker's registry adds to it.
fn canonical(name: &str) -> &str {
    let name = name
        .strip_prefix("index.docker.io/")
        .or_else(|| name.strip_prefix("docker.io/"))
        .unwrap_or(name);
    name.strip_prefix("library/").unwrap_or(name)
}
