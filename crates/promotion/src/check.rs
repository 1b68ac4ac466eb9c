//! Whether a pipeline can work at all. The definition cannot say it: such rules cost too much for the API server.

use api::delivery::{Gate, PipelineSpec, Target};

/// Targets of one pipeline: for each, the API server is asked what its owner may see.
const MAX_TARGETS: usize = 200;

/// Returns what keeps a pipeline from working.
pub fn problem(spec: &PipelineSpec) -> Option<String> {
    let targets: usize = spec.environments.iter().map(|one| one.targets.len()).sum();
    if targets > MAX_TARGETS {
        return Some(format!("it has {targets} targets, and may have {MAX_TARGETS}"));
    }
    if spec
        .apps
        .iter()
        .any(|app| app.name.is_empty() != app.selector.is_some())
    {
        return Some("each entry of .spec.apps must have one of name and selector".to_owned());
    }
    for (at, environment) in spec.environments.iter().enumerate() {
        let mut names: Vec<_> = environment.targets.iter().map(Target::called).collect();
        names.sort_unstable();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Some(format!(
                "environment '{}' has the target '{}' twice",
                environment.name, twice[0]
            ));
        }
        if let Some(gate) = environment.gates.iter().find(|gate| !has_one_way(gate)) {
            return Some(format!(
                "gate '{}' of environment '{}' must have one of object, http, prometheus, commitStatus, attestation and job, or an expr alone; expr is required with \
                 object and prometheus, and excluded by job",
                gate.name, environment.name
            ));
        }
        let is_no_check = |check: &&Gate| check.job.is_some() || !has_one_way(check);
        if let Some(check) = environment.checks.iter().find(is_no_check) {
            return Some(format!(
                "check '{}' of environment '{}' must have one of object, http, prometheus, commitStatus and attestation, or an expr alone; expr is required with object \
                 and prometheus",
                check.name, environment.name
            ));
        }
        let known = |name: &str| {
            let at = spec.environments.iter().position(|one| one.name == name);
            at.is_some_and(|at| !spec.needs(at).is_empty())
        };
        let gates = environment.gates.iter().chain(&environment.checks);
        let mut attestations = gates.filter_map(|gate| gate.attestation.as_ref());
        if let Some(unknown) = attestations.find(|one| !known(&one.environment)) {
            return Some(format!(
                "environment '{}' asks for the attestation of '{}', which is no environment that releases are promoted into",
                environment.name, unknown.environment
            ));
        }
        let is_there = |need: &&str| spec.environments.iter().any(|one| one.name == *need);
        if let Some(unknown) = spec.needs(at).iter().find(|need| !is_there(need)) {
            return Some(format!(
                "environment '{}' needs '{unknown}', which is no environment",
                environment.name
            ));
        }
    }
    let circle = circle(spec)?;
    Some(format!("environments need each other: {}", circle.join(", ")))
}

/// Returns whether a gate says, in one way, when it is open.
fn has_one_way(gate: &Gate) -> bool {
    let Gate {
        object,
        http,
        prometheus,
        commit_status,
        attestation,
        job,
        expr,
        ..
    } = gate;
    let ways = [
        object.is_some(),
        http.is_some(),
        prometheus.is_some(),
        commit_status.is_some(),
        attestation.is_some(),
        job.is_some(),
    ];
    match ways.iter().filter(|way| **way).count() {
        0 => return expr.is_some(),
        1 => {}
        _ => return false,
    }
    match (object.is_some() || prometheus.is_some(), job) {
        (true, _) => expr.is_some(),
        (false, Some(_)) => expr.is_none(),
        (false, None) => true,
    }
}

/// Returns the environments that need each other in a circle, in order; None if there are none.
fn circle(spec: &PipelineSpec) -> Option<Vec<&str>> {
    let index = |name: &str| spec.environments.iter().position(|one| one.name == name);
    let mut done = vec![false; spec.environments.len()];
    for start in 0..spec.environments.len() {
        let mut way = Vec::new();
        if let Some(from) = walk(spec, start, &index, &mut way, &mut done) {
            let names = way[from..].iter().map(|at| spec.environments[*at].name.as_str());
            return Some(names.collect());
        }
    }
    None
}

/// Follows the needs of an environment. Returns where on the way the circle begins.
fn walk(
    spec: &PipelineSpec,
    at: usize,
    index: &impl Fn(&str) -> Option<usize>,
    way: &mut Vec<usize>,
    done: &mut [bool],
) -> Option<usize> {
    if let Some(from) = way.iter().position(|before| *before == at) {
        return Some(from);
    }
    if done[at] {
        return None;
    }
    way.push(at);
    for need in spec.needs(at).into_iter().filter_map(index) {
        if let Some(from) = walk(spec, need, index, way, done) {
            return Some(from);
        }
    }
    way.pop();
    done[at] = true;
    None
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn found(environments: &Value) -> Option<String> {
        let spec = json!({"apps": [], "environments": environments});
        problem(&serde_json::from_value(spec).unwrap())
    }

    #[test]
    fn environments_that_need_each_other_are_named() {
        let environment = |name: &str, needs: &[&str]| json!({"name": name, "targets": [], "needs": needs});
        let diamond = json!([
            environment("a", &[]),
            environment("b", &["a"]),
            environment("c", &["a"]),
            environment("d", &["b", "c"]),
        ]);
        assert_eq!(found(&diamond), None);
        let circle = json!([
            environment("a", &[]),
            environment("b", &["a", "d"]),
            environment("c", &["b"]),
            environment("d", &["c"]),
        ]);
        assert_eq!(found(&circle).unwrap(), "environments need each other: b, d, c");
        // The first needs the second, which needs the first by default.
        let default = json!([environment("a", &["b"]), {"name": "b", "targets": []}]);
        assert_eq!(found(&default).unwrap(), "environments need each other: a, b");
        let many = json!([{"name": "a", "targets": vec![json!({}); MAX_TARGETS + 1]}]);
        assert_eq!(found(&many).unwrap(), "it has 201 targets, and may have 200");
        let twice =
            json!([{"name": "a", "targets": [{"namespace": "x"}, {"namespace": "y"}, {"namespace": "x"}]}]);
        assert_eq!(found(&twice).unwrap(), "environment 'a' has the target 'x' twice");
        let gates = |gate: Value| found(&json!([{"name": "a", "targets": [], "gates": [gate]}]));
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "x"});
        assert_eq!(
            gates(json!({"name": "g", "object": object, "expr": "true"})),
            None
        );
        let server = json!({"url": "https://h"});
        let query = json!({"address": "https://p", "query": "up"});
        let forge = json!({"provider": "github", "secretRef": {"name": "s"}});
        let statuses = json!({"repositoryRef": {"name": "r"}, "forge": forge});
        for gate in [
            json!({"name": "g", "job": {"spec": {}}}),
            json!({"name": "g", "expr": "true"}),
            json!({"name": "g", "http": server}),
            json!({"name": "g", "http": server, "expr": "true"}),
            json!({"name": "g", "prometheus": query, "expr": "true"}),
            json!({"name": "g", "commitStatus": statuses}),
            json!({"name": "g", "commitStatus": statuses, "expr": "true"}),
        ] {
            assert_eq!(gates(gate), None);
        }
        let said = "gate 'g' of environment 'a' must have one of object, http, prometheus, commitStatus, attestation and job, or an expr alone; expr is \
                    required with object and prometheus, and excluded by job";
        for gate in [
            json!({"name": "g"}),
            json!({"name": "g", "object": object}),
            json!({"name": "g", "expr": "true", "job": {"spec": {}}}),
            json!({"name": "g", "prometheus": query}),
            json!({"name": "g", "http": server, "prometheus": query, "expr": "true"}),
            json!({"name": "g", "object": object, "http": server, "expr": "true"}),
            json!({"name": "g", "commitStatus": statuses, "http": server}),
        ] {
            assert_eq!(gates(gate).unwrap(), said);
        }
        let checks = |check: Value| found(&json!([{"name": "a", "targets": [], "checks": [check]}]));
        assert_eq!(
            checks(json!({"name": "c", "prometheus": query, "expr": "true"})),
            None
        );
        let said = "check 'c' of environment 'a' must have one of object, http, prometheus, commitStatus and attestation, or an expr alone; expr is \
                    required with object and prometheus";
        for check in [json!({"name": "c"}), json!({"name": "c", "job": {"spec": {}}})] {
            assert_eq!(checks(check).unwrap(), said);
        }
        let attested = |environment: &str| {
            let gate =
                json!({"name": "g", "attestation": {"environment": environment, "secretRef": {"name": "s"}}});
            found(&json!([{"name": "a", "targets": []}, {"name": "b", "targets": [], "gates": [gate]}]))
        };
        assert_eq!(attested("b"), None);
        for other in ["a", "c"] {
            let said = format!(
                "environment 'b' asks for the attestation of '{other}', which is no environment that releases are promoted into"
            );
            assert_eq!(attested(other), Some(said));
        }
        let unknown = json!([environment("a", &[]), environment("b", &["dev"])]);
        let said = "environment 'b' needs 'dev', which is no environment";
        assert_eq!(found(&unknown).unwrap(), said);
    }
}
