use serde_json::{Value, json};

use super::*;

fn application(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": name, "namespace": "argocd", "finalizers": ["resources-finalizer.argocd.argoproj.io"]},
        "spec": spec})
}

/// Repositories by address, and their files by path.
struct Cloned(BTreeMap<&'static str, BTreeMap<&'static str, &'static str>>);

impl Checkouts for Cloned {
    fn files(&self, url: &str) -> Result<Option<Vec<String>>, String> {
        let files = self.0.get(url);
        Ok(files.map(|files| files.keys().map(|&path| path.to_owned()).collect()))
    }

    fn read(&self, url: &str, path: &str) -> Result<String, String> {
        Ok(self.0[url][path].to_owned())
    }
}

fn import_all(objects: &[Value]) -> Imported {
    import(objects, "flux-system", &Cloned(BTreeMap::new()))
}

fn imported(spec: Value) -> Imported {
    import_all(&[application("web", spec)])
}

fn fields(imported: &Imported) -> Vec<&str> {
    imported.notes.iter().map(|note| note.field.as_str()).collect()
}

#[test]
fn a_folder_in_git_becomes_a_git_repository_and_a_kustomization() {
    let found = imported(json!({
        "project": "default",
        "source": {"repoURL": "https://github.com/org/shop.git", "path": "deploy/web", "targetRevision": "release"},
        "destination": {"server": "https://kubernetes.default.svc", "namespace": "shop"},
        "syncPolicy": {"automated": {"prune": true, "selfHeal": true}, "syncOptions": ["CreateNamespace=true", "ServerSideApply=true"],
            "retry": {"backoff": {"duration": "5"}}},
    }));
    assert_eq!(
        found.sources["gitrepository-shop"],
        json!({"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
            "metadata": {"name": "shop", "namespace": "flux-system"},
            "spec": {"url": "https://github.com/org/shop.git", "interval": "1m", "ref": {"branch": "release"}}})
    );
    assert_eq!(
        found.applications["web"],
        [
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}),
            json!({"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
                "metadata": {"name": "web", "namespace": "flux-system"},
                "spec": {"interval": "10m", "retryInterval": "5s", "path": "./deploy/web", "prune": true, "targetNamespace": "shop",
                    "sourceRef": {"kind": "GitRepository", "name": "shop"}}}),
        ]
    );
    assert_eq!(fields(&found), ["destination.namespace"]);
}

#[test]
fn a_chart_of_a_repository_becomes_a_helm_release() {
    let found = imported(json!({
        "source": {"repoURL": "registry-1.docker.io/bitnamicharts", "chart": "redis", "targetRevision": "19.x", "helm": {
            "releaseName": "cache", "values": "auth:\n  enabled: true\nreplica: {count: 1}\n",
            "parameters": [{"name": "replica.count", "value": "3"}, {"name": "tag", "value": "1", "forceString": true}]}},
        "destination": {"name": "in-cluster", "namespace": "cache"},
        "syncPolicy": {"automated": {"prune": true, "selfHeal": true}, "syncOptions": ["CreateNamespace=true"]},
        "revisionHistoryLimit": 3,
        "ignoreDifferences": [{"group": "apps", "kind": "StatefulSet", "jsonPointers": ["/spec/replicas"]}],
    }));
    assert_eq!(
        found.sources["helmrepository-bitnamicharts"]["spec"],
        json!({"url": "oci://registry-1.docker.io/bitnamicharts", "interval": "1h", "type": "oci"})
    );
    let release = &found.applications["web"][0];
    let crds = json!("CreateReplace");
    assert_eq!(
        release["spec"],
        json!({"interval": "10m", "releaseName": "cache", "targetNamespace": "cache", "storageNamespace": "cache", "maxHistory": 3,
            "chart": {"spec": {"chart": "redis", "version": "19.x", "sourceRef": {"kind": "HelmRepository", "name": "bitnamicharts"}}},
            "values": {"auth": {"enabled": true}, "replica": {"count": 3}, "tag": "1"},
            "install": {"crds": crds, "createNamespace": true}, "upgrade": {"crds": crds},
            "driftDetection": {"mode": "enabled", "ignore": [{"paths": ["/spec/replicas"],
                "target": {"group": "apps", "kind": "StatefulSet"}}]}})
    );
    assert_eq!(fields(&found), ["source.helm"]);
}

#[test]
fn what_kustomize_is_told_becomes_fields_of_the_kustomization() {
    let found = imported(json!({
        "source": {"repoURL": "https://git.example/shop", "path": ".", "targetRevision": "HEAD", "kustomize": {
            "namePrefix": "a-", "images": ["web=reg.example:5000/web:2", "redis@sha256:1", "nginx:1.2"],
            "commonLabels": {"team": "a"}, "replicas": [{"name": "web", "count": "2"}],
            "patches": [{"patch": "- op: remove", "target": {"kind": "Deployment"}}, {"path": "p.yaml"}]}},
        "destination": {"server": "https://10.0.0.1:6443"},
        "syncPolicy": {"automated": {}},
    }));
    let spec = &found.applications["web"][0]["spec"];
    assert_eq!(
        spec["images"],
        json!([{"name": "web", "newName": "reg.example:5000/web", "newTag": "2"}, {"name": "redis", "digest": "sha256:1"},
            {"name": "nginx", "newTag": "1.2"}])
    );
    assert_eq!(
        (&spec["namePrefix"], &spec["commonMetadata"]),
        (&json!("a-"), &json!({"labels": {"team": "a"}}))
    );
    assert_eq!(spec["patches"].as_array().map(Vec::len), Some(2));
    assert_eq!((&spec["path"], &spec["prune"]), (&json!("./"), &json!(false)));
    assert_eq!(
        spec["kubeConfig"],
        json!({"secretRef": {"name": "10-0-0-1-6443-kubeconfig"}})
    );
    let expected = [
        "source.targetRevision",
        "source.kustomize.commonLabels",
        "source.kustomize.patches",
        "source.kustomize.replicas",
        "destination",
        "syncPolicy.automated.selfHeal",
    ];
    assert_eq!(fields(&found), expected);
}

#[test]
fn an_application_that_is_synced_by_hand_is_suspended_and_keeps_its_objects() {
    let mut one = application(
        "web",
        json!({"source": {"repoURL": "https://git.example/shop", "path": "a", "targetRevision": "v1.2.3"}}),
    );
    one["metadata"]["finalizers"] = Value::Null;
    one["metadata"]["annotations"] = json!({"argocd.argoproj.io/sync-wave": "2"});
    let found = import_all(&[one]);
    let spec = &found.applications["web"][0]["spec"];
    assert_eq!((&spec["suspend"], &spec["prune"]), (&json!(true), &json!(false)));
    assert_eq!(spec["deletionPolicy"], "Orphan");
    assert_eq!(
        found.sources["gitrepository-shop"]["spec"]["ref"],
        json!({"tag": "v1.2.3"})
    );
    assert_eq!(
        fields(&found),
        ["source.targetRevision", "syncPolicy", "metadata.annotations"]
    );
}

#[test]
fn applications_share_sources_and_revisions_have_their_own() {
    let git = |name: &str, revision: &str| {
        application(
            name,
            json!({"source": {"repoURL": "https://git.example/shop", "path": name, "targetRevision": revision}}),
        )
    };
    let found = import_all(&[git("a", "main"), git("b", "main"), git("c", "next")]);
    assert_eq!(
        found.sources.keys().collect::<Vec<_>>(),
        ["gitrepository-shop", "gitrepository-shop-next"]
    );
    assert_eq!(
        found.applications["c"][0]["spec"]["sourceRef"]["name"],
        "shop-next"
    );
}

#[test]
fn several_sources_become_several_objects_and_values_of_others_are_noted() {
    let found = imported(json!({"sources": [
        {"repoURL": "https://charts.example", "chart": "redis", "targetRevision": "1.0.0",
            "helm": {"valueFiles": ["$values/redis.yaml", "extra.yaml"]}},
        {"repoURL": "https://git.example/values", "targetRevision": "main", "ref": "values"},
        {"repoURL": "https://git.example/shop", "targetRevision": "main", "path": "deploy/extras"},
    ], "syncPolicy": {"automated": {"selfHeal": true}}}));
    let names: Vec<_> = found.applications["web"]
        .iter()
        .map(|one| &one["metadata"]["name"])
        .collect();
    assert_eq!(names, ["web-redis", "web-extras"]);
    let chart = &found.applications["web"][0]["spec"]["chart"]["spec"];
    assert_eq!(chart["valuesFiles"], json!(["values.yaml", "extra.yaml"]));
    assert!(
        found
            .notes
            .iter()
            .any(|note| note.text.starts_with("$values/redis.yaml is in another source"))
    );
    // Nothing is built of a source that only has values.
    assert!(!found.sources.contains_key("gitrepository-values"));
}

#[test]
fn lists_and_matrices_of_application_sets_are_expanded() {
    let set = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "metadata": {"name": "all"}, "spec": {
        "generators": [
            {"matrix": {"generators": [
                {"list": {"elements": [{"env": "dev"}, {"env": "prod", "values": {"replicas": 3}}]}},
                {"list": {"elements": [{"app": "web"}, {"app": "api"}]}},
            ]}},
            {"git": {"repoURL": "https://git.example/shop", "directories": [{"path": "apps/*"}]}},
        ],
        "template": {"metadata": {"name": "{{app}}-{{ env }}"}, "spec": {
            "source": {"repoURL": "https://git.example/shop", "path": "{{app}}/{{env}}", "targetRevision": "main"},
            "syncPolicy": {"automated": {"selfHeal": true}}}}}});
    let found = import_all(&[set]);
    let names: Vec<_> = found.applications.keys().collect();
    assert_eq!(names, ["api-dev", "api-prod", "web-dev", "web-prod"]);
    assert_eq!(found.applications["api-prod"][0]["spec"]["path"], "./api/prod");
    assert_eq!(found.notes.len(), 1);
    assert!(
        found.notes[0]
            .text
            .starts_with("the generator git needs what is in https://git.example/shop: clone it"),
        "{:?}",
        found.notes
    );
}

#[test]
fn a_matrix_does_not_grow_without_end() {
    let elements: Vec<Value> = (0..200).map(|number| json!({"n": number.to_string()})).collect();
    let list = json!({"list": {"elements": elements}});
    let set = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "metadata": {"name": "all"}, "spec": {
        "generators": [{"matrix": {"generators": [list, list]}}], "template": {"metadata": {"name": "a"}}}});
    let found = import_all(&[set]);
    assert!(found.applications.is_empty());
    assert!(
        found.notes[0].text.contains("more than 1000"),
        "{:?}",
        found.notes
    );
}

#[test]
fn applications_of_the_same_name_in_two_namespaces_do_not_mix() {
    let source = json!({"source": {"repoURL": "https://git.example/shop", "path": "a", "targetRevision": "main"},
        "syncPolicy": {"automated": {"selfHeal": true}}});
    let mut other = application("web", source.clone());
    other["metadata"]["namespace"] = "team".into();
    let found = import_all(&[application("web", source), other]);
    assert_eq!(found.applications.keys().collect::<Vec<_>>(), ["web", "web-team"]);
    assert_eq!(found.applications["web-team"][0]["metadata"]["name"], "web-team");
    assert_eq!(fields(&found), ["metadata.name"]);
}

/// Whoever may write an Application of a restricted project must not get the rights of the controller.
#[test]
fn an_application_of_a_project_is_applied_as_an_account_of_its_own() {
    let source = json!({"repoURL": "https://git.example/shop", "path": "a", "targetRevision": "main"});
    let policy = json!({"automated": {"selfHeal": true}});
    let of = |project: &str, source: &Value| {
        imported(json!({"project": project, "source": source, "syncPolicy": policy}))
    };
    let found = of("team-a", &source);
    assert_eq!(
        found.applications["web"][0]["spec"]["serviceAccountName"],
        "team-a"
    );
    assert_eq!(fields(&found), ["project"]);
    let chart = json!({"repoURL": "https://charts.example", "chart": "redis"});
    let found = of("team-a", &chart);
    assert_eq!(
        found.applications["web"][0]["spec"]["serviceAccountName"],
        "team-a"
    );
    let found = of("default", &source);
    assert_eq!(
        found.applications["web"][0]["spec"]["serviceAccountName"],
        Value::Null
    );
}

#[test]
fn credentials_in_an_address_do_not_get_into_files() {
    let of = |address: &str| {
        imported(
            json!({"source": {"repoURL": address, "path": "a", "targetRevision": "main"},
            "syncPolicy": {"automated": {"selfHeal": true}}}),
        )
    };
    let found = of("https://ana:hunter2@git.example:8443/org/shop.git");
    assert_eq!(
        found.sources["gitrepository-shop"]["spec"]["url"],
        "https://git.example:8443/org/shop.git"
    );
    assert_eq!(fields(&found), ["source.repoURL"]);
    assert!(!format!("{found:?}").contains("hunter2"));
    let found = of("ssh://git@git.example/org/shop.git");
    assert_eq!(
        found.sources["gitrepository-shop"]["spec"]["url"],
        "ssh://git@git.example/org/shop.git"
    );
    assert!(found.notes.is_empty());
}

/// The names of the Applications that a set makes, with a field of each.
fn made(spec: Value, more: &[Value]) -> (Vec<(String, String)>, Vec<String>) {
    let shop = BTreeMap::from([
        ("apps/web/kustomization.yaml", ""),
        ("apps/Api_v2/kustomization.yaml", ""),
        ("apps/Api_v2/base/kustomization.yaml", ""),
        ("apps/old/kustomization.yaml", ""),
        (".github/x/a.yaml", ""),
        (
            "clusters/eu/prod/config.json",
            r#"{"cluster": {"name": "eu-1", "nodes": 3}, "on": true}"#,
        ),
        (
            "clusters/us/config.json",
            r#"[{"cluster": {"name": "us-1"}}, {"cluster": {"name": "us-2"}}]"#,
        ),
    ]);
    let checkouts = Cloned(BTreeMap::from([("https://git.example/shop", shop)]));
    let set = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "metadata": {"name": "all"}, "spec": spec});
    let objects: Vec<_> = more.iter().cloned().chain([set.clone()]).collect();
    let made = application_set::applications(&set, &objects, &checkouts);
    let names = made.applications.iter().map(|one| {
        let (name, path) = (text(one, "/metadata/name"), text(one, "/spec/source/path"));
        (name.to_owned(), path.to_owned())
    });
    (
        names.collect(),
        made.notes.into_iter().map(|note| note.text).collect(),
    )
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = |(name, path): &(&str, &str)| ((*name).to_owned(), (*path).to_owned());
    expected.iter().map(owned).collect()
}

fn template(name: &str, path: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"source": {"path": path}}})
}

#[test]
fn folders_and_files_of_a_repository_make_applications() {
    let url = "https://git.example/shop";
    let folders = json!({"git": {"repoURL": url, "directories": [{"path": "apps/*"}, {"path": "apps/old", "exclude": true}],
        "values": {"team": "{{path.basename}}-team"}}});
    let plain = made(
        json!({"generators": [folders], "template": template("{{path.basenameNormalized}}-{{values.team}}", "{{path}}/{{path[1]}}")}),
        &[],
    );
    let expected = [
        ("api-v2-Api_v2-team", "apps/Api_v2/Api_v2"),
        ("web-web-team", "apps/web/web"),
    ];
    assert_eq!(plain, (pairs(&expected), vec![]));
    // The same as Go templates, where values are filled in with them, too.
    let folders = json!({"git": {"repoURL": url, "directories": [{"path": "apps/*"}, {"path": "apps/old", "exclude": true}],
        "values": {"team": "{{.path.basename}}-team"}}});
    let go = made(
        json!({"goTemplate": true, "goTemplateOptions": ["missingkey=error"], "generators": [folders],
            "template": template("{{.path.basenameNormalized}}-{{.values.team}}", "{{.path.path}}/{{index .path.segments 1}}")}),
        &[],
    );
    assert_eq!(go, plain);
    let files = json!({"git": {"repoURL": url, "files": [{"path": "clusters/*/config.json"}]}});
    let found = made(
        json!({"generators": [files], "template": template("{{cluster.name}}-{{path.filename}}", "{{path}} {{cluster.nodes}} {{on}}")}),
        &[],
    );
    let expected = [
        ("eu-1-config.json", "clusters/eu/prod 3 true"),
        ("us-1-config.json", "clusters/us {{cluster.nodes}} {{on}}"),
        ("us-2-config.json", "clusters/us {{cluster.nodes}} {{on}}"),
    ];
    assert_eq!(found.0, pairs(&expected));
    assert_eq!(
        found.1,
        ["some parameters are not known: look for what is still in braces"]
    );
    let files =
        json!({"git": {"repoURL": url, "files": [{"path": "clusters/us"}], "pathParamPrefix": "repo"}});
    let spec = json!({"goTemplate": true, "generators": [files],
        "template": template("{{.cluster.name | upper | slugify}}", "{{.repo.path.path}}{{if .on}}/on{{end}}")});
    assert_eq!(
        made(spec, &[]).0,
        pairs(&[("us-1", "clusters/us"), ("us-2", "clusters/us")])
    );
    let strange = json!({"git": {"repoURL": url, "directories": [{"path": "apps/[ab]*"}]}});
    let (none, notes) = made(
        json!({"generators": [strange], "template": template("a", "b")}),
        &[],
    );
    assert!(
        none.is_empty()
            && notes[0].starts_with("the pattern apps/[ab]* of a generator git is not understood")
    );
}

#[test]
fn clusters_are_known_by_their_secrets() {
    let cluster = |name: &str, env: &str| {
        json!({"apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": name, "labels": {"argocd.argoproj.io/secret-type": "cluster", "env": env}},
            "stringData": {"name": name, "server": format!("https://{name}.example"), "config": "{\"bearerToken\": \"hunter2\"}"}})
    };
    let mut stored = cluster("c", "prod");
    stored["stringData"] = Value::Null;
    stored["data"] = json!({"name": "QyBj", "server": "aHR0cHM6Ly9jLmV4YW1wbGU="});
    let more = [cluster("a", "prod"), cluster("b", "dev"), stored];
    let spec = |generator: Value| json!({"generators": [generator], "template": template("{{nameNormalized}}", "{{server}} {{metadata.labels.env}}")});
    let (found, notes) = made(
        spec(json!({"clusters": {"selector": {"matchLabels": {"env": "prod"}}}})),
        &more,
    );
    assert_eq!(
        found,
        pairs(&[("a", "https://a.example prod"), ("c-c", "https://c.example prod")])
    );
    assert!(notes.is_empty(), "{notes:?}");
    let (found, _) = made(spec(json!({"clusters": {}})), &more);
    assert_eq!(
        found[3],
        (
            "in-cluster".to_owned(),
            "https://kubernetes.default.svc {{metadata.labels.env}}".to_owned()
        )
    );
    let expressions =
        json!([{"key": "env", "operator": "NotIn", "values": ["dev"]}, {"key": "env", "operator": "Exists"}]);
    let (found, _) = made(
        spec(json!({"clusters": {"selector": {"matchExpressions": expressions}}})),
        &more,
    );
    assert_eq!(found.len(), 2);
    let (found, notes) = made(
        spec(json!({"clusters": {"selector": {"matchLabels": {"env": "prod"}}}})),
        &[],
    );
    assert!(
        found.is_empty() && notes[0].starts_with("the generator clusters finds no cluster"),
        "{notes:?}"
    );
}

#[test]
fn matrices_know_what_they_have_made_and_merges_what_is_the_same() {
    let url = "https://git.example/shop";
    let spec = json!({"goTemplate": true, "generators": [{"matrix": {"generators": [
        {"list": {"elements": [{"region": "eu/prod"}, {"region": "us"}]}},
        {"git": {"repoURL": url, "files": [{"path": "clusters/{{.region}}/config.json"}], "values": {"of": "{{.region}}:{{.path.basename}}"}}},
    ]}}], "goTemplateOptions": ["missingkey=error"], "template": template("{{.cluster.name}}", "{{.values.of}}")});
    assert_eq!(
        made(spec, &[]).0,
        pairs(&[("eu-1", "eu/prod:prod"), ("us-1", "us:us"), ("us-2", "us:us")])
    );
    let spec = json!({"goTemplate": true, "generators": [{"matrix": {"generators": [
        {"list": {"elements": [{"apps": ["web", "api"]}]}},
        {"list": {"elementsYaml": "{{ range .apps }}\n- app: {{ . }}\n{{ end }}"}},
    ]}}], "template": template("{{.app}}", "")});
    assert_eq!(made(spec, &[]).0, pairs(&[("web", ""), ("api", "")]));
    let spec = json!({"generators": [{"merge": {"mergeKeys": ["app"], "generators": [
        {"list": {"elements": [{"app": "web", "path": "a"}, {"app": "api", "path": "a"}]}},
        {"list": {"elements": [{"app": "api", "path": "b"}, {"app": "other", "path": "c"}]}},
    ]}, "selector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "api"]}]}}],
        "template": template("{{app}}", "{{path}}")});
    assert_eq!(made(spec, &[]).0, pairs(&[("web", "a"), ("api", "b")]));
}

#[test]
fn a_patch_of_the_template_is_merged_and_a_mistake_leaves_out_one_application() {
    let spec = json!({"goTemplate": true, "goTemplateOptions": ["missingkey=error"],
        "generators": [{"list": {"elements": [{"app": "web", "prune": true}, {"app": "api"}]}}],
        "template": template("{{.app}}", "a"),
        "templatePatch": "{{ if .prune }}\nspec: {source: {path: b}}\n{{ end }}"});
    let (found, notes) = made(spec, &[]);
    assert_eq!(found, pairs(&[("web", "b")]));
    let spec = json!({"generators": [{"list": {"elements": [{"app": "web"}], "template": template("other", "c")}}],
        "template": template("{{app}}", "a")});
    let (found, own) = made(spec, &[]);
    assert_eq!(found, pairs(&[("web", "a")]));
    assert!(
        own[0].starts_with("the template of a generator is left out"),
        "{own:?}"
    );
    assert!(
        notes[0].starts_with("an Application is left out: ") && notes[0].contains("prune"),
        "{notes:?}"
    );
}
