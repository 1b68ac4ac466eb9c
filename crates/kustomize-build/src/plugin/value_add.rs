//! `ValueAddTransformer`: a value put into fields, or between the parts of paths in fields.

use manifest::yaml::{Kind, Node};
use serde_json::Value;

use super::configuration::Configuration;
use crate::error::{Error, Result};
use crate::kustomization::Selector;
use crate::kustomization::decode::{self, Decode, Fields, Place};
use crate::load::Loader;
use crate::nodes::Nodes;
use crate::resource_map::ResourceMap;
use crate::transform::namespace::Namespace;
use crate::{lookup, path, selector};

/// A value and where it goes.
pub(crate) struct ValueAdd {
    value: String,
    targets: Vec<Target>,
}

#[derive(Clone, Debug, Default)]
struct Target {
    selector: Option<Selector>,
    field_path: String,
    file_path_position: i64,
}

impl Decode for Target {
    fn go_type() -> String {
        "builtins.Target".to_owned()
    }

    fn decode(value: &Value, place: &Place) -> Result<Self> {
        let mut target = Self::default();
        let mut fields = Fields::new::<Self>(value, place)?;
        fields.take("selector", &mut target.selector);
        fields.take("fieldPath", &mut target.field_path);
        fields.take_named("filePathPosition", "int", &mut target.file_path_position);
        fields.finish_loosely()?;
        Ok(target)
    }
}

impl ValueAdd {
    /// Reads a configuration; targets may stand in a file of their own. The value is the folder's name by default.
    pub(super) fn load(config: &Configuration<'_, '_>) -> Result<Self> {
        let loader = config.loader;
        let (mut value, mut targets, mut file) = (String::new(), Vec::new(), String::new());
        config.decode(|fields| {
            fields.take("value", &mut value);
            fields.take("targets", &mut targets);
            fields.take("targetFilePath", &mut file);
        })?;
        value = value.trim().to_owned();
        if value.is_empty() {
            path::base_name(&loader.shown_folder()).clone_into(&mut value);
        }
        if !file.is_empty() {
            targets.extend(targets_of_file(loader, &file)?);
        }
        if targets.is_empty() {
            return Err(Error::invalid("must specify at least one target"));
        }
        for target in &targets {
            target.check()?;
        }
        Ok(Self { value, targets })
    }

    /// Adds the value to all targets.
    pub(crate) fn apply(&self, nodes: &mut Nodes, map: &mut ResourceMap) -> Result<()> {
        for target in &self.targets {
            let selected = match &target.selector {
                Some(selector) => selector::select(nodes, map, selector)?,
                None => (0..map.list().len()).collect(),
            };
            for index in selected {
                let Some(root) = map.list_mut()[index].root else {
                    continue;
                };
                if target.field_path == "metadata/namespace" {
                    let namespace = Namespace {
                        name: self.value.clone(),
                        ..Namespace::default()
                    };
                    namespace.set_in(nodes, root, &[])?;
                } else {
                    target.add(nodes, root, &self.value)?;
                }
            }
        }
        Ok(())
    }
}

fn targets_of_file(loader: &Loader<'_>, file: &str) -> Result<Vec<Target>> {
    let place = loader.place(file);
    let documents = manifest::yaml::read_documents(&loader.load_text(file)?, &place)
        .map_err(|error| Error::invalid(error.problem.to_string()).in_file(&place, error.problem.line))?;
    let value = documents
        .into_iter()
        .next()
        .map(|document| document.value)
        .unwrap_or_default();
    let mut targets = Vec::new();
    let place = Place::yaml("");
    let mut fields = Fields::new::<Target>(&value, &place)?;
    fields.take("targets", &mut targets);
    fields.finish_loosely().map_err(decode::in_yaml)?;
    Ok(targets)
}

impl Target {
    fn check(&self) -> Result<()> {
        if self.field_path.is_empty() {
            return Err(Error::invalid("fieldPath cannot be empty"));
        }
        if self.file_path_position < 0 {
            let position = self.file_path_position;
            return Err(Error::invalid(format!(
                "value of FilePathPosition ({position}) cannot be negative"
            )));
        }
        Ok(())
    }

    fn add(&self, nodes: &mut Nodes, root: manifest::yaml::NodeId, value: &str) -> Result<()> {
        let parts = lookup::split_path(&self.field_path, '/');
        let Some((last, folders)) = parts.split_last() else {
            return Ok(());
        };
        let mut at = root;
        for part in folders {
            at = lookup::get_or_create(nodes, at, part, Kind::Mapping)?;
        }
        let field = lookup::get_or_create(nodes, at, last, Kind::Scalar)?;
        lookup::expect_kind(nodes, field, Kind::Scalar)?;
        let value = match usize::try_from(self.file_path_position) {
            Ok(position) if position > 0 => insert_part(&nodes[field].value, position - 1, value),
            _ => value.to_owned(),
        };
        lookup::set_scalar(nodes, field, Node::scalar(value))
    }
}

/// Inserts a part into a path; the slash at its start does not count.
fn insert_part(path: &str, position: usize, part: &str) -> String {
    let (root, path) = path.strip_prefix('/').map_or(("", path), |rest| ("/", rest));
    let mut parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    parts.insert(position.min(parts.len()), part);
    format!("{root}{}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::insert_part;

    #[test]
    fn parts_are_inserted_into_paths() {
        for (path, position, result) in [
            ("", 0, "PEACH"),
            ("/", 0, "/PEACH"),
            ("pie", 0, "PEACH/pie"),
            ("/pie", 0, "/PEACH/pie"),
            ("/raw", 1, "/raw/PEACH"),
            ("a/nice/warm/pie", 3, "a/nice/warm/PEACH/pie"),
            ("raw", 9999, "raw/PEACH"),
        ] {
            assert_eq!(insert_part(path, position, "PEACH"), result, "{path}");
        }
    }
}
