//! Circles of a graph: its strongly connected components (Tarjan's algorithm).

use std::collections::{BTreeMap, BTreeSet};

use super::imports::Module;

/// Sets of files of which each leads to each other.
pub(super) fn circles(edges: &BTreeMap<Module, BTreeSet<Module>>) -> Vec<Vec<Module>> {
    let mut search = Search {
        edges,
        seen: BTreeMap::new(),
        path: Vec::new(),
        found: Vec::new(),
    };
    for module in edges.keys() {
        if !search.seen.contains_key(module) {
            search.visit(module);
        }
    }
    search.found
}

struct Search<'e> {
    edges: &'e BTreeMap<Module, BTreeSet<Module>>,
    /// In which order a file was visited, and the first one on the path that it leads to.
    seen: BTreeMap<&'e Module, (usize, usize)>,
    path: Vec<&'e Module>,
    found: Vec<Vec<Module>>,
}

impl<'e> Search<'e> {
    /// Returns the first file on the path to which this one leads.
    fn visit(&mut self, module: &'e Module) -> usize {
        let number = self.seen.len();
        let mut first = number;
        self.seen.insert(module, (number, first));
        self.path.push(module);
        for next in self.edges.get(module).into_iter().flatten() {
            match self.seen.get(next) {
                None => first = first.min(self.visit(next)),
                Some((number, _)) if self.path.contains(&next) => first = first.min(*number),
                Some(_) => {}
            }
        }
        self.seen.insert(module, (number, first));
        if first == number {
            let at = self.path.iter().position(|on_path| *on_path == module);
            let circle = self.path.split_off(at.unwrap_or_default());
            if circle.len() > 1 {
                let mut circle: Vec<_> = circle.into_iter().cloned().collect();
                circle.sort();
                self.found.push(circle);
            }
        }
        first
    }
}
