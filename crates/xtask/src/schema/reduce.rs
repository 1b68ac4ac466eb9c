//! Makes one of all mappings in which a merge goes the same ways, so that hundreds of definitions become a few dozen.

use std::collections::{BTreeMap, HashMap};

use super::graph::{Graph, Node, Target};

/// The mappings that are left.
pub(super) struct Reduced<'g> {
    /// In the order of their names; nodes below are numbers in this list.
    pub(super) definitions: Vec<Definition<'g>>,
    /// Which definition a node became.
    pub(super) of_node: HashMap<Node, usize>,
}

/// One mapping for all that are equal.
pub(super) struct Definition<'g> {
    /// The first name, and how many there are.
    pub(super) name: &'g str,
    pub(super) count: usize,
    pub(super) fields: Vec<(&'g str, Target)>,
    pub(super) others: Option<Target>,
}

/// Reduces a graph to what can be reached from some nodes.
pub(super) fn reduce(graph: &Graph, roots: impl Iterator<Item = Node>) -> Reduced<'_> {
    let reachable = reachable(graph, roots);
    let classes = classes(graph, &reachable);
    let mut members: BTreeMap<usize, Vec<Node>> = BTreeMap::new();
    for node in &reachable {
        members.entry(classes[node]).or_default().push(*node);
    }
    let name = |node: &Node| graph.nodes[*node].name.as_str();
    let mut members: Vec<Vec<Node>> = members.into_values().collect();
    for class in &mut members {
        class.sort_by_key(|node| (name(node), *node));
    }
    members.sort_by_key(|class| (name(&class[0]), class[0]));
    let of_node: HashMap<Node, usize> = members
        .iter()
        .enumerate()
        .flat_map(|(index, class)| class.iter().map(move |node| (*node, index)))
        .collect();
    let definitions = members
        .iter()
        .map(|class| definition(graph, class, &of_node))
        .collect();
    Reduced { definitions, of_node }
}

fn definition<'g>(graph: &'g Graph, class: &[Node], of_node: &HashMap<Node, usize>) -> Definition<'g> {
    let first = &graph.nodes[class[0]];
    let mut names: Vec<&str> = class
        .iter()
        .map(|node| graph.nodes[*node].name.as_str())
        .collect();
    names.dedup();
    Definition {
        name: names[0],
        count: names.len(),
        fields: first
            .fields
            .iter()
            .map(|(name, target)| (name.as_str(), renamed(target, of_node)))
            .collect(),
        others: first.others.as_ref().map(|target| renamed(target, of_node)),
    }
}

fn renamed(target: &Target, to: &HashMap<Node, usize>) -> Target {
    match target {
        Target::Mapping(node) => Target::Mapping(to[node]),
        Target::List { elements, keys } => Target::List {
            elements: elements.map(|node| to[&node]),
            keys: keys.clone(),
        },
    }
}

fn reachable(graph: &Graph, roots: impl Iterator<Item = Node>) -> Vec<Node> {
    let mut seen = vec![false; graph.nodes.len()];
    let mut todo: Vec<Node> = roots.collect();
    while let Some(node) = todo.pop() {
        if !std::mem::replace(&mut seen[node], true) {
            let mapping = &graph.nodes[node];
            todo.extend(mapping.fields.values().chain(&mapping.others).filter_map(below));
        }
    }
    (0..graph.nodes.len()).filter(|node| seen[*node]).collect()
}

fn below(target: &Target) -> Option<Node> {
    match target {
        Target::Mapping(node) => Some(*node),
        Target::List { elements, .. } => *elements,
    }
}

/// One way on from a mapping: by which name, with which keys if it is a list, and to which class.
type Way<'g> = (Option<&'g str>, Option<&'g [String]>, Option<usize>);

/// Numbers the nodes so that two have the same number if the same ways lead on from both: all are equal at first, and
/// parted until nothing changes, as states of an automaton are.
fn classes(graph: &Graph, nodes: &[Node]) -> HashMap<Node, usize> {
    let mut classes: HashMap<Node, usize> = nodes.iter().map(|node| (*node, 0)).collect();
    let mut count = 1;
    loop {
        let mut numbers: HashMap<(usize, Vec<Way<'_>>), usize> = HashMap::new();
        let next: HashMap<Node, usize> = nodes
            .iter()
            .map(|node| {
                let number = numbers.len();
                let ways = (classes[node], ways(graph, *node, &classes));
                (*node, *numbers.entry(ways).or_insert(number))
            })
            .collect();
        if numbers.len() == count {
            return next;
        }
        (classes, count) = (next, numbers.len());
    }
}

fn ways<'g>(graph: &'g Graph, node: Node, classes: &HashMap<Node, usize>) -> Vec<Way<'g>> {
    let mapping = &graph.nodes[node];
    let way = |name: Option<&'g str>, target: &'g Target| {
        let keys = match target {
            Target::Mapping(_) => None,
            Target::List { keys, .. } => Some(keys.as_slice()),
        };
        (name, keys, below(target).map(|node| classes[&node]))
    };
    let named = mapping
        .fields
        .iter()
        .map(|(name, target)| way(Some(name), target));
    named
        .chain(mapping.others.iter().map(|target| way(None, target)))
        .collect()
}
