//! A chart on its way through the processing: Helm's objects and the pointers between them.
//!
//! Helm copies some of its objects and shares others, between two aliases of one chart for instance, and changes them
//! while it goes. What comes out can depend on that (an alias of Helm 3 sees the names that another one has changed), so
//! charts, their metadata and their dependencies are kept apart here and refer to each other by number.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use go_template::Map;
use serde_json::Value;

use crate::values::{Defaults, copy, from_json, to_json};
use helm_chart::{Chart, Dependency, Metadata};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ChartId(usize);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MetadataId(usize);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct DependencyId(usize);

/// All objects of one chart, with the charts in it.
#[derive(Debug)]
pub(super) struct Graph<'c> {
    charts: Vec<Node<'c>>,
    metadata: Vec<Facts<'c>>,
    dependencies: Vec<Dependency>,
    /// Dependencies whose imports have been written down.
    imported: HashSet<DependencyId>,
}

#[derive(Clone, Debug)]
struct Node<'c> {
    source: &'c Chart,
    metadata: MetadataId,
    parent: Option<ChartId>,
    charts: Vec<ChartId>,
    /// Default values, where they are no longer those of the source.
    values: Option<Map>,
}

/// The part of the metadata that changes.
#[derive(Clone, Debug)]
struct Facts<'c> {
    source: &'c Arc<Metadata>,
    name: Cow<'c, str>,
    dependencies: Option<Vec<DependencyId>>,
}

impl<'c> Graph<'c> {
    pub(super) fn from_chart(chart: &'c Chart) -> Self {
        let mut graph = Self {
            charts: Vec::new(),
            metadata: Vec::new(),
            dependencies: Vec::new(),
            imported: HashSet::new(),
        };
        graph.add(chart, None);
        graph
    }

    pub(super) fn root(&self) -> ChartId {
        ChartId(0)
    }

    fn add(&mut self, source: &'c Chart, parent: Option<ChartId>) -> ChartId {
        let dependencies = source.metadata.dependencies.as_ref();
        let dependencies =
            dependencies.map(|list| list.iter().map(|one| self.add_dependency(one.clone())).collect());
        let metadata = self.add_metadata(Facts {
            source: &source.metadata,
            name: Cow::Borrowed(source.name()),
            dependencies,
        });
        let id = self.add_node(Node {
            source,
            metadata,
            parent,
            charts: Vec::new(),
            values: None,
        });
        self.charts[id.0].charts = source
            .dependencies
            .iter()
            .map(|chart| self.add(chart, Some(id)))
            .collect();
        id
    }

    fn add_node(&mut self, node: Node<'c>) -> ChartId {
        self.charts.push(node);
        ChartId(self.charts.len() - 1)
    }

    fn add_metadata(&mut self, facts: Facts<'c>) -> MetadataId {
        self.metadata.push(facts);
        MetadataId(self.metadata.len() - 1)
    }

    fn add_dependency(&mut self, dependency: Dependency) -> DependencyId {
        self.dependencies.push(dependency);
        DependencyId(self.dependencies.len() - 1)
    }

    fn facts(&self, chart: ChartId) -> &Facts<'c> {
        &self.metadata[self.charts[chart.0].metadata.0]
    }

    fn facts_mut(&mut self, chart: ChartId) -> &mut Facts<'c> {
        let id = self.charts[chart.0].metadata;
        &mut self.metadata[id.0]
    }

    pub(super) fn name(&self, chart: ChartId) -> &str {
        &self.facts(chart).name
    }

    pub(super) fn set_name(&mut self, chart: ChartId, name: String) {
        self.facts_mut(chart).name = Cow::Owned(name);
    }

    pub(super) fn version(&self, chart: ChartId) -> &'c str {
        &self.facts(chart).source.version
    }

    /// Returns the charts within a chart.
    pub(super) fn charts(&self, chart: ChartId) -> Vec<ChartId> {
        self.charts[chart.0].charts.clone()
    }

    /// Replaces the charts within a chart, which becomes their parent.
    pub(super) fn set_charts(&mut self, chart: ChartId, charts: Vec<ChartId>) {
        for below in &charts {
            self.charts[below.0].parent = Some(chart);
        }
        self.charts[chart.0].charts = charts;
    }

    /// Returns what Chart.yaml says of dependencies; None when it says nothing.
    pub(super) fn named(&self, chart: ChartId) -> Option<Vec<DependencyId>> {
        self.facts(chart).dependencies.clone()
    }

    /// Replaces what Chart.yaml says of dependencies.
    pub(super) fn set_named(&mut self, chart: ChartId, dependencies: Vec<DependencyId>) {
        // Go appends to a nil slice, which stays nil when there is nothing to append.
        self.facts_mut(chart).dependencies = (!dependencies.is_empty()).then_some(dependencies);
    }

    pub(super) fn dependency(&self, id: DependencyId) -> &Dependency {
        &self.dependencies[id.0]
    }

    pub(super) fn dependency_mut(&mut self, id: DependencyId) -> &mut Dependency {
        &mut self.dependencies[id.0]
    }

    /// Takes what is to be imported from a dependency: nothing the second time, when two charts share it. Helm writes down
    /// the first time what it has imported, and does not understand it the second time.
    pub(super) fn take_imports(&mut self, id: DependencyId) -> Vec<Value> {
        let imports = std::mem::take(&mut self.dependency_mut(id).import_values);
        if self.imported.insert(id) {
            imports
        } else {
            Vec::new()
        }
    }

    /// Copies a chart for an alias as Helm 3 does: what is in it is shared, and keeps its old parent.
    pub(super) fn copy_shallow(&mut self, chart: ChartId) -> ChartId {
        let facts = self.facts(chart).clone();
        let metadata = self.add_metadata(facts);
        let node = self.charts[chart.0].clone();
        self.add_node(Node { metadata, ..node })
    }

    /// Copies a chart for an alias as Helm 4 does: its dependencies become its own, theirs are shared as before.
    pub(super) fn copy_deeper(&mut self, chart: ChartId) -> ChartId {
        let copied = self.copy_shallow(chart);
        if let Some(dependencies) = self.named(copied) {
            let dependencies = dependencies.into_iter();
            let dependencies = dependencies.map(|id| self.add_dependency(self.dependencies[id.0].clone()));
            let dependencies = dependencies.collect();
            self.facts_mut(copied).dependencies = Some(dependencies);
        }
        let charts = self.charts(copied).into_iter();
        let charts = charts
            .map(|below| self.add_node(self.charts[below.0].clone()))
            .collect();
        self.set_charts(copied, charts);
        copied
    }

    pub(super) fn set_values(&mut self, chart: ChartId, values: Map) {
        self.charts[chart.0].values = Some(values);
    }

    /// Views a chart as one that has default values.
    pub(super) fn view(&self, chart: ChartId) -> View<'_, 'c> {
        View { graph: self, chart }
    }

    pub(super) fn into_chart(self) -> Chart {
        self.build(self.root())
    }

    fn build(&self, id: ChartId) -> Chart {
        let node = &self.charts[id.0];
        Chart {
            metadata: self.built_metadata(self.facts(id)),
            content: node.source.content.clone(),
            values: match &node.values {
                Some(values) => Arc::new(to_json(values)),
                None => node.source.values.clone(),
            },
            path: self.path(id).into(),
            is_root: node.parent.is_none(),
            dependencies: node.charts.iter().map(|below| self.build(*below)).collect(),
        }
    }

    fn built_metadata(&self, facts: &Facts<'_>) -> Arc<Metadata> {
        if facts.name == facts.source.name
            && facts.dependencies.is_none()
            && facts.source.dependencies.is_none()
        {
            return facts.source.clone();
        }
        let dependencies = facts.dependencies.as_ref();
        let dependencies =
            dependencies.map(|ids| ids.iter().map(|id| self.dependency(*id).clone()).collect());
        Arc::new(Metadata {
            name: facts.name.clone().into_owned(),
            dependencies,
            ..Metadata::clone(facts.source)
        })
    }

    /// Follows the parents, who may know the chart under another name than the one it is reached by.
    fn path(&self, chart: ChartId) -> String {
        match self.charts[chart.0].parent {
            None => self.name(chart).to_owned(),
            Some(parent) => format!("{}/charts/{}", self.path(parent), self.name(chart)),
        }
    }
}

/// A chart of the graph with its default values as they are now.
#[derive(Clone, Copy)]
pub(super) struct View<'g, 'c> {
    graph: &'g Graph<'c>,
    chart: ChartId,
}

impl Defaults for View<'_, '_> {
    fn name(&self) -> String {
        self.graph.name(self.chart).to_owned()
    }

    fn defaults(&self) -> Map {
        let node = &self.graph.charts[self.chart.0];
        match &node.values {
            Some(values) => copy(values),
            None => from_json(&node.source.values),
        }
    }

    fn dependencies(&self) -> Vec<Self> {
        let charts = self.graph.charts[self.chart.0].charts.iter();
        charts.map(|chart| self.graph.view(*chart)).collect()
    }
}
