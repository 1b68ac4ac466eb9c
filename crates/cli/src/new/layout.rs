//! The files of a layout. What they hold is in the folder `layouts` of this crate, with `<CLUSTER>` and others for what differs.

use std::collections::{BTreeMap, BTreeSet};

use clap::ValueEnum;
use url::Url;

/// How clusters and teams are spread over repositories.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Layout {
    /// One repository, with a folder for each cluster and each team
    #[default]
    Monorepo,
    /// A repository of the platform, and one for each team
    RepoPerTeam,
    /// A repository for each cluster
    RepoPerEnvironment,
}

/// What is wanted.
pub(super) struct Wanted<'a> {
    pub(super) layout: Layout,
    pub(super) clusters: &'a [String],
    pub(super) tenants: &'a [String],
    /// Where the repositories of the tenants are.
    pub(super) url: Option<&'a str>,
    /// Of the controllers.
    pub(super) namespace: &'a str,
}

/// Files by path.
type Files = BTreeMap<String, String>;

/// Folder of the repository of the platform, when teams have their own.
const PLATFORM: &str = "platform";

/// A text of `layouts`.
macro_rules! text {
    ($name:literal) => {
        include_str!(concat!("../../layouts/", $name))
    };
}

impl Wanted<'_> {
    /// The files, by their paths.
    pub(super) fn files(&self) -> Result<Files, String> {
        self.check()?;
        let mut files = Files::new();
        match self.layout {
            Layout::Monorepo => {
                self.platform(&mut files, "", self.clusters);
                for tenant in self.tenants {
                    self.team(&mut files, &format!("teams/{tenant}"), tenant, self.clusters);
                }
                files.insert("README.md".to_owned(), self.readme("", self.clusters));
            }
            Layout::RepoPerTeam => {
                self.platform(&mut files, PLATFORM, self.clusters);
                files.insert(
                    format!("{PLATFORM}/README.md"),
                    self.readme(PLATFORM, self.clusters),
                );
                for tenant in self.tenants {
                    self.team(&mut files, &format!("{tenant}/deploy"), tenant, self.clusters);
                    let text = text!("team/README.md").replace("<TENANT>", tenant);
                    files.insert(format!("{tenant}/README.md"), text);
                }
            }
            Layout::RepoPerEnvironment => {
                for cluster in self.clusters {
                    let own = std::slice::from_ref(cluster);
                    self.platform(&mut files, cluster, own);
                    for tenant in self.tenants {
                        self.team(&mut files, &format!("{cluster}/teams/{tenant}"), tenant, own);
                    }
                    files.insert(format!("{cluster}/README.md"), self.readme(cluster, own));
                }
            }
        }
        Ok(files)
    }

    /// What to do next, in words.
    pub(super) fn next(&self, folder: &str) -> String {
        let repository = match self.layout {
            Layout::Monorepo => folder.to_owned(),
            Layout::RepoPerTeam => format!("{folder}/{PLATFORM}"),
            Layout::RepoPerEnvironment => {
                let first = self.clusters.first().map_or("", String::as_str);
                format!("{folder}/{first}")
            }
        };
        format!("Next: read {repository}/README.md, and run `windlass check {repository}`.\n")
    }

    fn check(&self) -> Result<(), String> {
        let mut seen = BTreeSet::new();
        let of_platform = [self.namespace, "default", "base", "web", PLATFORM];
        for (what, names) in [("cluster", self.clusters), ("tenant", self.tenants)] {
            for name in names {
                if !is_name(name) {
                    return Err(format!(
                        "the name {name:?} of a {what} must begin with a lower case letter, consist of those, digits and '-', be at most \
                         63 long, and be no word of YAML"
                    ));
                }
                if !seen.insert(name) {
                    return Err(format!("{name} is given twice"));
                }
                let is_reserved = of_platform.contains(&name.as_str()) || name.starts_with("kube-");
                if is_reserved {
                    return Err(format!("{name} is reserved: give the {what} another name"));
                }
            }
        }
        if !is_name(self.namespace) {
            return Err(format!("{:?} is no name of a namespace", self.namespace));
        }
        if self.clusters.is_empty() {
            return Err("--clusters: name one at least".to_owned());
        }
        let needs_url = self.layout == Layout::RepoPerTeam && !self.tenants.is_empty();
        match self.url.map(Url::parse) {
            None if needs_url => {
                Err("--layout repo-per-team needs --url: the address below which the repositories of the tenants are, such as \
                     https://github.com/org"
                    .to_owned())
            }
            Some(Ok(url)) if is_plain(&url) => Ok(()),
            Some(_) => Err("--url: write it as https://HOST/PATH or ssh://git@HOST/PATH, without a password".to_owned()),
            None => Ok(()),
        }
    }

    /// What the platform team has: for each cluster what it delivers, and what that needs.
    fn platform(&self, files: &mut Files, root: &str, clusters: &[String]) {
        let of_environment = self.layout == Layout::RepoPerEnvironment;
        let mut put = |path: String, text: String| {
            files.insert(joined(root, &path), text);
        };
        for cluster in clusters {
            let set = |text: &str| self.set(text, cluster, "");
            put(
                format!("clusters/{cluster}/infrastructure.yaml"),
                set(text!("cluster/infrastructure.yaml")),
            );
            put(
                format!("clusters/{cluster}/apps.yaml"),
                set(text!("cluster/apps.yaml")),
            );
            if !self.tenants.is_empty() {
                put(
                    format!("clusters/{cluster}/tenants.yaml"),
                    set(text!("cluster/tenants.yaml")),
                );
            }
            // A repository of one cluster has nothing to share.
            let base = if of_environment { cluster.as_str() } else { "base" };
            put(
                format!("infrastructure/{base}/priority-classes.yaml"),
                set(text!("infrastructure/priority-classes.yaml")),
            );
            put(
                format!("infrastructure/{base}/kustomization.yaml"),
                kustomization(&["priority-classes.yaml"]),
            );
            let web = if of_environment {
                format!("apps/{cluster}/web")
            } else {
                "apps/base/web".to_owned()
            };
            put(format!("{web}/namespace.yaml"), set(text!("apps/namespace.yaml")));
            put(
                format!("{web}/deployment.yaml"),
                set(text!("apps/deployment.yaml")),
            );
            put(format!("{web}/service.yaml"), set(text!("apps/service.yaml")));
            put(
                format!("{web}/kustomization.yaml"),
                kustomization(&["namespace.yaml", "deployment.yaml", "service.yaml"]),
            );
            if of_environment {
                put(
                    format!("apps/{cluster}/kustomization.yaml"),
                    kustomization(&["web"]),
                );
            } else {
                put(
                    format!("infrastructure/{cluster}/kustomization.yaml"),
                    kustomization(&["../base"]),
                );
                put(
                    format!("apps/{cluster}/web.yaml"),
                    set(text!("apps/replicas.yaml")),
                );
                let apps = kustomization(&["../base/web"]);
                put(
                    format!("apps/{cluster}/kustomization.yaml"),
                    format!("{apps}patches:\n- path: web.yaml\n"),
                );
            }
            self.tenants_of(cluster, &mut put);
        }
    }

    /// The tenants of a cluster: namespace, account, rights, and what is delivered for them.
    fn tenants_of(&self, cluster: &str, put: &mut impl FnMut(String, String)) {
        if self.tenants.is_empty() {
            return;
        }
        let has_own = self.layout == Layout::RepoPerTeam;
        let of_environment = self.layout == Layout::RepoPerEnvironment;
        let mut resources = Vec::new();
        for tenant in self.tenants {
            let set = |text: &str| self.set(text, cluster, tenant);
            let base = match of_environment {
                true => format!("tenants/{cluster}/{tenant}"),
                false => format!("tenants/base/{tenant}"),
            };
            put(
                format!("{base}/namespace.yaml"),
                set(text!("tenant/namespace.yaml")),
            );
            let account = match has_own {
                true => text!("tenant/account-of-repository.yaml"),
                false => text!("tenant/account-of-folder.yaml"),
            };
            put(format!("{base}/account.yaml"), set(account));
            let mut names = vec!["namespace.yaml", "account.yaml"];
            if has_own {
                put(format!("{base}/source.yaml"), set(text!("tenant/source.yaml")));
                names.push("source.yaml");
            }
            put(format!("{base}/kustomization.yaml"), kustomization(&names));
            let delivery = match has_own {
                true => text!("tenant/delivery-of-repository.yaml"),
                false => text!("tenant/delivery-of-folder.yaml"),
            };
            put(format!("tenants/{cluster}/{tenant}.yaml"), set(delivery));
            resources.push(match of_environment {
                true => tenant.clone(),
                false => format!("../base/{tenant}"),
            });
            resources.push(format!("{tenant}.yaml"));
        }
        let resources: Vec<&str> = resources.iter().map(String::as_str).collect();
        put(
            format!("tenants/{cluster}/kustomization.yaml"),
            kustomization(&resources),
        );
    }

    /// The manifests of a team: what is the same everywhere, and a folder for each cluster.
    fn team(&self, files: &mut Files, root: &str, tenant: &str, clusters: &[String]) {
        let about = self.set(text!("team/about.yaml"), "", tenant);
        if let ([cluster], Layout::RepoPerEnvironment) = (clusters, self.layout) {
            files.insert(format!("{root}/{cluster}/about.yaml"), about);
            files.insert(
                format!("{root}/{cluster}/kustomization.yaml"),
                kustomization(&["about.yaml"]),
            );
            return;
        }
        files.insert(format!("{root}/base/about.yaml"), about);
        files.insert(
            format!("{root}/base/kustomization.yaml"),
            kustomization(&["about.yaml"]),
        );
        for cluster in clusters {
            files.insert(
                format!("{root}/{cluster}/kustomization.yaml"),
                kustomization(&["../base"]),
            );
        }
    }

    fn readme(&self, root: &str, clusters: &[String]) -> String {
        let bootstrap: String = clusters
            .iter()
            .map(|cluster| {
                let tenancy = match self.tenants.is_empty() {
                    true => "",
                    false => " \\\n        --set=tenancy.noCrossNamespaceRefs=true --set=tenancy.defaultServiceAccount=deployer",
                };
                format!("    windlass bootstrap git --url=ADDRESS --path=clusters/{cluster}{tenancy}\n")
            })
            .collect();
        let mut rows = String::new();
        let mut row = |folder: &str, what: &str| rows.push_str(&format!("| `{folder}` | {what} |\n"));
        let names = |folder: &str| match clusters {
            [one] => format!("{folder}/{one}"),
            _ => format!("{folder}/CLUSTER"),
        };
        row(
            &names("clusters"),
            "what this cluster delivers, and in which order; `windlass bootstrap` adds the controllers",
        );
        row(
            &names("infrastructure"),
            "what applications need: definitions, controllers, classes",
        );
        row(&names("apps"), "applications of the platform team");
        if !self.tenants.is_empty() {
            row(&names("tenants"), "namespaces, accounts and rights of the teams");
        }
        if !self.tenants.is_empty() && self.layout != Layout::RepoPerTeam {
            row(
                &names("teams/TEAM"),
                "what a team runs; give the team rights over `teams/TEAM` only, with CODEOWNERS or as your Git server has it",
            );
        }
        if clusters.len() > 1 {
            row("…/base", "what is the same in all clusters");
        }
        let promotion = match (self.layout, self.clusters) {
            (Layout::RepoPerEnvironment, [first, .., last]) if first != last => format!(
                "A change is tried in the repository of {first}, and copied to the next one by pull request, until it is in that of {last}.\n"
            ),
            (_, [first, .., last]) if first != last => format!(
                "A change is tried in a folder `{first}`, and comes to `base` or to the next folder by pull request, until it is in `{last}`.\n"
            ),
            _ => String::new(),
        };
        let tenancy = match self.tenants.is_empty() {
            true => "",
            false => {
                "The two values of `tenancy` keep a team from using sources of other namespaces, and from delivering with more rights than its own. \
                 Without them, a team that may create Kustomizations in its namespace can do everything in the cluster.\n"
            }
        };
        let title = if root.is_empty() { "fleet" } else { root };
        text!("README.md")
            .replace("<TITLE>", title)
            .replace("<ROWS>", rows.trim_end())
            .replace("<BOOTSTRAP>", bootstrap.trim_end())
            .replace("<TENANCY>", tenancy)
            .replace("<PROMOTION>", &promotion)
            .replace("\n\n\n", "\n\n")
            .trim_end()
            .to_owned()
            + "\n"
    }

    fn set(&self, text: &str, cluster: &str, tenant: &str) -> String {
        let url = self.url.and_then(|url| Url::parse(url).ok());
        let url = url
            .map(|url| url.as_str().trim_end_matches('/').to_owned())
            .unwrap_or_default();
        text.replace("<NAMESPACE>", self.namespace)
            .replace("<CLUSTER>", cluster)
            .replace("<TENANT>", tenant)
            .replace("<URL>", &url)
    }
}

fn kustomization(resources: &[&str]) -> String {
    let listed: String = resources.iter().map(|name| format!("- {name}\n")).collect();
    format!("apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n{listed}")
}

fn joined(root: &str, path: &str) -> String {
    match root {
        "" => path.to_owned(),
        root => format!("{root}/{path}"),
    }
}

/// Returns whether an address is one of a Git server, with nothing to hide.
fn is_plain(url: &Url) -> bool {
    let is_bare = url.password().is_none() && url.query().is_none() && url.fragment().is_none();
    matches!(url.scheme(), "https" | "http" | "ssh") && is_bare && url.has_host()
}

/// Returns whether a name can be that of a namespace, and is a text in YAML without quotes.
fn is_name(name: &str) -> bool {
    const OTHERS: [&str; 9] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    name.len() <= 63
        && name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.bytes().all(is_inner)
        && !name.ends_with('-')
        && !OTHERS.contains(&name)
}

#[cfg(test)]
mod tests {
    use kustomize_build::MemoryFs;
    use repository_check::{Level, Settings};

    use super::*;

    const LAYOUTS: [Layout; 3] = [Layout::Monorepo, Layout::RepoPerTeam, Layout::RepoPerEnvironment];

    fn names(all: &[&str]) -> Vec<String> {
        all.iter().map(|name| (*name).to_owned()).collect()
    }

    fn files(layout: Layout, clusters: &[&str], tenants: &[&str]) -> Result<Files, String> {
        let wanted = Wanted {
            layout,
            clusters: &names(clusters),
            tenants: &names(tenants),
            url: Some("https://git.example.com/org/"),
            namespace: "flux-system",
        };
        wanted.files()
    }

    /// The repositories that the files of a layout are: their names, and their files.
    fn repositories(layout: Layout, files: Files) -> BTreeMap<String, Files> {
        let mut all: BTreeMap<String, Files> = BTreeMap::new();
        for (path, text) in files {
            let (repository, path) = match layout {
                Layout::Monorepo => ("", path.as_str()),
                _ => path.split_once('/').unwrap(),
            };
            all.entry(repository.to_owned())
                .or_default()
                .insert(path.to_owned(), text);
        }
        all
    }

    #[test]
    fn each_repository_passes_its_check() {
        for layout in LAYOUTS {
            for (clusters, tenants) in [
                (&["production"][..], &[][..]),
                (&["staging", "production"], &["a", "b"]),
                (&["dev", "staging", "production"], &["a"]),
            ] {
                let files = files(layout, clusters, tenants).unwrap();
                for (name, files) in repositories(layout, files) {
                    let mut tree = MemoryFs::default();
                    for (path, text) in &files {
                        assert!(!text.contains('<'), "{path}: {text}");
                        tree.insert(path.as_str(), text.as_bytes());
                    }
                    let report = repository_check::check(&tree, &Settings::default());
                    let found: Vec<_> = report
                        .findings
                        .iter()
                        .filter(|one| one.level != Level::Note)
                        .collect();
                    assert!(found.is_empty(), "{layout:?} {name}: {found:#?}");
                    assert!(report.builds > 0 && report.objects > 0, "{layout:?} {name}");
                }
            }
        }
    }

    #[test]
    fn every_tenant_is_in_every_cluster() {
        for layout in LAYOUTS {
            let files = files(layout, &["staging", "production"], &["a", "b"]).unwrap();
            let (mut delivered, mut folders) = (0, 0);
            for (path, text) in &files {
                delivered += usize::from(path.contains("tenants/") && text.contains("targetNamespace: "));
                let is_team = path.ends_with("/kustomization.yaml") && !path.contains("/base/");
                folders += usize::from(is_team && (path.contains("teams/") || path.contains("/deploy/")));
            }
            assert_eq!((delivered, folders), (4, 4), "{layout:?}: {:#?}", files.keys());
        }
    }

    #[test]
    fn names_are_those_of_namespaces() {
        for (clusters, tenants, problem) in [
            (&["Staging"][..], &[][..], "\"Staging\""),
            (&["../up"], &[], "\"../up\""),
            (&["null"], &[], "\"null\""),
            (&["a"], &["1e3"], "\"1e3\""),
            (&["a"], &["a"], "a is given twice"),
            (&["a"], &["flux-system"], "flux-system is reserved"),
            (&["a"], &["kube-system"], "kube-system is reserved"),
            (&["base"], &[], "base is reserved"),
            (&["a"], &["web"], "web is reserved"),
            (&[], &[], "--clusters"),
        ] {
            let refused = files(Layout::Monorepo, clusters, tenants).unwrap_err();
            assert!(refused.contains(problem), "{refused}");
        }
    }

    #[test]
    fn repositories_of_teams_need_an_address() {
        let with = |url: Option<&str>| {
            let wanted = Wanted {
                layout: Layout::RepoPerTeam,
                clusters: &names(&["a"]),
                tenants: &names(&["b"]),
                url,
                namespace: "flux-system",
            };
            wanted.files()
        };
        assert!(with(None).unwrap_err().contains("needs --url"));
        for wrong in [
            "nonsense",
            "file:///tmp",
            "https://me:secret@git.example.com/org",
            "https://a/b #c",
        ] {
            let refused = with(Some(wrong)).unwrap_err();
            assert!(
                refused.contains("--url: write it as") && !refused.contains("secret"),
                "{refused}"
            );
        }
        let files = with(Some("ssh://git@git.example.com/org")).unwrap();
        assert!(
            files["platform/tenants/base/b/source.yaml"].contains("url: ssh://git@git.example.com/org/b\n")
        );
    }
}
