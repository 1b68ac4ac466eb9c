//! A team's repository at a real Gitea, delivered from there, with a Preview over its pull requests.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::api::{Api, DynamicObject};
use reqwest::Method;
use serde_json::{Map, Value, json};
use testkit::gitea::User;
use testkit::objects::{self, apply, text};
use testkit::wait_for;

use crate::proposals::Forge;
use crate::world::{DELIVERY, HELM, KUSTOMIZE, PATIENCE, Scene};

const SOURCE: &str = "source.toolkit.fluxcd.io/v1";

/// What a pull request does to a file: its new content, or None to delete it.
pub type File<'a> = (&'a str, Option<&'a str>);

/// The team's place.
pub struct Team {
    pub scene: Scene,
    pub forge: Forge,
}

pub fn config_map(name: &str, data: &[(&str, &str)]) -> String {
    let data: Map<String, Value> = data
        .iter()
        .map(|(key, value)| ((*key).to_owned(), json!(value)))
        .collect();
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}).to_string()
}

impl Team {
    /// Delivers files: a Kustomization for each folder.
    pub async fn new(scene: Scene, files: &[(&str, &str)], folders: &[&str]) -> Result<Self> {
        let forge = Forge::open(&scene, &[], json!({})).await?;
        forge
            .gitea
            .commit(&forge.bot, &forge.repository, "main", files)
            .await?;
        let team = Self { scene, forge };
        team.allow().await?;
        for folder in folders {
            team.kustomization(folder, json!({})).await?;
        }
        for folder in folders {
            team.applied(folder).await?;
        }
        Ok(team)
    }

    pub async fn kustomization(&self, folder: &str, spec: Value) -> Result<()> {
        let namespace = &self.scene.namespace;
        let source = ("GitRepository", "fleet");
        let object = objects::kustomization(namespace, folder, source, &format!("./{folder}"));
        let object = objects::with_spec(
            object,
            json!({"wait": false, "interval": "1h", "targetNamespace": namespace}),
        );
        apply(&self.scene.client, &objects::with_spec(object, spec)).await?;
        Ok(())
    }

    /// Waits until a Kustomization has applied the newest commit.
    pub async fn applied(&self, folder: &str) -> Result<()> {
        let newest = self.forge.newest("main").await?;
        let api = objects::api(
            &self.scene.client,
            KUSTOMIZE,
            "Kustomization",
            &self.scene.namespace,
        );
        let revision = format!("main@sha1:{newest}");
        let has = |object: &DynamicObject| {
            text(object, "/status/lastAppliedRevision") == revision && objects::is_ready(object)
        };
        wait_for(&api, folder, has, PATIENCE).await.map(drop)
    }

    /// The account of the Preview may read and patch what is in the namespace.
    async fn allow(&self) -> Result<()> {
        let namespace = &self.scene.namespace;
        let metadata = json!({"name": "preview", "namespace": namespace});
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata});
        let verbs = ["get", "list", "create", "patch"];
        let role = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": metadata,
            "rules": [
                {"apiGroups": [""], "resources": ["configmaps", "secrets", "services"], "verbs": verbs},
                {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": verbs},
                {"apiGroups": ["kustomize.toolkit.fluxcd.io", "source.toolkit.fluxcd.io", "helm.toolkit.fluxcd.io"],
                    "resources": ["*"], "verbs": verbs},
                {"apiGroups": ["source.toolkit.fluxcd.io"], "resources": ["helmcharts", "ocirepositories"],
                    "verbs": ["watch", "delete"]},
            ],
        });
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": metadata,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "preview"},
            "subjects": [{"kind": "ServiceAccount", "name": "preview", "namespace": namespace}],
        });
        // As the guide has it: the account may ask, and not write.
        let metadata = json!({"name": format!("previews-{namespace}")});
        let policy = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": metadata,
            "spec": {
                "matchConstraints": {"resourceRules": [{
                    "apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE", "DELETE"], "resources": ["*"],
                }]},
                "matchConditions": [{
                    "name": "is-a-preview",
                    "expression": format!("request.userInfo.username == 'system:serviceaccount:{namespace}:preview'"),
                }],
                "validations": [{
                    "expression": "request.dryRun || request.resource.group == 'source.toolkit.fluxcd.io' \
                        && request.resource.resource in ['helmcharts', 'ocirepositories']",
                    "message": "the account of a Preview may ask, and not write",
                }],
            },
        });
        let bound = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding", "metadata": metadata,
            "spec": {"policyName": metadata["name"], "validationActions": ["Deny"]},
        });
        for object in [&account, &role, &binding, &policy, &bound] {
            apply(&self.scene.client, object).await?;
        }
        self.is_only_asking().await
    }

    /// Waits until the API server refuses what the account would write.
    async fn is_only_asking(&self) -> Result<()> {
        let mut config = self.scene.world.control_plane.config().clone();
        let account = format!("system:serviceaccount:{}:preview", self.scene.namespace);
        config.auth_info.impersonate = Some(account);
        let client = kube::Client::try_from(config)?;
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "written", "namespace": self.scene.namespace}});
        let trying = async {
            loop {
                match apply(&client, &map).await {
                    Err(error) if format!("{error:#}").contains("may ask, and not write") => return,
                    _ => tokio::time::sleep(Duration::from_millis(50)).await,
                }
            }
        };
        let refused = tokio::time::timeout(PATIENCE, trying).await;
        refused.context("the admission policy is not in force")?;
        let maps = objects::api(&self.scene.client, "v1", "ConfigMap", &self.scene.namespace);
        maps.delete("written", &Default::default())
            .await
            .map(drop)
            .or_else(|error| match error {
                kube::Error::Api(status) if status.is_not_found() => Ok(()),
                error => Err(error.into()),
            })
    }

    /// A Preview of all pull requests, with more in its spec.
    pub async fn preview(&self, spec: Value) -> Result<()> {
        let preview = json!({
            "apiVersion": DELIVERY, "kind": "Preview",
            "metadata": {"name": "requests", "namespace": self.scene.namespace},
            "spec": {
                "repositories": [{"name": "fleet"}], "interval": "1s", "serviceAccountName": "preview",
                "forge": {"provider": "gitea", "secretRef": {"name": "fleet"}},
            },
        });
        apply(&self.scene.client, &objects::with_spec(preview, spec)).await?;
        Ok(())
    }

    pub fn previews(&self) -> Api<DynamicObject> {
        objects::api(&self.scene.client, DELIVERY, "Preview", &self.scene.namespace)
    }

    /// Waits until the Preview looks so.
    pub async fn wait(&self, predicate: impl Fn(&DynamicObject) -> bool) -> Result<DynamicObject> {
        wait_for(&self.previews(), "requests", predicate, PATIENCE).await
    }

    /// Changes files on a branch, which is made from another one if it is not there.
    pub async fn push(&self, (branch, from): (&str, &str), files: &[File<'_>]) -> Result<String> {
        self.push_as((&self.forge.bot, &self.forge.repository), (branch, from), files)
            .await
    }

    /// The same in another repository, as another user.
    pub async fn push_as(
        &self,
        (user, repository): (&User, &str),
        (branch, from): (&str, &str),
        files: &[File<'_>],
    ) -> Result<String> {
        let gitea = self.forge.gitea;
        let known = gitea
            .call(
                Method::GET,
                &format!("repos/{repository}/branches/{branch}"),
                None,
            )
            .await;
        let base = if known.is_ok() { branch } else { from };
        let mut changes = Vec::new();
        for (path, content) in files {
            let at = format!("repos/{repository}/contents/{path}?ref={base}");
            let found = gitea.call_as(user, Method::GET, &at, None).await.ok();
            let sha = found.and_then(|found| found["sha"].as_str().map(str::to_owned));
            let operation = match (content, &sha) {
                (None, _) => "delete",
                (Some(_), Some(_)) => "update",
                (Some(_), None) => "create",
            };
            let content = content.map(|text| STANDARD.encode(text));
            changes.push(json!({"operation": operation, "path": path, "content": content, "sha": sha}));
        }
        let mut body = json!({"branch": base, "message": "a change", "files": changes});
        if base != branch {
            body["new_branch"] = json!(branch);
        }
        let at = format!("repos/{repository}/contents");
        let answer = gitea.call_as(user, Method::POST, &at, Some(body)).await?;
        let commit = answer["commit"]["sha"].as_str();
        commit.map(str::to_owned).context("Gitea names no commit")
    }

    /// Has a branch begin anew where another one is, as a forced push does.
    pub async fn force(&self, branch: &str, other: &str) -> Result<()> {
        let (folder, address) = (tempfile::tempdir()?, self.address());
        git(folder.path(), &["init", "-q"]).await?;
        git(folder.path(), &["fetch", "-q", &address, other]).await?;
        let to = format!("+FETCH_HEAD:refs/heads/{branch}");
        git(folder.path(), &["push", "-q", &address, &to]).await.map(drop)
    }

    /// Pushes branches with one more file each, all at once. Returns their commits.
    pub async fn push_many(&self, branches: &[(String, String, String)]) -> Result<Vec<String>> {
        let folder = tempfile::tempdir()?;
        let at = folder.path();
        git(at, &["clone", "-q", &self.address(), "."]).await?;
        let mut commits = Vec::new();
        for (branch, path, content) in branches {
            git(at, &["checkout", "-q", "-b", branch, "origin/main"]).await?;
            tokio::fs::write(at.join(path), content).await?;
            git(at, &["add", path]).await?;
            let who = ["-c", "user.name=bot", "-c", "user.email=bot@example.com"];
            git(at, &[&who[..], &["commit", "-q", "-m", "a change"]].concat()).await?;
            commits.push(git(at, &["rev-parse", "HEAD"]).await?);
        }
        git(at, &["push", "-q", "--all", "origin"]).await?;
        Ok(commits)
    }

    /// Where the repository is, with the robot's token.
    fn address(&self) -> String {
        let url = self.forge.gitea.repository_url(&self.forge.bot.name, "fleet");
        let login = format!("://{}:{}@", self.forge.bot.name, self.forge.bot.token);
        url.replacen("://", &login, 1)
    }

    /// Opens a pull request, and returns its number.
    pub async fn open(&self, user: &User, head: &str) -> Result<u64> {
        let body = json!({"head": head, "base": "main", "title": head});
        let Forge {
            gitea, repository, ..
        } = &self.forge;
        gitea.open_pull_request(user, repository, &body).await
    }

    pub async fn edit(&self, number: u64, body: Value) -> Result<()> {
        let at = format!("repos/{}/pulls/{number}", self.forge.repository);
        let edited = self
            .forge
            .gitea
            .call_as(&self.forge.bot, Method::PATCH, &at, Some(body));
        edited.await.map(drop)
    }

    /// The comments of a pull request.
    pub async fn comments(&self, number: u64) -> Result<Vec<String>> {
        let at = format!("repos/{}/issues/{number}/comments", self.forge.repository);
        let found = self.forge.gitea.call(Method::GET, &at, None).await?;
        let found = found.as_array().cloned().unwrap_or_default();
        let texts = found
            .iter()
            .map(|comment| comment["body"].as_str().unwrap_or_default().to_owned());
        Ok(texts.collect())
    }

    /// What the Preview knows of a pull request.
    pub async fn compared(&self, number: u64, head: &str) -> Result<Value> {
        let find = |object: &DynamicObject| {
            let all = objects::field(object, "/status/pullRequests")
                .and_then(Value::as_array)
                .cloned();
            let mut all = all.unwrap_or_default().into_iter();
            all.find(|one| one["number"] == number && one["head"] == head && one["state"] != "Pending")
        };
        let object = self.wait(|object| find(object).is_some()).await;
        match object {
            Ok(object) => find(&object).context("it is there"),
            Err(error) => {
                let now = self.previews().get("requests").await?;
                anyhow::bail!("{error:#}: {}", serde_json::to_string(&now.data["status"])?)
            }
        }
    }

    /// The one comment on a pull request, once that is compared.
    pub async fn comment(&self, number: u64, head: &str) -> Result<String> {
        self.compared(number, head).await?;
        let mut comments = self.comments(number).await?;
        ensure!(comments.len() == 1, "{comments:#?}");
        comments.pop().context("there is one")
    }

    /// The state and the text of the Preview's status of a commit.
    pub async fn status(&self, commit: &str) -> Result<(String, String)> {
        let path = format!("repos/{}/commits/{commit}/status", self.forge.repository);
        let found = self.forge.gitea.call(Method::GET, &path, None).await?;
        let all = found["statuses"].as_array().cloned().unwrap_or_default();
        let name = format!("windlass/preview/{}/requests", self.scene.namespace);
        let own = all.iter().find(|status| status["context"] == *name);
        let own = own.with_context(|| format!("it has no status: {all:?}"))?;
        let text = |key: &str| own[key].as_str().unwrap_or_default().to_owned();
        Ok((text("status"), text("description")))
    }

    /// All objects that deliver something or are delivered, by name, as far as manifests say something about them.
    pub async fn objects(&self) -> Result<BTreeMap<String, BTreeMap<String, String>>> {
        let mut all = BTreeMap::new();
        for (version, kind) in [
            ("v1", "ConfigMap"),
            ("v1", "Service"),
            ("apps/v1", "Deployment"),
            (KUSTOMIZE, "Kustomization"),
            (HELM, "HelmRelease"),
            (SOURCE, "OCIRepository"),
        ] {
            let api = objects::api(&self.scene.client, version, kind, &self.scene.namespace);
            for object in api.list(&Default::default()).await?.items {
                let name = object.metadata.name.clone().unwrap_or_default();
                if name == "kube-root-ca.crt" {
                    continue;
                }
                let mut fields = BTreeMap::new();
                let labels =
                    json!({"labels": object.metadata.labels, "annotations": object.metadata.annotations});
                flatten("metadata", &labels, &mut fields);
                for part in ["spec", "data"] {
                    flatten(part, &object.data[part], &mut fields);
                }
                // The API server writes it.
                fields.retain(|path, _| {
                    !path.contains("deployment.kubernetes.io") && !path.contains("restartedAt")
                });
                all.insert(format!("{kind}/{}/{name}", self.scene.namespace), fields);
            }
        }
        Ok(all)
    }
}

/// Fields as previews name them.
fn flatten(path: &str, value: &Value, fields: &mut BTreeMap<String, String>) {
    match value {
        Value::Null => {}
        Value::Object(map) => {
            for (key, value) in map {
                let key = match key.contains(['.', '/']) {
                    true => format!("{path}[{key}]"),
                    false => format!("{path}.{key}"),
                };
                flatten(&key, value, fields);
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                let name = item.get("name").and_then(Value::as_str);
                let key = name.map_or_else(|| format!("{path}[{at}]"), |name| format!("{path}[name={name}]"));
                flatten(&key, item, fields);
            }
        }
        value => _ = fields.insert(path.to_owned(), value.to_string()),
    }
}

/// Runs Git in a folder; returns what it prints.
async fn git(folder: &std::path::Path, arguments: &[&str]) -> Result<String> {
    let mut command = tokio::process::Command::new("git");
    let done = command.current_dir(folder).args(arguments).output().await?;
    let said = String::from_utf8_lossy(&done.stderr);
    ensure!(done.status.success(), "git {}: {said}", arguments[0]);
    Ok(String::from_utf8(done.stdout)?.trim().to_owned())
}

/// What changed between two looks: each object with a word, and the fields of those that changed.
pub fn happened(
    before: &BTreeMap<String, BTreeMap<String, String>>,
    after: &BTreeMap<String, BTreeMap<String, String>>,
) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (object, now) in after {
        let Some(was) = before.get(object) else {
            found.insert(format!("{object} created"));
            continue;
        };
        let paths: BTreeSet<_> = was.keys().chain(now.keys()).collect();
        for path in paths {
            let shown = |value: Option<&String>| {
                value.map_or_else(|| "(none)".to_owned(), |value| format!("`{value}`"))
            };
            let (old, new) = (was.get(path), now.get(path));
            if old != new {
                found.insert(format!("{object} changed"));
                found.insert(format!("{object}: `{path}`: {} → {}", shown(old), shown(new)));
            }
        }
    }
    for object in before.keys().filter(|object| !after.contains_key(*object)) {
        found.insert(format!("{object} deleted"));
    }
    found
}

/// The same as a comment promises it.
pub fn promised(comment: &str) -> BTreeSet<String> {
    let (mut found, mut object) = (BTreeSet::new(), String::new());
    for line in comment.lines() {
        if let Some(field) = line.strip_prefix("  - ") {
            found.insert(format!("{object}: {field}"));
        } else if let Some((name, word)) = line.strip_prefix("- `").and_then(|rest| rest.split_once("` **")) {
            object = name.to_owned();
            let word = word.split("**").next().unwrap_or_default();
            found.insert(format!("{object} {word}"));
        }
    }
    found
}
