//! Images that are set without a marker.

#![allow(clippy::unwrap_used, reason = "tests only")]

use std::collections::BTreeMap;

use yaml_setters::{Image, Outcome, Setters, Unmarked, Update, update_with};

fn image(setter: &str, name: &str, digest: &str) -> Image {
    Image {
        setter: setter.to_owned(),
        name: name.to_owned(),
        tag: "2.0.0".to_owned(),
        digest: digest.to_owned(),
    }
}

fn unmarked(images: Vec<Image>) -> Unmarked {
    Unmarked {
        containers: true,
        kustomizations: true,
        values: true,
        images,
        ..Unmarked::default()
    }
}

fn set_with(text: &str, images: Vec<Image>) -> Update {
    let setters: Setters = [("ns:other".to_owned(), "h.io/app:3".to_owned())].into();
    update_with(text, "$imagepolicy", &setters, &unmarked(images)).unwrap()
}

fn set(text: &str) -> Option<String> {
    set_with(text, vec![image("ns:app", "h.io:5000/org/app", "")]).text
}

const HELM: &str = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nspec:\n  values:\n";

#[test]
fn containers_are_set_wherever_a_template_for_pods_is() {
    let pod = "kind: Pod\nspec:\n  initContainers:\n    - {name: a, image: 'h.io:5000/org/app:1'}\n  containers:\n    \
               - image: h.io:5000/org/app:1.0   # old\n      name: b\n    - image: h.io:5000/org/other:1\n";
    assert_eq!(
        set(pod).unwrap(),
        pod.replace("org/app:1'", "org/app:2.0.0'")
            .replace("org/app:1.0", "org/app:2.0.0")
    );
    let cron = "spec:\n  jobTemplate:\n    spec:\n      template:\n        spec:\n          containers:\n          - image: h.io:5000/org/app:1\n";
    assert_eq!(set(cron).unwrap(), cron.replace("app:1", "app:2.0.0"));
    for alone in [
        "containers:\n- image: h.io:5000/org/app\n",
        "containers:\n- image: app:1\n",
        "image: h.io:5000/org/app:1\n",
        "containers:\n- image: {a: h.io:5000/org/app:1}\n",
        "containers: h.io:5000/org/app:1\n",
    ] {
        assert_eq!(set(alone), None, "{alone}");
    }
}

#[test]
fn names_of_dockers_registry_are_one() {
    let images = || vec![image("ns:app", "docker.io/library/nginx", "")];
    for name in [
        "nginx",
        "library/nginx",
        "docker.io/nginx",
        "index.docker.io/library/nginx",
    ] {
        let text = format!("containers:\n- image: {name}:1\n");
        let updated = set_with(&text, images()).text.unwrap();
        assert_eq!(updated, format!("containers:\n- image: {name}:2.0.0\n"));
    }
}

#[test]
fn the_images_of_kustomizations_are_set_in_their_parts() {
    let text = "images:\n- name: web\n  newName: h.io:5000/org/app\n  newTag: \"1\"\n- name: h.io:5000/org/app\n  newTag: 1.0\n\
                - name: h.io:5000/org/app\n- newTag: x\n";
    assert_eq!(
        set(text).unwrap(),
        text.replace("newTag: \"1\"", "newTag: \"2.0.0\"")
            .replace("newTag: 1.0", "newTag: 2.0.0")
    );
    let flux = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nspec:\n  images:\n  - name: h.io:5000/org/app\n    newTag: a\n";
    assert_eq!(set(flux).unwrap(), flux.replace("newTag: a", "newTag: 2.0.0"));
    let other = "apiVersion: example.com/v1\nimages:\n- name: h.io:5000/org/app\n  newTag: a\n";
    assert_eq!(set(other), None);
}

#[test]
fn the_values_of_helm_releases_are_set_in_pairs() {
    let values = "    web:\n      image:\n        registry: h.io:5000\n        repository: org/app\n        tag: 1.10\n    image:\n      \
                  repository: h.io:5000/org/app\n      tag: v1\n    sidecar:\n      image: h.io:5000/org/app:1\n    other: {repository: a, tag: b}\n";
    let expected = values
        .replace("1.10", "2.0.0")
        .replace("v1", "2.0.0")
        .replace("app:1\n", "app:2.0.0\n");
    assert_eq!(
        set(&format!("{HELM}{values}")).unwrap(),
        format!("{HELM}{expected}")
    );
    assert_eq!(set(&format!("kind: ConfigMap\nspec:\n  values:\n{values}")), None);
}

#[test]
fn a_digest_follows_its_tag() {
    let images = || vec![image("ns:app", "h.io/app", "sha256:new")];
    let text = "containers:\n- image: h.io/app:1@sha256:old\n- image: h.io/app:1\n";
    let expected = "containers:\n- image: h.io/app:2.0.0@sha256:new\n- image: h.io/app:2.0.0@sha256:new\n";
    assert_eq!(set_with(text, images()).text.unwrap(), expected);
    let pair = "images:\n- name: h.io/app\n  newTag: a\n  digest: sha256:old\n";
    assert_eq!(
        set_with(pair, images()).text.unwrap(),
        "images:\n- name: h.io/app\n  newTag: 2.0.0\n  digest: sha256:new\n"
    );
    for text in [text, pair] {
        let updated = set_with(text, vec![image("ns:app", "h.io/app", "")]);
        let problem = updated.markers.iter().find_map(|marker| match marker.outcome {
            Outcome::Misplaced(problem) => Some((marker.line, problem)),
            _ => None,
        });
        assert!(problem.unwrap().1.contains("digest"), "{text}");
        assert!(
            updated
                .changes
                .iter()
                .all(|change| !change.old.contains("sha256"))
        );
    }
}

#[test]
fn what_is_not_clear_is_said_and_left() {
    let images = vec![image("ns:a", "h.io/app", ""), image("ns:b", "h.io/app", "")];
    let updated = set_with("\ncontainers:\n- image: h.io/app:1\n", images);
    assert_eq!(updated.text, None);
    let [marker] = updated.markers.as_slice() else {
        panic!("{updated:?}");
    };
    assert_eq!(marker.line, 3);
    assert!(matches!(marker.outcome, Outcome::Misplaced(problem) if problem.contains("several policies")));
}

#[test]
fn a_marker_goes_first() {
    let text = "containers:\n- image: h.io/app:1 # {\"$imagepolicy\": \"ns:other\"}\n- image: h.io/app:1\n";
    let updated = set_with(text, vec![image("ns:app", "h.io/app", "")])
        .text
        .unwrap();
    assert_eq!(
        updated,
        "containers:\n- image: h.io/app:3 # {\"$imagepolicy\": \"ns:other\"}\n- image: h.io/app:2.0.0\n"
    );
}

#[test]
fn one_object_is_changed_and_no_other() {
    let release = |name: &str, namespace: &str| {
        format!(
            "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata:\n  name: {name}\n{namespace}spec:\n  chart:\n    spec:\n      chart: web\n      version: 1.0.0 # pinned\n  values:\n    image: {{repository: h.io/app, tag: '1'}}\n"
        )
    };
    let parts = [
        release("shop", "  namespace: prod\n"),
        release("shop", "  namespace: dev\n"),
        release("shop", ""),
        release("shopping", ""),
        "kind: HelmRelease\napiVersion: other/v1\nmetadata: {name: shop}\nspec: {chart: {spec: {version: 1.0.0}}}\n".to_owned(),
    ];
    let text = parts.join("---\n");
    let path = ["spec", "chart", "spec", "version"].map(str::to_owned);
    let unmarked = Unmarked {
        values: true,
        images: vec![image("i", "h.io/app", "")],
        fields: vec![yaml_setters::Field {
            setter: "c".to_owned(),
            path: path.to_vec(),
            value: "1.1.0".to_owned(),
        }],
        object: Some(yaml_setters::Subject {
            group: "helm.toolkit.fluxcd.io".to_owned(),
            kind: "HelmRelease".to_owned(),
            name: "shop".to_owned(),
            namespace: "prod".to_owned(),
        }),
        ..Unmarked::default()
    };
    assert!(unmarked.may_be_in(text.as_bytes()) && !unmarked.may_be_in(b"name: other"));
    let updated = yaml_setters::update_with(&text, "$promotion", &BTreeMap::new(), &unmarked).unwrap();
    let changed = |text: &str| {
        text.replace("1.0.0 # pinned", "1.1.0 # pinned")
            .replace("'1'", "'2.0.0'")
    };
    let expected = [
        changed(&parts[0]),
        parts[1].clone(),
        changed(&parts[2]),
        parts[3].clone(),
        parts[4].clone(),
    ];
    assert_eq!(updated.text.unwrap(), expected.join("---\n"));
}
