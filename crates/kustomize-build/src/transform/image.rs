//! `images`.

mod name;

use manifest::yaml::{Kind, Node, NodeId};

use crate::error::Result;
use crate::field_spec::{self, FieldSpec};
use crate::kustomization::Image;
use crate::lookup;
use crate::nodes::Nodes;
use crate::resource;
use crate::resource_map::ResourceMap;

use name::ImageName;

/// Changes the images of containers wherever they are, and in the fields that are specified.
pub(crate) fn apply(
    nodes: &mut Nodes,
    map: &mut ResourceMap,
    image: &Image,
    specs: &[FieldSpec],
) -> Result<()> {
    let update = Update {
        image,
        name: ImageName::new(&image.name),
    };
    let is_definition =
        |nodes: &Nodes, root| resource::text(nodes, root, "kind") == "CustomResourceDefinition";
    let roots: Vec<NodeId> = map.list().iter().filter_map(|resource| resource.root).collect();
    let roots: Vec<NodeId> = roots
        .into_iter()
        .filter(|root| !is_definition(nodes, *root))
        .collect();
    for root in &roots {
        update.walk(nodes, *root)?;
    }
    for root in roots {
        for spec in specs {
            field_spec::visit(nodes, root, spec, None, &mut |nodes, field| {
                update.set(nodes, field)
            })?;
        }
    }
    Ok(())
}

struct Update<'a> {
    image: &'a Image,
    name: ImageName,
}

impl Update<'_> {
    /// Looks below every mapping for `containers` and `initContainers`.
    fn walk(&self, nodes: &mut Nodes, at: NodeId) -> Result<()> {
        match nodes[at].kind {
            Kind::Mapping => {
                for pair in nodes[at].content.clone().chunks_exact(2) {
                    self.walk(nodes, pair[1])?;
                    if matches!(nodes[pair[0]].value.as_str(), "containers" | "initContainers") {
                        self.containers(nodes, pair[1])?;
                    }
                }
            }
            Kind::Sequence => {
                for element in nodes[at].content.clone() {
                    self.walk(nodes, element)?;
                }
            }
            Kind::Scalar | Kind::Alias => {}
        }
        Ok(())
    }

    fn containers(&self, nodes: &mut Nodes, list: NodeId) -> Result<()> {
        if nodes[list].kind != Kind::Sequence {
            return Ok(());
        }
        for container in nodes[list].content.clone() {
            if let Some(image) = lookup::get(nodes, container, "image")? {
                self.set(nodes, image)?;
            }
        }
        Ok(())
    }

    fn set(&self, nodes: &mut Nodes, field: NodeId) -> Result<()> {
        lookup::expect_kind(nodes, field, Kind::Scalar)?;
        let old = &nodes[field].value;
        if !self.name.matches(old) {
            return Ok(());
        }
        let new = self.changed(old);
        lookup::set_scalar(nodes, field, Node::scalar(new))
    }

    fn changed(&self, old: &str) -> String {
        let wanted = self.image;
        let (name, mut tag, mut digest) = split(old);
        let name = if wanted.new_name.is_empty() {
            name
        } else {
            &wanted.new_name
        };
        if !wanted.new_tag.is_empty() || !wanted.digest.is_empty() {
            tag.clone_from(&wanted.new_tag);
            digest.clone_from(&wanted.digest);
        } else if !wanted.tag_suffix.is_empty() {
            tag.push_str(&wanted.tag_suffix);
            digest.clear();
        }
        let mut image = name.to_owned();
        if !tag.is_empty() {
            image.push(':');
            image.push_str(&tag);
        }
        if !digest.is_empty() {
            image.push('@');
            image.push_str(&digest);
        }
        image
    }
}

/// Takes an image apart: name, tag, digest. A colon before the first slash is a port.
fn split(image: &str) -> (&str, String, String) {
    let host = image.find('/').filter(|at| *at > 0).unwrap_or(0);
    let rest = &image[host..];
    let (at, colon) = (rest.find('@'), rest.find(':'));
    match (at, colon) {
        (None, None) => (image, String::new(), String::new()),
        (None, Some(colon)) => (
            &image[..host + colon],
            image[host + colon + 1..].to_owned(),
            String::new(),
        ),
        (Some(at), Some(colon)) if colon < at => {
            let tag = image[host + colon + 1..host + at].to_owned();
            (&image[..host + colon], tag, image[host + at + 1..].to_owned())
        }
        (Some(at), _) => (
            &image[..host + at],
            String::new(),
            image[host + at + 1..].to_owned(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn images_are_taken_apart() {
        for (image, name, tag, digest) in [
            ("nginx", "nginx", "", ""),
            ("nginx:1.2", "nginx", "1.2", ""),
            ("host:5000/a/nginx", "host:5000/a/nginx", "", ""),
            ("host:5000/nginx:1@sha256:ab", "host:5000/nginx", "1", "sha256:ab"),
            ("nginx@sha256:ab", "nginx", "", "sha256:ab"),
        ] {
            assert_eq!(split(image), (name, tag.to_owned(), digest.to_owned()), "{image}");
        }
    }
}
