//! Checks a value against a compiled schema, in the order in which the Go library does, so that its list of failures is
//! ours. The properties of an object, which Go visits in random order, are visited sorted.

mod arrays;
mod objects;
mod scalars;
mod scope;

use super::compile::Graph;
use super::document::Document;
use super::draft::Draft;
use super::failure::{self, Failure, Kind};
use super::node::{Conditions, Node, NodeId};
use super::pointer;
use go_text::json::Json;
use scope::{Scope, Unevaluated};

/// A schema asks a schema that asks a schema …: Go's stack grows, ours does not. What goes deeper than the first bound
/// is checked once more on a stack of its own, which holds the second with room to spare.
const SHALLOW: usize = 128;
const DEEP: usize = 4_000;
const DEEP_STACK: usize = 64 << 20;

/// Limit on the cost of a schema: the checks of one value by one schema, and the failures that are
/// remembered.
const MAX_STEPS: usize = 2_000_000;
const MAX_FAILURES: usize = 200_000;

/// Checks chart values; the failures come back printed, each behind a line break.
pub(super) fn values(graph: &Graph, root: NodeId, value: &Json<'_>) -> Result<Result<(), String>, String> {
    run(Target { graph, id: root }, value, None)
}

/// Checks a part of a schema's document against a metaschema.
pub(super) fn against_metaschema(
    graph: &Graph,
    root: NodeId,
    value: &Json<'_>,
    document: &Document<'_>,
) -> Result<Result<(), String>, String> {
    let meta = Target { graph, id: root };
    run(
        meta,
        value,
        Some(Meta {
            target: meta,
            document,
        }),
    )
}

fn run<'s>(
    target: Target<'s>,
    value: &Json<'_>,
    meta: Option<Meta<'s>>,
) -> Result<Result<(), String>, String> {
    let shallow = run_to_depth(SHALLOW, target, value, meta);
    if shallow != Err(Exceeded::Depth) {
        return shallow.map_err(Exceeded::message);
    }
    let deep = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(DEEP_STACK);
        let check = move || run_to_depth(DEEP, target, value, meta);
        let thread = thread.spawn_scoped(scope, check).ok()?;
        thread.join().ok()
    });
    deep.unwrap_or(Err(Exceeded::Depth)).map_err(Exceeded::message)
}

fn run_to_depth<'s>(
    max_depth: usize,
    target: Target<'s>,
    value: &Json<'_>,
    meta: Option<Meta<'s>>,
) -> Result<Result<(), String>, Exceeded> {
    let mut limits = Limits {
        max_depth,
        depth: 0,
        steps: 0,
        failures: 0,
        exceeded: None,
    };
    let done = root(target, value, meta, &mut limits);
    if let Some(exceeded) = limits.exceeded {
        return Err(exceeded);
    }
    Ok(done.map_err(|failures| Failure::print(&failures)))
}

/// A bound that a check went beyond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exceeded {
    Depth,
    Cost,
}

impl Exceeded {
    fn message(self) -> String {
        let problem = match self {
            Self::Depth => "it is nested too deeply",
            Self::Cost => "it takes too many steps",
        };
        format!("unable to validate schema: {problem}")
    }
}

/// Starts a check of its own, as of a property's name.
fn root<'s>(
    target: Target<'s>,
    value: &Json<'_>,
    meta: Option<Meta<'s>>,
    limits: &mut Limits,
) -> Result<(), Vec<Failure>> {
    let scope = Scope::root(target);
    let mut path = Vec::new();
    let mut run = Run {
        path: &mut path,
        limits,
    };
    let unevaluated = Unevaluated::new(value, target.node(), false);
    let step = Step::new(target, value, &scope, unevaluated, false, meta);
    step.check(&mut run)
        .map(|_| ())
        .map_err(|failure| match failure.kind {
            Kind::Group => failure.causes,
            _ => vec![*failure],
        })
}

/// A schema in a graph.
#[derive(Clone, Copy)]
struct Target<'s> {
    graph: &'s Graph,
    id: NodeId,
}

impl<'s> Target<'s> {
    fn node(self) -> &'s Node {
        &self.graph.nodes[self.id]
    }

    /// Another schema of the same graph.
    fn at(self, id: NodeId) -> Self {
        Self {
            graph: self.graph,
            id,
        }
    }

    fn is(self, other: Self) -> bool {
        self.id == other.id && std::ptr::eq(self.graph, other.graph)
    }

    fn location(self) -> String {
        let node = self.node();
        pointer::location(&node.url, &node.pointer)
    }
}

/// A check against a metaschema: parts of the document that name another draft are checked against that one's.
#[derive(Clone, Copy)]
struct Meta<'s> {
    target: Target<'s>,
    document: &'s Document<'s>,
}

/// Counters that grow while a value is checked.
struct Limits {
    max_depth: usize,
    depth: usize,
    steps: usize,
    failures: usize,
    exceeded: Option<Exceeded>,
}

/// Where the check is.
struct Run<'r, 'v> {
    path: &'r mut Vec<Token<'v>>,
    limits: &'r mut Limits,
}

/// A token of the path to a value.
#[derive(Clone, Copy)]
enum Token<'v> {
    Name(&'v str),
    Index(usize),
}

impl Run<'_, '_> {
    fn location(&self) -> String {
        let mut location = String::new();
        for token in self.path.iter() {
            match token {
                Token::Name(name) => pointer::push(&mut location, name),
                Token::Index(index) => pointer::push(&mut location, &index.to_string()),
            }
        }
        location
    }
}

/// One value and one schema.
struct Step<'s, 'v, 'p> {
    target: Target<'s>,
    node: &'s Node,
    value: &'v Json<'v>,
    scope: &'p Scope<'s, 'p>,
    unevaluated: Unevaluated<'v>,
    failures: Vec<Failure>,
    /// Only whether the value fits is asked for.
    quiet: bool,
    meta: Option<Meta<'s>>,
}

type Checked<'v> = Result<Unevaluated<'v>, Box<Failure>>;

impl<'s, 'v> Step<'s, 'v, '_> {
    fn check(mut self, run: &mut Run<'_, 'v>) -> Checked<'v> {
        run.limits.depth += 1;
        run.limits.steps += 1;
        if run.limits.depth > run.limits.max_depth {
            run.limits.exceeded.get_or_insert(Exceeded::Depth);
        } else if run.limits.steps > MAX_STEPS || run.limits.failures > MAX_FAILURES {
            run.limits.exceeded.get_or_insert(Exceeded::Cost);
        }
        let checked = if run.limits.exceeded.is_some() {
            Err(Box::new(Failure::quiet()))
        } else {
            match self.check_value(run) {
                Ok(Done::Checked) => self.finish(run),
                Ok(Done::Early) => Ok(self.unevaluated),
                Err(failure) => Err(failure),
            }
        };
        run.limits.depth -= 1;
        checked
    }

    /// Checks the keywords that decide alone first, and then all others.
    fn check_value(&mut self, run: &mut Run<'_, 'v>) -> Result<Done, Box<Failure>> {
        let node = self.node;
        match node.boolean {
            Some(true) => return Ok(Done::Early),
            Some(false) => return Err(self.alone(run, || "false schema".to_owned())),
            None => {}
        }
        if let Some(cycle) = self.scope.cycle() {
            let message = || cycle.message(self.scope, node);
            return Err(self.alone(run, message));
        }
        self.check_type(run)?;
        self.check_choices(run)?;
        if let Some(format) = node.format
            && let Err(problem) = format.check(self.value)
        {
            let got = || failure::display(self.value);
            return Err(self.alone(run, || {
                format!("{} is not valid {}: {problem}", got(), format.name())
            }));
        }
        if let Some(target) = node.references.plain {
            let checked = self.check_reference(target, "$ref", run);
            if node.draft < Draft::D2019 {
                return checked.map(|()| Done::Early);
            }
            self.note(checked);
        }
        match self.value {
            Json::Object(fields) => self.check_object(fields, run),
            Json::Array(items) => self.check_array(items, run),
            Json::Text(text) => self.check_text(text, run),
            Json::Number(number) => self.check_number(number, run),
            Json::Null | Json::Bool(_) => {}
        }
        if self.failures.is_empty() || !self.quiet {
            self.check_rest(run);
        }
        Ok(Done::Checked)
    }

    fn check_rest(&mut self, run: &mut Run<'_, 'v>) {
        if self.node.draft >= Draft::D2019 {
            self.check_dynamic_references(run);
        }
        if let Some(conditions) = self.node.conditions.as_deref() {
            self.check_conditions(conditions, run);
        }
        if self.node.draft >= Draft::D2019 {
            self.check_unevaluated(run);
        }
    }

    fn finish(mut self, run: &mut Run<'_, 'v>) -> Checked<'v> {
        if self.failures.len() > 1 {
            let mut group = self.failure(run, Kind::Group);
            group.causes = self.failures;
            return Err(group);
        }
        match self.failures.pop() {
            None => Ok(self.unevaluated),
            Some(failure) => Err(Box::new(failure)),
        }
    }

    // Conditions.

    fn check_conditions(&mut self, conditions: &Conditions, run: &mut Run<'_, 'v>) {
        if let Some(not) = conditions.not
            && self.check_self(not, "", true, run).is_ok()
        {
            self.fail(run, || "'not' failed".to_owned());
        }
        self.check_all_of(&conditions.all_of, run);
        self.check_any_of(&conditions.any_of, run);
        self.check_one_of(&conditions.one_of, run);
        if let Some(condition) = conditions.condition {
            let fits = self.check_self(condition, "", true, run).is_ok();
            let branch = if fits {
                conditions.then
            } else {
                conditions.otherwise
            };
            if let Some(branch) = branch {
                let checked = self.check_self(branch, "", false, run);
                self.note(checked);
            }
        }
    }

    fn check_all_of(&mut self, schemas: &[NodeId], run: &mut Run<'_, 'v>) {
        let mut causes = Vec::new();
        for schema in schemas {
            if let Err(failure) = self.check_self(*schema, "", false, run) {
                causes.push(*failure);
                if self.quiet {
                    break;
                }
            }
        }
        if !causes.is_empty() {
            self.fail_because(causes, run, || "'allOf' failed".to_owned());
        }
    }

    fn check_any_of(&mut self, schemas: &[NodeId], run: &mut Run<'_, 'v>) {
        let mut matched = schemas.is_empty();
        let mut causes = Vec::new();
        for schema in schemas {
            match self.check_self(*schema, "", false, run) {
                Err(failure) => causes.push(*failure),
                Ok(()) => {
                    matched = true;
                    // For what is unevaluated all schemas must have been asked.
                    if self.unevaluated.is_empty() {
                        break;
                    }
                }
            }
        }
        if !matched {
            self.fail_because(causes, run, || "'anyOf' failed".to_owned());
        }
    }

    fn check_one_of(&mut self, schemas: &[NodeId], run: &mut Run<'_, 'v>) {
        let mut matched = None;
        let mut causes = Vec::new();
        for (index, schema) in schemas.iter().enumerate() {
            match (self.check_self(*schema, "", matched.is_some(), run), matched) {
                (Err(failure), None) => causes.push(*failure),
                (Err(_), Some(_)) => {}
                (Ok(()), None) => matched = Some(index),
                (Ok(()), Some(first)) => {
                    self.fail(run, || {
                        let number =
                            |index: usize| super::number::english(i64::try_from(index).unwrap_or(i64::MAX));
                        format!(
                            "'oneOf' failed, subschemas {}, {} matched",
                            number(first),
                            number(index)
                        )
                    });
                    break;
                }
            }
        }
        if matched.is_none() && !schemas.is_empty() {
            self.fail_because(causes, run, || "'oneOf' failed, none matched".to_owned());
        }
    }

    // Other schemas for this value or a part of it.

    /// Checks the same value against another schema.
    fn check_self(
        &mut self,
        id: NodeId,
        keyword: &'static str,
        quiet: bool,
        run: &mut Run<'_, 'v>,
    ) -> Result<(), Box<Failure>> {
        self.check_target(self.target.at(id), keyword, quiet, run)
    }

    fn check_target(
        &mut self,
        target: Target<'s>,
        keyword: &'static str,
        quiet: bool,
        run: &mut Run<'_, 'v>,
    ) -> Result<(), Box<Failure>> {
        let scope = self.scope.child(target, keyword, self.scope.value_id);
        let unevaluated = Unevaluated::new(self.value, target.node(), !self.unevaluated.is_empty());
        let mut step = Step::new(
            target,
            self.value,
            &scope,
            unevaluated,
            self.quiet || quiet,
            self.meta,
        );
        step.follow_draft(run);
        let unevaluated = step.check(run)?;
        self.unevaluated.merge(&unevaluated);
        Ok(())
    }

    /// Checks a part of the value.
    fn check_part(
        &mut self,
        id: NodeId,
        value: &'v Json<'v>,
        token: Token<'v>,
        run: &mut Run<'_, 'v>,
    ) -> Result<(), Box<Failure>> {
        let target = self.target.at(id);
        let scope = self.scope.child(target, "", self.scope.value_id + 1);
        let unevaluated = Unevaluated::new(value, target.node(), false);
        run.path.push(token);
        let mut step = Step::new(target, value, &scope, unevaluated, self.quiet, self.meta);
        step.follow_draft(run);
        let checked = step.check(run);
        run.path.pop();
        checked.map(|_| ())
    }

    fn check_reference(
        &mut self,
        id: NodeId,
        keyword: &'static str,
        run: &mut Run<'_, 'v>,
    ) -> Result<(), Box<Failure>> {
        self.check_reference_target(self.target.at(id), keyword, run)
    }

    fn check_reference_target(
        &mut self,
        target: Target<'s>,
        keyword: &'static str,
        run: &mut Run<'_, 'v>,
    ) -> Result<(), Box<Failure>> {
        let Err(cause) = self.check_target(target, keyword, false, run) else {
            return Ok(());
        };
        let mut failure = self.failure(run, Kind::Reference);
        failure.causes = match cause.kind {
            Kind::Group => cause.causes,
            _ => vec![*cause],
        };
        Err(failure)
    }

    /// Goes over to the metaschema of another draft where a part of a document names one.
    fn follow_draft(&mut self, run: &Run<'_, 'v>) {
        let Some(draft) = self.draft_of_part(self.target, run) else {
            return;
        };
        let (graph, id) = draft.metaschema();
        self.target = Target { graph, id: *id };
        self.node = self.target.node();
        if let Some(meta) = &mut self.meta {
            meta.target = self.target;
        }
    }

    /// The draft of the document's part that is checked, if it has a URL of its own and the whole metaschema is asked.
    fn draft_of_part(&self, target: Target<'s>, run: &Run<'_, 'v>) -> Option<Draft> {
        let meta = self.meta?;
        if meta.document.resources.len() < 2 || !target.is(meta.target) {
            return None;
        }
        let resource = meta.document.resources.get(&run.location())?;
        Some(resource.draft)
    }

    // Failures.

    fn failure(&self, run: &mut Run<'_, 'v>, kind: Kind) -> Box<Failure> {
        if self.quiet {
            return Box::new(Failure::quiet());
        }
        run.limits.failures += 1;
        Box::new(Failure {
            location: run.location(),
            kind,
            causes: Vec::new(),
        })
    }

    fn alone(&self, run: &mut Run<'_, 'v>, message: impl FnOnce() -> String) -> Box<Failure> {
        if self.quiet {
            return Box::new(Failure::quiet());
        }
        self.failure(run, Kind::Message(message()))
    }

    fn fail(&mut self, run: &mut Run<'_, 'v>, message: impl FnOnce() -> String) {
        let failure = self.alone(run, message);
        self.failures.push(*failure);
    }

    fn fail_because(
        &mut self,
        causes: Vec<Failure>,
        run: &mut Run<'_, 'v>,
        message: impl FnOnce() -> String,
    ) {
        let mut failure = self.alone(run, message);
        failure.causes = causes;
        self.failures.push(*failure);
    }

    fn note(&mut self, checked: Result<(), Box<Failure>>) {
        if let Err(failure) = checked {
            self.failures.push(*failure);
        }
    }
}

impl<'s, 'v, 'p> Step<'s, 'v, 'p> {
    fn new(
        target: Target<'s>,
        value: &'v Json<'v>,
        scope: &'p Scope<'s, 'p>,
        unevaluated: Unevaluated<'v>,
        quiet: bool,
        meta: Option<Meta<'s>>,
    ) -> Self {
        Self {
            target,
            node: target.node(),
            value,
            scope,
            unevaluated,
            failures: Vec::new(),
            quiet,
            meta,
        }
    }
}

/// How far a check came.
enum Done {
    /// The value fits, whatever else could be asked.
    Early,
    /// All was asked.
    Checked,
}
