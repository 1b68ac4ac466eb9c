//! Why an object cannot be written, in kustomize's words: what encoding/json says, behind the object in Go's syntax.

use manifest::yaml::{Kind, NodeId, Nodes, Problem};

use super::go_syntax::{self, GoScalar};

/// Words the refusal of an object that could not be decoded.
pub(super) fn of_object(nodes: &Nodes, root: NodeId, problem: &Problem) -> String {
    if let Some(key) = collection_as_key(nodes, root) {
        let key = go_syntax::value(nodes, key);
        return format!("map[string]interface {{}}(nil): yaml: invalid map key: {key}");
    }
    let mut json = Json::default();
    match json.write(nodes, root) {
        Err(refusal) => format!(
            "{}: json: unsupported value: {refusal}",
            go_syntax::of_object(nodes, root)
        ),
        // go-yaml did not read the object at all.
        Ok(()) => format!("map[string]interface {{}}(nil): {problem}"),
    }
}

/// Finds a key that is a sequence or mapping, which no map of Go can have.
fn collection_as_key(nodes: &Nodes, id: NodeId) -> Option<NodeId> {
    let is_collection = |key: NodeId| matches!(nodes[key].kind, Kind::Sequence | Kind::Mapping);
    if nodes[id].kind == Kind::Mapping
        && let Some((key, _)) = nodes.pairs(id).find(|(key, _)| is_collection(*key))
    {
        return Some(key);
    }
    let mut children = nodes[id].content.iter();
    children.find_map(|child| collection_as_key(nodes, *child))
}

/// The JSON that encoding/json (since Go 1.27) has written when it stops; only its length is told.
#[derive(Default)]
struct Json {
    length: usize,
    /// JSON pointer to where it is.
    pointer: String,
}

impl Json {
    fn write(&mut self, nodes: &Nodes, id: NodeId) -> Result<(), String> {
        match nodes[id].kind {
            Kind::Alias => nodes[id].alias.map_or(Ok(()), |target| self.write(nodes, target)),
            Kind::Scalar => self.scalar(&GoScalar::from_node(&nodes[id])),
            Kind::Sequence => {
                self.length += 1;
                for (index, element) in nodes[id].content.iter().enumerate() {
                    self.below(&index.to_string(), |json| json.write(nodes, *element))?;
                }
                self.length += usize::from(nodes[id].content.is_empty());
                Ok(())
            }
            Kind::Mapping => self.mapping(nodes, id),
        }
    }

    fn mapping(&mut self, nodes: &Nodes, id: NodeId) -> Result<(), String> {
        self.length += 1;
        let fields = go_syntax::sorted_fields(nodes, id);
        for (key, _) in &fields {
            self.refuse_key(key)?;
        }
        for (key, field) in &fields {
            let name = match key {
                GoScalar::Text(name) | GoScalar::Time(name) => name.clone(),
                other => other.to_string(),
            };
            self.length += text_length(&name) + 1;
            self.below(&name, |json| json.write(nodes, *field))?;
        }
        self.length += usize::from(fields.is_empty());
        Ok(())
    }

    fn refuse_key(&self, key: &GoScalar) -> Result<(), String> {
        match key {
            GoScalar::Text(_) | GoScalar::Time(_) | GoScalar::Signed(_) | GoScalar::Unsigned(_) => Ok(()),
            GoScalar::Float(float) if !float.is_finite() => Err(key.to_string()),
            _ => Err(format!(
                "jsontext: object member name must be a string within {:?} after offset {}",
                self.pointer,
                self.length + 1
            )),
        }
    }

    fn scalar(&mut self, scalar: &GoScalar) -> Result<(), String> {
        self.length += match scalar {
            GoScalar::Nothing => "null".len(),
            GoScalar::Text(text) | GoScalar::Time(text) => text_length(text),
            GoScalar::Float(float) if !float.is_finite() => return Err(scalar.to_string()),
            GoScalar::Float(float) => float.to_string().len(),
            GoScalar::Unsigned(n) => n.to_string().len(),
            GoScalar::Signed(_) | GoScalar::Truth(_) => scalar.to_string().len(),
        };
        Ok(())
    }

    /// Goes on below a name, with the comma or bracket behind what stands there.
    fn below(
        &mut self,
        name: &str,
        write: impl FnOnce(&mut Self) -> Result<(), String>,
    ) -> Result<(), String> {
        let length = self.pointer.len();
        self.pointer += "/";
        self.pointer += &name.replace('~', "~0").replace('/', "~1");
        write(self)?;
        self.pointer.truncate(length);
        self.length += 1;
        Ok(())
    }
}

/// Returns the length of a text in JSON, where encoding/json writes what HTML gives a meaning as `\u003c`.
fn text_length(text: &str) -> usize {
    let lengths = text.chars().map(|c| match c {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\0'..='\u{1f}' => 6,
        other => other.len_utf8(),
    });
    lengths.sum::<usize>() + 2
}
