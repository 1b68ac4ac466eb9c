//! What Weave's documentation has in its examples, and what a tenant may write.

use serde_json::{Value, json};

use super::*;

fn pipeline(spec: Value) -> Pipeline {
    let pipeline = json!({
        "apiVersion": "pipelines.weave.works/v1alpha1", "kind": "Pipeline",
        "metadata": {"name": "podinfo", "namespace": "flux-system"},
        "spec": spec,
    });
    serde_json::from_value(pipeline).unwrap()
}

fn app() -> Value {
    json!({"apiVersion": "helm.toolkit.fluxcd.io/v2beta1", "kind": "HelmRelease", "name": "podinfo"})
}

fn by_request(kind: &str, secret: &str) -> Value {
    json!({"strategy": {"pull-request": {
        "type": kind, "url": "https://git.example.com/shop/fleet", "baseBranch": "main", "secretRef": {"name": secret},
    }}})
}

fn made(spec: Value) -> Children {
    children(&pipeline(spec), |cluster| {
        (cluster == "prod").then(|| "prod-kubeconfig".to_owned())
    })
    .unwrap()
}

#[test]
fn a_line_of_environments_promotes_by_pull_request() {
    let made = made(json!({
        "appRef": app(),
        "environments": [
            {"name": "dev", "targets": [{"namespace": "podinfo-01"}, {"namespace": "podinfo-02"}]},
            {"name": "test", "targets": [{"namespace": "podinfo-03"}]},
            {"name": "prod", "targets": [{"namespace": "podinfo", "clusterRef": {"kind": "GitopsCluster", "name": "prod"}}],
                "promotion": {"manual": true, "strategy": {"notification": {}}}},
        ],
        "promotion": by_request("github", "promotion-credentials"),
    }));
    let spec = serde_json::to_value(&made.pipeline).unwrap();
    let expected = json!({
        "apps": [{"kind": "HelmRelease", "name": "podinfo"}],
        "carry": ["ChartVersion"],
        "environments": [
            {"name": "dev", "targets": [{"namespace": "podinfo-01"}, {"namespace": "podinfo-02"}]},
            {"name": "test", "targets": [{"namespace": "podinfo-03"}], "changePolicyRef": {"name": "podinfo"},
                "repositoryRef": {"name": "podinfo"}},
            {"name": "prod", "targets": [{"namespace": "podinfo", "kubeConfig": {"secretRef": {"name": "prod-kubeconfig"}}}],
                "changePolicyRef": {"name": "podinfo.prod"}, "approvals": {"required": 1}},
        ],
    });
    assert_eq!(spec, expected);
    let policies = serde_json::to_value(&made.policies).unwrap();
    let secret = json!({"name": "promotion-credentials"});
    let forge =
        json!({"provider": "github", "url": "https://git.example.com/shop/fleet", "secretRef": secret});
    let expected = json!({
        "podinfo": {"type": "PullRequest", "pullRequest": {"forge": forge}},
        "podinfo.prod": {"type": "Event"},
    });
    assert_eq!(policies, expected);
    let repositories = serde_json::to_value(&made.repositories).unwrap();
    let expected = json!({"podinfo": {
        "url": "https://git.example.com/shop/fleet", "interval": "1h0m0s", "ref": {"branch": "main"},
        "secretRef": secret, "suspend": true,
    }});
    assert_eq!(repositories, expected);
}

#[test]
fn without_a_strategy_files_are_left_to_others() {
    let made = made(json!({
        "appRef": app(),
        "environments": [
            {"name": "dev", "targets": [{"namespace": "dev"}]},
            {"name": "prod", "targets": [{"namespace": "prod"}]},
        ],
    }));
    assert_eq!(made.policies["podinfo"].kind, ChangeKind::Event);
    assert!(made.repositories.is_empty());
    assert_eq!(made.pipeline.environments[0].change_policy_ref, None);
}

#[test]
fn what_an_environment_says_replaces_what_the_pipeline_says() {
    let made = made(json!({
        "appRef": app(),
        "environments": [
            {"name": "dev", "targets": [{"namespace": "dev"}], "promotion": {"manual": true, "strategy": {"notification": {}}}},
            {"name": "prod", "targets": [{"namespace": "prod"}], "promotion": by_request("bitbucket-server", "own")},
        ],
        "promotion": {"manual": true, "strategy": {"notification": {}}},
    }));
    let [dev, prod] = &made.pipeline.environments[..] else {
        panic!("{:?}", made.pipeline);
    };
    // Nothing is promoted into the first.
    assert_eq!((&dev.approvals, &dev.change_policy_ref), (&None, &None));
    assert_eq!(prod.approvals, None, "`manual` is replaced, too");
    let policy = &made.policies["podinfo.prod"];
    let forge = &policy.pull_request.as_ref().unwrap().forge;
    assert_eq!(forge.provider, ForgeProvider::BitbucketServer);
    assert_eq!(made.policies.len(), 1);
}

#[test]
fn a_cluster_that_is_not_there_is_a_target_that_cannot_be_read() {
    let made = made(json!({
        "appRef": app(),
        "environments": [{"name": "dev", "targets": [
            {"namespace": "a", "clusterRef": {"kind": "GitopsCluster", "name": "gone"}},
            {"namespace": "a"},
        ]}],
    }));
    let targets: Vec<_> = made.pipeline.environments[0]
        .targets
        .iter()
        .map(Target::called)
        .collect();
    assert_eq!(targets, ["gitopscluster.gone/a", "a"]);
}

#[test]
fn a_cluster_of_another_namespace_is_not_read() {
    let spec = json!({
        "appRef": app(),
        "environments": [{"name": "dev", "targets": [
            {"namespace": "a", "clusterRef": {"kind": "GitopsCluster", "name": "prod", "namespace": "platform"}},
        ]}],
    });
    let refused = children(&pipeline(spec), |_| Some("prod-kubeconfig".to_owned()));
    let problem = "the GitopsCluster 'prod' must be in the namespace of the pipeline";
    assert_eq!(refused, Err(problem.to_owned()));
}

#[test]
fn other_applications_are_refused_by_name() {
    for (version, kind) in [
        ("apps/v1", "Deployment"),
        ("v1", "HelmRelease"),
        ("apps/v1", "Kustomization"),
    ] {
        let spec = json!({"appRef": {"apiVersion": version, "kind": kind, "name": "a"}, "environments": []});
        let problem = children(&pipeline(spec), |_| None).unwrap_err();
        assert!(problem.contains(kind) && problem.contains(version), "{problem}");
    }
}

#[test]
fn no_objects_without_end_are_made() {
    let environments: Vec<_> = (0..51)
        .map(|at| json!({"name": format!("e{at}"), "targets": []}))
        .collect();
    let refused = children(
        &pipeline(json!({"appRef": app(), "environments": environments})),
        |_| None,
    );
    assert_eq!(refused, Err("it has 51 environments, and may have 50".to_owned()));
}

#[test]
fn kubeconfigs_are_where_weave_has_them() {
    let cluster = |spec: Value| -> GitopsCluster {
        serde_json::from_value(json!({"metadata": {"name": "c"}, "spec": spec})).unwrap()
    };
    let cases = [
        (json!({"secretRef": {"name": "s"}}), Some("s")),
        (json!({"capiClusterRef": {"name": "c1"}}), Some("c1-kubeconfig")),
        (
            json!({"capiClusterRef": {"name": "c1"}, "secretRef": {"name": "s"}}),
            Some("s"),
        ),
        (json!({}), None),
    ];
    for (spec, expected) in cases {
        assert_eq!(kubeconfig(&cluster(spec)).as_deref(), expected);
    }
}

#[test]
fn the_status_is_shown_in_weaves_words() {
    let spec = json!({
        "appRef": app(),
        "environments": [
            {"name": "dev", "targets": [{"namespace": "dev"}]},
            {"name": "prod", "targets": [{"namespace": "prod", "clusterRef": {"kind": "GitopsCluster", "name": "prod"}}],
                "promotion": {"manual": true, "strategy": {"notification": {}}}},
        ],
    });
    let pipeline = pipeline(spec);
    let made = children(&pipeline, |_| Some("k".to_owned())).unwrap();
    let status = json!({
        "releases": [
            {"number": 1, "digest": "sha256:1", "values": {"HelmRelease/podinfo: chart": "6.0.0"}},
            {"number": 2, "digest": "sha256:2", "values": {"HelmRelease/podinfo: chart": "6.1.0"}},
        ],
        "environments": [
            {"name": "dev", "release": 2, "passed": [1, 2], "targets": [{"name": "dev", "release": 2, "newest": 2, "ready": true}]},
            {"name": "prod", "release": 1, "passed": [1], "targets": [
                {"name": "k/prod", "release": 1, "newest": 1, "ready": false, "message": "install failed"}]},
        ],
    });
    let child = delivery::Pipeline {
        status: Some(serde_json::from_value(status).unwrap()),
        ..delivery::Pipeline::new("podinfo", made.pipeline)
    };
    let shown = serde_json::to_value(environments(&pipeline, &child, Timestamp::UNIX_EPOCH)).unwrap();
    let app = |cluster: Value| {
        let mut app = app();
        if !cluster.is_null() {
            app["clusterRef"] = cluster;
        }
        app
    };
    let cluster = json!({"kind": "GitopsCluster", "name": "prod"});
    let expected = json!({
        "dev": {"targets": [{"clusterAppRef": app(Value::Null), "ready": true, "revision": "6.1.0"}]},
        "prod": {
            "targets": [{"clusterAppRef": app(cluster), "ready": false, "revision": "6.0.0", "error": "install failed"}],
            "waitingApproval": {"revision": "6.1.0"},
        },
    });
    assert_eq!(shown, expected);
    assert_eq!(pending(child.status.as_ref().unwrap()), None);
}

#[test]
fn what_holds_up_the_line_is_said() {
    let status = |release: Value, ready: bool| -> PipelineStatus {
        let dev = json!({"name": "dev", "release": release, "targets": [{"name": "dev", "ready": ready}]});
        let prod = json!({"name": "prod", "targets": [{"name": "prod", "ready": false}]});
        serde_json::from_value(json!({"environments": [dev, prod]})).unwrap()
    };
    let cases = [
        (
            status(Value::Null, true),
            Some("Waiting for all targets to have the same revision"),
        ),
        (
            status(json!(1), false),
            Some("Waiting for all targets to be ready"),
        ),
        (status(json!(1), true), None),
        (PipelineStatus::default(), None),
    ];
    for (status, expected) in cases {
        assert_eq!(pending(&status), expected);
    }
}
