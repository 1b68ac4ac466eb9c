//! Values set in YAML files at marked places, byte by byte.
//!
//! A marker is a comment behind a value that names a *setter*, such as `image: app:v1 # {"$imagepolicy": "apps:web"}`. In: the
//! text of a file, the key of the markers, and the values of the setters. Out: the text with these values, in which no
//! byte differs but those of the marked scalars, what was changed in which object, and each marker with what
//! became of it. Which comment marks which scalar is decided as Flux's image-automation-controller decides it (kyaml's line
//! and head comments of scalars); unlike there, a marker that does nothing is reported, with the line it is in.
//!
//! ```
//! let setters = [("apps:web".to_owned(), "web:v2".to_owned())].into();
//! let text = "image:   'web:v1'   # {\"$imagepolicy\": \"apps:web\"}\n";
//! let updated = yaml_setters::update(text, "$imagepolicy", &setters).unwrap();
//! assert_eq!(updated.text.unwrap(), "image:   'web:v2'   # {\"$imagepolicy\": \"apps:web\"}\n");
//! ```

mod attach;
mod marker;
mod object;
mod unmarked;
mod write;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

use manifest::yaml::{Dialect, Kind, NodeId, Nodes, compose_all_annotated};

use attach::Attached;
pub use object::ObjectIdentifier;
use unmarked::Place;
pub use unmarked::{Field, Image, Subject, Unmarked, split};

/// Larger files are not read, in bytes.
pub const MAX_FILE: usize = 3 << 20;

/// Returns whether a file holds YAML, by its name.
#[must_use]
pub fn is_yaml(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    name.ends_with(".yaml") || name.ends_with(".yml") || name == "Kustomization"
}

/// Values by the name of their setter.
pub type Setters = BTreeMap<String, String>;

/// A file that cannot be updated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct Error {
    /// The line, counted from 1.
    pub line: u32,
    /// The problem.
    pub problem: String,
}

/// What became of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Update {
    /// The new text; None when nothing changes.
    pub text: Option<String>,
    /// The changes, in the order of the text.
    pub changes: Vec<Change>,
    /// All markers, in the order of the text.
    pub markers: Vec<Marker>,
}

/// A value that was changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Object that the value belongs to.
    pub object: ObjectIdentifier,
    /// Value before.
    pub old: String,
    /// Value now.
    pub new: String,
    /// Name of the setter.
    pub setter: String,
    /// Line of the value, counted from 1.
    pub line: u32,
}

/// A marker, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marker {
    /// Its line, counted from 1.
    pub line: u32,
    /// Setter that it names; empty when that cannot be read.
    pub setter: String,
    /// What became of it.
    pub outcome: Outcome,
}

/// What became of a marker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The value was changed.
    Changed,
    /// The value is what it should be.
    UpToDate,
    /// There is no setter of that name.
    UnknownSetter,
    /// It marks nothing, or nothing that can be set.
    Misplaced(&'static str),
}

/// Returns whether a text may hold markers: cheap, before it is read.
pub fn may_have_markers(text: &[u8], key: &str) -> bool {
    let quoted = format!("\"{key}\"");
    text.windows(quoted.len())
        .any(|window| window == quoted.as_bytes())
}

/// Sets the marked values of a file.
///
/// # Errors
/// When the text is not YAML, or too large.
pub fn update(text: &str, key: &str, setters: &Setters) -> Result<Update, Error> {
    update_with(text, key, setters, &Unmarked::default())
}

/// Sets the marked values of a file, and images where no marker stands. A marker goes before what is found without one.
///
/// # Errors
/// When the text is not YAML, or too large.
pub fn update_with(text: &str, key: &str, setters: &Setters, unmarked: &Unmarked) -> Result<Update, Error> {
    if text.len() > MAX_FILE {
        let problem = format!("the file is larger than {MAX_FILE} bytes");
        return Err(Error { line: 1, problem });
    }
    let mut nodes = Nodes::default();
    let read = compose_all_annotated(text, &mut nodes, Dialect::Kyaml).map_err(|problem| Error {
        line: problem.line.max(1),
        problem: problem.text,
    })?;
    let mut attached = Attached::new(text, &read.comments, key);
    let mut edits = Vec::new();
    let mut values = HashMap::new();
    let mut update = Update::default();
    let mut marked = HashSet::new();
    for (object, root) in object::objects(&nodes, &read.roots) {
        let mut walk = Walk {
            text,
            nodes: &nodes,
            setters,
            object,
            attached: &mut attached,
            edits: &mut edits,
            values: &mut values,
            update: &mut update,
            marked: &mut marked,
            places: &read.places,
        };
        walk.visit(root);
        walk.unmarked(unmarked::places(&nodes, &walk.object, root, unmarked));
    }
    update.markers.extend(attached.left_over());
    update.markers.sort_by_key(|marker| marker.line);
    if !edits.is_empty() {
        let new = edited(text, &mut edits);
        check(&nodes, &new, &values)?;
        update.text = Some(new);
    }
    Ok(update)
}

/// Reads what was written: nothing may be different but the values that were set. No known text fails it.
fn check(before: &Nodes, text: &str, values: &HashMap<NodeId, String>) -> Result<(), Error> {
    let unexpected = |line| Error {
        line,
        problem: "setting the marked values changes more of the file than these".to_owned(),
    };
    let mut after = Nodes::default();
    let read = compose_all_annotated(text, &mut after, Dialect::Kyaml)
        .map_err(|problem| unexpected(problem.line))?;
    drop(read);
    if after.len() != before.len() {
        return Err(unexpected(1));
    }
    for id in before.ids() {
        let (old, new) = (&before[id], &after[id]);
        let expected = values.get(&id).unwrap_or(&old.value);
        let is_same = new.value.trim_end_matches('\n') == expected.trim_end_matches('\n')
            && (new.kind, new.flow, &new.anchor, new.content.len())
                == (old.kind, old.flow, &old.anchor, old.content.len());
        if !is_same {
            return Err(unexpected(old.line));
        }
    }
    Ok(())
}

/// A place in the text, and what is to stand there.
type Edit = (Range<usize>, String);

struct Walk<'a, 't> {
    text: &'t str,
    nodes: &'a Nodes,
    setters: &'a Setters,
    object: ObjectIdentifier,
    attached: &'a mut Attached<'t>,
    edits: &'a mut Vec<Edit>,
    values: &'a mut HashMap<NodeId, String>,
    update: &'a mut Update,
    /// Scalars that have a marker, or were set.
    marked: &'a mut HashSet<NodeId>,
    places: &'a HashMap<NodeId, Range<usize>>,
}

impl Walk<'_, '_> {
    fn visit(&mut self, id: NodeId) {
        let node = &self.nodes[id];
        match node.kind {
            Kind::Mapping => {
                let values: Vec<_> = self.nodes.pairs(id).map(|(_, value)| value).collect();
                values.into_iter().for_each(|value| self.visit(value));
            }
            Kind::Sequence => node.content.iter().for_each(|item| self.visit(*item)),
            Kind::Scalar => self.scalar(id),
            Kind::Alias => {}
        }
    }

    fn scalar(&mut self, id: NodeId) {
        let node = &self.nodes[id];
        let Some(place) = self.places.get(&id) else {
            return;
        };
        let Some((line, setter)) = self.attached.take(place, node.style) else {
            return;
        };
        self.marked.insert(id);
        let outcome = match self.setters.get(&setter) {
            None => Outcome::UnknownSetter,
            Some(new) => self.set(id, new, &setter),
        };
        self.update.markers.push(Marker {
            line,
            setter,
            outcome,
        });
    }

    /// Sets what was found without markers.
    fn unmarked(&mut self, places: Vec<Place<'_>>) {
        for place in places {
            let (id, setter, outcome) = match place {
                Place::Set { id, .. } | Place::Unclear { id, .. } if self.marked.contains(&id) => continue,
                Place::Set { id, new, setter } => (id, setter, self.set(id, &new, setter)),
                Place::Unclear { id, problem } => (id, "", Outcome::Misplaced(problem)),
            };
            self.marked.insert(id);
            self.update.markers.push(Marker {
                line: self.nodes[id].line,
                setter: setter.to_owned(),
                outcome,
            });
        }
    }

    fn set(&mut self, id: NodeId, new: &str, setter: &str) -> Outcome {
        let node = &self.nodes[id];
        if node.value == new {
            return Outcome::UpToDate;
        }
        let Some(place) = self.places.get(&id) else {
            return Outcome::Misplaced("the value cannot be set where it stands");
        };
        self.edits.push(write::edit(self.text, place, node, new));
        self.values.insert(id, new.to_owned());
        self.update.changes.push(Change {
            object: self.object.clone(),
            old: node.value.clone(),
            new: new.to_owned(),
            setter: setter.to_owned(),
            line: node.line,
        });
        Outcome::Changed
    }
}

fn edited(text: &str, edits: &mut [Edit]) -> String {
    edits.sort_by_key(|(place, _)| place.start);
    let mut whole = String::with_capacity(text.len());
    let mut at = 0;
    for (place, new) in edits {
        whole.push_str(&text[at..place.start]);
        whole.push_str(new);
        at = place.end;
    }
    whole.push_str(&text[at..]);
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yaml_is_known_by_its_name() {
        for (path, expected) in [
            ("a.yaml", true),
            ("x/b.yml", true),
            ("x/Kustomization", true),
            ("x/kustomization", false),
            ("a.yaml.tpl", false),
            ("a.json", false),
        ] {
            assert_eq!(is_yaml(path), expected, "{path}");
        }
    }
}
