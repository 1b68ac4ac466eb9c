use kustomize_build::MemoryFs;

use super::*;

fn checked(files: &[(&str, &str)], settings: &Settings) -> Report {
    let mut tree = MemoryFs::default();
    for (path, content) in files {
        tree.insert(*path, content.as_bytes());
    }
    check(&tree, settings)
}

fn lines(report: &Report) -> Vec<String> {
    report
        .findings
        .iter()
        .map(|one| {
            format!(
                "{} {} {}: {}",
                one.level.as_str(),
                one.rule,
                one.place(),
                one.text()
            )
        })
        .collect()
}

const SYNC: &str = "apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: NAME, namespace: flux-system}
spec:
  interval: 1h
  prune: true
  path: PATH
  sourceRef: {kind: GitRepository, name: flux-system}
";

fn sync(name: &str, path: &str) -> String {
    SYNC.replace("NAME", name).replace("PATH", path)
}

#[test]
fn a_sound_repository_has_no_findings() {
    let (apps, web) = (sync("apps", "./apps"), sync("web", "./web"));
    let report = checked(
        &[
            ("clusters/a/apps.yaml", &apps),
            ("apps/web.yaml", &web),
            ("web/kustomization.yaml", "resources: [../base]\nnamePrefix: a-\n"),
            ("base/kustomization.yaml", "resources: [map.yaml]\n"),
            (
                "base/map.yaml",
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: b}\n",
            ),
            ("chart/Chart.yaml", "apiVersion: v2\nname: c\nversion: 1.0.0\n"),
            ("chart/templates/a.yaml", "a: {{ .Values.a }}\n{{- if }}"),
            (".github/workflows/ci.yaml", "on: push\n"),
        ],
        &Settings::default(),
    );
    assert_eq!(lines(&report), [""; 0]);
    assert_eq!((report.builds, report.objects), (2, 2));
}

#[test]
fn all_that_is_wrong_is_said_at_once() {
    let broken = "apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: r, namespace: flux-system}
spec: {url: 'https://example.com/r', intervall: 1m, timeout: [1]}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: variable, namespace: flux-system}
spec: {url: 'https://example.com/r', interval: '${interval}'}
";
    let (apps, again, gone) = (
        sync("apps", "./apps"),
        sync("again", "apps/"),
        sync("gone", "./gone"),
    );
    let ingress = "apiVersion: networking.k8s.io/v1beta1\nkind: Ingress\nmetadata: {name: i, namespace: n}\n";
    let files = [
        ("clusters/a/apps.yaml", apps.as_str()),
        ("clusters/a/again.yaml", &again),
        ("clusters/a/gone.yaml", &gone),
        ("apps/a.yaml", broken),
        ("apps/b.yaml", ingress),
        ("alone/kustomization.yaml", "resources: [missing.yaml]\n"),
        ("odd.yaml", "a: [\n"),
    ];
    let found = lines(&checked(&files, &Settings::default()));
    let expected = [
        "error build ./alone: ",
        "error schema apps/a.yaml:1: GitRepository/flux-system/r: spec.interval is missing",
        "error schema apps/a.yaml:1: GitRepository/flux-system/r: spec.intervall is no field of this kind",
        "error schema apps/a.yaml:1: GitRepository/flux-system/r: spec.timeout must be of the type string, and is an array",
        "error applied-twice apps/a.yaml:1: GitRepository/flux-system/r: both Kustomization/flux-system/a",
        "error applied-twice apps/a.yaml:",
        "error applied-twice apps/b.yaml:1: Ingress/n/i: ",
        "warning removed-api apps/b.yaml:1: Ingress/n/i: networking.k8s.io/v1beta1 Ingress is no longer served since Kubernetes 1.22; use networking.k8s.io/v1",
        "warning path clusters/a/gone.yaml:1: Kustomization/flux-system/gone: its path ./gone is not in this repository",
        "warning yaml odd.yaml: ",
    ];
    for expected in expected {
        assert!(
            found.iter().any(|line| line.starts_with(expected)),
            "{expected}: {found:#?}"
        );
    }
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    // The version says whether it matters.
    let at = |minor| Settings {
        kubernetes: Some(minor),
        ..Settings::default()
    };
    assert!(
        !lines(&checked(&files, &at(21)))
            .iter()
            .any(|line| line.contains("removed-api"))
    );
    assert!(
        lines(&checked(&files, &at(22)))
            .iter()
            .any(|line| line.starts_with("error removed-api"))
    );
}

#[test]
fn clusters_have_kustomizations_of_the_same_name() {
    let (staging, production) = (sync("apps", "./apps/staging"), sync("apps", "./apps/production"));
    let (own, other) = (
        sync("flux-system", "./clusters/staging"),
        sync("flux-system", "./clusters/production"),
    );
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: b}\n";
    let files = [
        ("clusters/staging/flux-system/sync.yaml", own.as_str()),
        (
            "clusters/staging/flux-system/kustomization.yaml",
            "resources: [sync.yaml]\n",
        ),
        ("clusters/staging/apps.yaml", &staging),
        ("clusters/production/flux-system/sync.yaml", &other),
        (
            "clusters/production/flux-system/kustomization.yaml",
            "resources: [sync.yaml]\n",
        ),
        ("clusters/production/apps.yaml", &production),
        ("apps/staging/a.yaml", map),
        ("apps/production/a.yaml", map),
        (
            "apps/production/broken/kustomization.yaml",
            "resources: [gone.yaml]\n",
        ),
    ];
    let found = lines(&checked(&files, &Settings::default()));
    // Both clusters apply the ConfigMap, each its own; and what is broken is found by itself and by who builds it.
    assert!(
        found
            .iter()
            .all(|line| line.starts_with("error build ./apps/production")),
        "{found:#?}"
    );
    let by_name = found
        .iter()
        .any(|line| line.contains("Kustomization/flux-system/apps"));
    assert!(by_name, "{found:#?}");
}

#[test]
fn policies_of_the_repository_and_own_rules_hold() {
    let policy = "apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: replicas}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [apps], apiVersions: ['*'], operations: [CREATE], resources: [deployments]}]}
  validations: [{expression: 'object.spec.replicas <= 5', message: at most five}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: replicas}
spec: {policyName: replicas, validationActions: [Deny]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: unbound}
spec: {validations: [{expression: 'false'}]}
";
    let deployment = |replicas: u32| {
        format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web, namespace: n}}\nspec: {{replicas: {replicas}}}\n"
        )
    };
    let rules = Rule::of_config_map(
        "kind: ConfigMap\ndata:\n  has-owner: \"has(object.metadata.labels) && 'owner' in object.metadata.labels || object.kind != 'Deployment'\"\n",
        "rules.yaml",
    );
    let settings = Settings {
        rules: rules.unwrap(),
        ..Settings::default()
    };
    let many = deployment(9);
    let files = [
        ("k/kustomization.yaml", "resources: [p.yaml, d.yaml]\n"),
        ("k/p.yaml", policy),
        ("k/d.yaml", &many),
    ];
    let found = lines(&checked(&files, &settings));
    assert_eq!(found.len(), 2, "{found:#?}");
    assert!(
        found[0].starts_with("error has-owner k/d.yaml:1: Deployment/n/web: it does not fulfil "),
        "{found:#?}"
    );
    assert_eq!(
        found[1],
        "error replicas k/d.yaml:1: Deployment/n/web: at most five"
    );
    assert!(Rule::of_config_map("kind: ConfigMap\n", "r.yaml").is_err());
    assert!(
        Rule::of_config_map("data: {a: 'object.('}\n", "r.yaml")
            .unwrap_err()
            .starts_with("r.yaml: a: ")
    );
}

#[test]
fn definitions_of_the_repository_are_schemas() {
    let definition = "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com}
spec:
  group: example.com
  names: {kind: Thing, plural: things}
  scope: Namespaced
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              required: [size]
              properties:
                size: {type: integer}
                port: {x-kubernetes-int-or-string: true}
                any: {type: object, x-kubernetes-preserve-unknown-fields: true}
";
    let thing = "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a, namespace: n}\nspec: {port: true, any: {x: 1}, colour: red}\n\
                 ---\napiVersion: example.com/v2\nkind: Thing\nmetadata: {name: b, namespace: n}\n";
    let files = [
        ("k/kustomization.yaml", "resources: [c.yaml, t.yaml]\n"),
        ("k/c.yaml", definition),
        ("k/t.yaml", thing),
    ];
    let report = checked(&files, &Settings::default());
    assert_eq!(
        lines(&report),
        [
            "error schema k/t.yaml:1: Thing/n/a: spec.colour is no field of this kind",
            "error schema k/t.yaml:1: Thing/n/a: spec.port must be a number or a text, and is a boolean",
            "error schema k/t.yaml:1: Thing/n/a: spec.size is missing",
            "error schema k/t.yaml:6: Thing/n/b: example.com Thing has no version v2: the newest known is v1",
        ]
    );
    let sarif = report.sarif("1.0.0");
    assert_eq!(sarif["runs"][0]["results"][0]["ruleId"], "schema");
    let place = &sarif["runs"][0]["results"][0]["locations"][0]["physicalLocation"];
    assert_eq!(
        (&place["artifactLocation"]["uri"], &place["region"]["startLine"]),
        (&"k/t.yaml".into(), &1.into())
    );
    let junit = report.junit();
    assert!(junit.contains("tests=\"4\" failures=\"4\""), "{junit}");
    assert!(Report::default().junit().contains("tests=\"1\" failures=\"0\""));
}

#[test]
fn a_folder_of_another_repository_is_a_note() {
    let other = "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: other, namespace: flux-system}\nspec: {url: 'https://example.com/o', interval: 1m}\n";
    let (of_other, apps, typo) = (
        sync("of-other", "./deploy").replace("name: flux-system}", "name: other}"),
        sync("apps", "./apps"),
        sync("typo", "./app"),
    );
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: b}\n";
    let report = checked(
        &[
            ("clusters/a/of-other.yaml", of_other.as_str()),
            ("clusters/a/other.yaml", other),
            ("clusters/a/apps.yaml", &apps),
            ("clusters/a/typo.yaml", &typo),
            ("apps/map.yaml", map),
        ],
        &Settings::default(),
    );
    assert_eq!(
        lines(&report),
        [
            "warning path clusters/a/typo.yaml:1: Kustomization/flux-system/typo: its path ./app is not in this repository; it is not \
             checked, and fails unless GitRepository 'flux-system' is another repository",
            "note path clusters/a/of-other.yaml:1: Kustomization/flux-system/of-other: its path ./deploy is in another repository, \
             GitRepository 'other'; it is not checked",
        ]
    );
}

#[test]
fn clusters_do_not_take_objects_from_each_other() {
    let remote = |name: &str| format!("{}  kubeConfig: {{secretRef: {{name: {name}}}}}\n", block(name));
    let (east, west) = (remote("east"), remote("west"));
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: b}\n";
    let check = |west: &str| {
        let files = [
            ("clusters/hub/east.yaml", east.as_str()),
            ("clusters/hub/west.yaml", west),
            ("apps/map.yaml", map),
        ];
        lines(&checked(&files, &Settings::default()))
    };
    assert_eq!(check(&west), [""; 0]);
    let same = west.replace("{name: west}}", "{name: east}}");
    let found = check(&same);
    assert!(
        found[0].starts_with("error applied-twice apps/map.yaml:1: "),
        "{found:?}"
    );
}

/// A Kustomization of `./apps` whose spec may go on.
fn block(name: &str) -> String {
    format!(
        "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {{name: {name}, namespace: flux-system}}\nspec:\n  \
         interval: 1m\n  path: ./apps\n  prune: true\n  sourceRef: {{kind: GitRepository, name: flux-system}}\n"
    )
}

#[test]
fn a_note_is_made_once_for_an_object_of_several_builds() {
    let other = "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: flux-system, namespace: flux-system}\nspec: {url: 'https://example.com/o', interval: 1m}\n";
    let (tenants, team) = (
        sync("tenants", "./tenants").replace("name: flux-system}", "name: platform}"),
        sync("team", "./deploy"),
    );
    let files = [
        ("clusters/a/tenants.yaml", tenants.as_str()),
        (
            "tenants/kustomization.yaml",
            "resources: [team.yaml, other.yaml]\n",
        ),
        ("tenants/team.yaml", &team),
        ("tenants/other.yaml", other),
    ];
    let found = lines(&checked(&files, &Settings::default()));
    let notes = found
        .iter()
        .filter(|line| line.contains("is in another repository"));
    assert_eq!(notes.count(), 1, "{found:?}");
}
