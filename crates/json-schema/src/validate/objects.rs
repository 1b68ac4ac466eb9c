//! Keywords about objects, references that depend on the way, and what is left unevaluated.

use std::borrow::Cow;

use super::{Run, Step, Token};
use crate::draft::Draft;
use crate::failure::{Failure, Kind, count, join_quoted, quote};
use crate::node::{Additional, Dependency, NodeId, ObjectRules};
use go_text::json::Json;

type Fields<'v> = [(Cow<'v, str>, Json<'v>)];

impl<'v> Step<'_, 'v, '_> {
    pub(super) fn check_object(&mut self, fields: &'v Fields<'v>, run: &mut Run<'_, 'v>) {
        let Some(rules) = self.node.objects.as_deref() else {
            return;
        };
        self.check_size(rules, fields, run);
        if self.quiet && !self.failures.is_empty() {
            return;
        }
        self.check_dependencies(rules, run);
        if self.check_properties(rules, fields, run).is_err() || self.node.draft == Draft::D4 {
            return;
        }
        if let Some(names) = rules.property_names {
            self.check_property_names(names, fields, run);
        }
        if self.node.draft == Draft::D6 {
            return;
        }
        for (name, schema) in &rules.dependent_schemas {
            if self.value.get(name).is_some() {
                let checked = self.check_self(*schema, "", false, run);
                self.note(checked);
            }
        }
        for (name, required) in &rules.dependent_required {
            self.check_dependent(name, required, run);
        }
    }

    fn check_size(&mut self, rules: &ObjectRules, fields: &Fields<'v>, run: &mut Run<'_, 'v>) {
        let size = i64::try_from(fields.len()).unwrap_or(i64::MAX);
        if let Some(want) = rules.min_properties
            && size < want
        {
            self.fail(run, || count("minProperties", fields.len(), want));
        }
        if let Some(want) = rules.max_properties
            && size > want
        {
            self.fail(run, || count("maxProperties", fields.len(), want));
        }
        let missing = self.missing(&rules.required);
        if !missing.is_empty() {
            self.fail(run, || {
                let property = if missing.len() == 1 {
                    "property"
                } else {
                    "properties"
                };
                format!("missing {property} {}", join_quoted(missing))
            });
        }
    }

    fn missing<'r>(&self, required: &'r [String]) -> Vec<&'r str> {
        let names = required.iter().map(String::as_str);
        names.filter(|name| self.value.get(name).is_none()).collect()
    }

    fn check_dependencies(&mut self, rules: &ObjectRules, run: &mut Run<'_, 'v>) {
        for (name, dependency) in &rules.dependencies {
            match dependency {
                Dependency::Properties(required) => self.check_dependent(name, required, run),
                Dependency::Schema(schema) if self.value.get(name).is_some() => {
                    let checked = self.check_self(*schema, "", false, run);
                    self.note(checked);
                }
                Dependency::Schema(_) => {}
            }
        }
    }

    fn check_dependent(&mut self, name: &str, required: &[String], run: &mut Run<'_, 'v>) {
        if self.value.get(name).is_none() {
            return;
        }
        let missing = self.missing(required);
        if !missing.is_empty() {
            self.fail(run, || {
                format!(
                    "properties {} required, if {} exists",
                    join_quoted(missing),
                    quote(name)
                )
            });
        }
    }

    /// Checks the values of all properties; an error says that enough is known.
    fn check_properties(
        &mut self,
        rules: &ObjectRules,
        fields: &'v Fields<'v>,
        run: &mut Run<'_, 'v>,
    ) -> Result<(), ()> {
        let mut refused = Vec::new();
        for (name, value) in fields {
            if self.quiet && !self.failures.is_empty() {
                return Err(());
            }
            let token = Token::Name(name);
            let mut evaluated = false;
            let place = rules
                .properties
                .binary_search_by(|(key, _)| key.as_str().cmp(name));
            if let Ok(place) = place {
                evaluated = true;
                let checked = self.check_part(rules.properties[place].1, value, token, run);
                self.note(checked);
            }
            for (pattern, schema) in &rules.pattern_properties {
                if pattern.matches(name) {
                    evaluated = true;
                    let checked = self.check_part(*schema, value, token, run);
                    self.note(checked);
                }
            }
            if !evaluated && let Some(additional) = &rules.additional_properties {
                evaluated = true;
                match additional {
                    Additional::Allowed(true) => {}
                    Additional::Allowed(false) => refused.push(name.as_ref()),
                    Additional::Schema(schema) => {
                        let checked = self.check_part(*schema, value, token, run);
                        self.note(checked);
                    }
                }
            }
            if evaluated {
                self.unevaluated.properties.remove(name.as_ref());
            }
        }
        if !refused.is_empty() {
            self.fail(run, || {
                format!("additional properties {} not allowed", join_quoted(refused))
            });
        }
        Ok(())
    }

    fn check_property_names(&mut self, names: NodeId, fields: &Fields<'v>, run: &mut Run<'_, 'v>) {
        for (name, _) in fields {
            let mut target = self.target.at(names);
            let mut meta = self.meta;
            if let Some(draft) = self.draft_of_part(target, run) {
                let (graph, id) = draft.metaschema();
                target = super::Target { graph, id: *id };
                if let Some(meta) = &mut meta {
                    meta.target = target;
                }
            }
            let value = Json::Text(Cow::Borrowed(name.as_ref()));
            let Err(causes) = super::root(target, &value, meta, run.limits) else {
                continue;
            };
            self.failures.push(Failure {
                location: run.location(),
                kind: Kind::Message(format!("invalid propertyName {}", quote(name))),
                causes,
            });
        }
    }

    pub(super) fn check_dynamic_references(&mut self, run: &mut Run<'_, 'v>) {
        let references = &self.node.references;
        if let Some(id) = references.recursive {
            let mut target = self.target.at(id);
            if target.node().references.recursive_anchor {
                // The outermost schema whose resource is an anchor, too.
                let is_anchor = |scope: &&super::Scope<'_, '_>| {
                    let resource = scope.target.at(scope.target.node().resource);
                    resource.node().references.recursive_anchor
                };
                let scopes = std::iter::once(self.scope).chain(self.scope.around());
                if let Some(scope) = scopes.filter(is_anchor).last() {
                    target = scope.target;
                }
            }
            let checked = self.check_reference_target(target, "$recursiveRef", run);
            self.note(checked);
        }
        if let Some((id, anchor)) = &references.dynamic {
            let mut target = self.target.at(*id);
            if !anchor.is_empty() && target.node().references.dynamic_anchor == *anchor {
                // The outermost schema whose resource has such an anchor.
                for scope in std::iter::once(self.scope).chain(self.scope.around()) {
                    let resource = scope.target.at(scope.target.node().resource);
                    let anchors = &resource.node().references.dynamic_anchors;
                    if let Some((_, id)) = anchors.iter().find(|(name, _)| name == anchor) {
                        target = scope.target.at(*id);
                    }
                }
            }
            let checked = self.check_reference_target(target, "$dynamicRef", run);
            self.note(checked);
        }
    }

    pub(super) fn check_unevaluated(&mut self, run: &mut Run<'_, 'v>) {
        if let (Json::Object(fields), Some(schema)) = (self.value, self.node.unevaluated_properties) {
            let unevaluated = std::mem::take(&mut self.unevaluated.properties);
            for (name, value) in fields
                .iter()
                .filter(|(name, _)| unevaluated.contains(name.as_ref()))
            {
                let checked = self.check_part(schema, value, Token::Name(name), run);
                self.note(checked);
            }
        }
        if let (Json::Array(items), Some(schema)) = (self.value, self.node.unevaluated_items) {
            for index in std::mem::take(&mut self.unevaluated.items) {
                let checked = self.check_part(schema, &items[index], Token::Index(index), run);
                self.note(checked);
            }
        }
    }
}
