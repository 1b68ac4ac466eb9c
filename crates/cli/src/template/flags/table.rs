//! All flags that `helm template` knows, of Helm 3 and of Helm 4.
//!
//! Those without a help text change nothing where there is no cluster and no repository; they are known so that command
//! lines written for Helm are accepted.

use crate::pflag::{Flag, Kind};

const fn flag(name: &'static str, kind: Kind, help: &'static str) -> Flag {
    Flag {
        name,
        short: None,
        kind,
        deprecated: None,
        help,
    }
}

const fn short(letter: char, name: &'static str, kind: Kind, help: &'static str) -> Flag {
    Flag {
        short: Some(letter),
        ..flag(name, kind, help)
    }
}

const fn deprecated(name: &'static str, kind: Kind, instead: &'static str) -> Flag {
    Flag {
        deprecated: Some(instead),
        ..flag(name, kind, "")
    }
}

/// The flags, those that do something here first.
pub(super) static FLAGS: &[Flag] = &[
    short(
        'a',
        "api-versions",
        Kind::List,
        "additional Kubernetes API versions in .Capabilities.APIVersions",
    ),
    flag(
        "debug",
        Kind::Switch,
        "also print rendered templates that are not valid YAML",
    ),
    flag(
        "dry-run",
        Kind::TextOr("unset"),
        "client, or server: ask a cluster for capabilities and `lookup`, and whether it would take the release",
    ),
    flag(
        "dry-run-apply",
        Kind::Switch,
        "with --dry-run=server: send each object as a dry run with strict validation, which Helm does not do",
    ),
    short('g', "generate-name", Kind::Switch, "omit the NAME argument"),
    flag(
        "helm-version",
        Kind::Text,
        "Helm version to render like, v3 or v4 (default v4, or $WINDLASS_HELM_VERSION)",
    ),
    flag(
        "enable-dns",
        Kind::Switch,
        "let templates resolve names with getHostByName",
    ),
    flag(
        "include-crds",
        Kind::Switch,
        "include the chart's CRDs in the output",
    ),
    flag(
        "is-upgrade",
        Kind::Switch,
        "set .Release.IsUpgrade instead of .Release.IsInstall",
    ),
    flag(
        "kube-version",
        Kind::Text,
        "Kubernetes version in .Capabilities.KubeVersion",
    ),
    flag(
        "kube-apiserver",
        Kind::Text,
        "address of the API server, instead of the kubeconfig's",
    ),
    flag("kube-as-group", Kind::Text, "group to impersonate"),
    flag("kube-as-user", Kind::Text, "user to impersonate"),
    flag(
        "kube-ca-file",
        Kind::Text,
        "file with the API server's certificate authorities",
    ),
    flag("kube-context", Kind::Text, "kubeconfig context"),
    flag(
        "kube-insecure-skip-tls-verify",
        Kind::Switch,
        "do not verify the API server's certificate",
    ),
    flag(
        "kube-tls-server-name",
        Kind::Text,
        "name in the API server's certificate",
    ),
    flag("kube-token", Kind::Text, "bearer token for the API server"),
    flag("kubeconfig", Kind::Text, "kubeconfig file"),
    flag("name-template", Kind::Text, "template for the release name"),
    short('n', "namespace", Kind::Text, "namespace of the release"),
    flag("no-hooks", Kind::Switch, "exclude hooks"),
    flag(
        "output-dir",
        Kind::Text,
        "write files to this directory instead of standard output",
    ),
    flag(
        "release-name",
        Kind::Switch,
        "include the release name in the path below --output-dir",
    ),
    flag("set", Kind::Text, "set values: key1=val1,key2=val2"),
    flag("set-file", Kind::Text, "set values from files: key1=path1"),
    flag(
        "set-json",
        Kind::Text,
        "set JSON values: key1=jsonval1, or a whole object",
    ),
    flag("set-literal", Kind::Text, "set a literal string value"),
    flag("set-string", Kind::Text, "set string values: key1=val1,key2=val2"),
    short(
        's',
        "show-only",
        Kind::Text,
        "show only manifests rendered from these templates",
    ),
    flag(
        "skip-schema-validation",
        Kind::Switch,
        "skip validation of values against values.schema.json",
    ),
    flag("skip-tests", Kind::Switch, "exclude tests"),
    short(
        'f',
        "values",
        Kind::List,
        "values files, or `-` for standard input",
    ),
    flag("create-namespace", Kind::Switch, ""),
    flag("force-replace", Kind::Switch, ""),
    flag("force-conflicts", Kind::Switch, ""),
    flag("server-side", Kind::Switch, ""),
    flag("replace", Kind::Switch, ""),
    flag("wait-for-jobs", Kind::Switch, ""),
    flag("devel", Kind::Switch, ""),
    flag("dependency-update", Kind::Switch, ""),
    flag("disable-openapi-validation", Kind::Switch, ""),
    flag("rollback-on-failure", Kind::Switch, ""),
    flag("skip-crds", Kind::Switch, ""),
    flag("take-ownership", Kind::Switch, ""),
    flag("verify", Kind::Switch, ""),
    flag("insecure-skip-tls-verify", Kind::Switch, ""),
    flag("plain-http", Kind::Switch, ""),
    flag("pass-credentials", Kind::Switch, ""),
    flag("description", Kind::Text, ""),
    flag("version", Kind::Text, ""),
    flag("keyring", Kind::Text, ""),
    flag("repo", Kind::Text, ""),
    flag("username", Kind::Text, ""),
    flag("password", Kind::Text, ""),
    flag("cert-file", Kind::Text, ""),
    flag("key-file", Kind::Text, ""),
    flag("ca-file", Kind::Text, ""),
    flag("post-renderer", Kind::Text, ""),
    flag("post-renderer-args", Kind::Text, ""),
    flag("registry-config", Kind::Text, ""),
    flag("repository-config", Kind::Text, ""),
    flag("repository-cache", Kind::Text, ""),
    flag("content-cache", Kind::Text, ""),
    flag("color", Kind::Text, ""),
    flag("colour", Kind::Text, ""),
    flag("timeout", Kind::Duration, ""),
    flag("burst-limit", Kind::Integer, ""),
    flag("qps", Kind::Number, ""),
    short('v', "v", Kind::Integer, ""),
    short('l', "labels", Kind::Pairs, ""),
    flag("wait", Kind::TextOr("watcher"), ""),
    deprecated("force", Kind::Switch, "use --force-replace instead"),
    deprecated("atomic", Kind::Switch, "use --rollback-on-failure instead"),
    deprecated("validate", Kind::Switch, "use '--dry-run=server' instead"),
    deprecated(
        "hide-notes",
        Kind::Switch,
        "this flag has no effect for 'helm template' and will be removed in Helm 5",
    ),
    deprecated(
        "render-subchart-notes",
        Kind::Switch,
        "this flag has no effect for 'helm template' and will be removed in Helm 5",
    ),
];
