//! `windlass create --export` beside the real `flux create --export`: the same words, the same bytes. No cluster is asked.

use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use testkit::controller::program;
use testkit::tools::Package;

/// Command lines behind `create`, which both understand.
const LINES: &[&str] = &[
    "source git app --url=https://example.com/app --branch=main",
    "source git app --url=https://example.com/app --tag=v1 --interval=30s --label=a=b,c=d --secret-ref=s",
    "source git app --url=https://example.com/app --tag-semver=>=1.0.0 --recurse-submodules",
    "source git app --url=https://example.com/app --commit=0123 --branch=main --ignore-paths=a,b --fetch-timeout=2m",
    "source git app --url=https://example.com/app --ref-name=refs/pull/1/head --sparse-checkout-paths=x,y",
    "source git app --url=https://example.com/app --branch=main --proxy-secret-ref=p --provider=azure",
    "source oci app --url=oci://example.com/app --tag=v1",
    "source oci app --url=oci://example.com/app --tag-semver=1.x --secret-ref=s --service-account=a",
    "source oci app --url=oci://example.com/app --digest=sha256:0123 --insecure --provider=aws --namespace=apps",
    "source oci app --url=oci://example.com/app --tag=v1 --verify-provider=cosign --verify-secret-ref=v",
    "source oci app --url=oci://example.com/app --tag=v1 --verify-provider=cosign --verify-subject=^s$ --verify-issuer=^i$",
    "source bucket app --bucket-name=b --endpoint=minio.example.com",
    "source bucket app --bucket-name=b --endpoint=s3.amazonaws.com --provider=aws --region=eu-west-1 --secret-ref=s",
    "source helm app --url=https://example.com/charts",
    "source helm app --url=https://example.com/charts --secret-ref=s --pass-credentials --interval=10m",
    "source helm app --url=oci://example.com/charts",
    "source chart app --source=HelmRepository/charts --chart=web --chart-version=1.x",
    "source chart app --source=GitRepository/app --chart=./chart --reconcile-strategy=Revision",
    "kustomization app --source=GitRepository/app --path=./deploy --prune=true --interval=5m",
    "kustomization app --source=OCIRepository/app.apps --path=deploy --wait",
    "kustomization app --source=Bucket/app --depends-on=a,n/b --service-account=s --target-namespace=t",
    "kustomization app --source=app --health-check=Deployment/web.apps --health-check-timeout=3m --retry-interval=1m",
    "kustomization app --source=app --health-check=HelmRelease/web.apps",
    "kustomization app --source=app --decryption-provider=sops --decryption-secret=s --kubeconfig-secret-ref=k",
    "helmrelease app --source=HelmRepository/charts --chart=web --chart-version=1.x",
    "helmrelease app --source=GitRepository/app.apps --chart=./chart --release-name=r --target-namespace=t --interval=10m",
    "helmrelease app --source=HelmRepository/charts --chart=web --crds=CreateReplace --create-target-namespace",
    "helmrelease app --source=HelmRepository/charts --chart=web --values-from=Secret/a,ConfigMap/b --depends-on=n/c",
    "helmrelease app --source=Bucket/charts --chart=web --storage-namespace=s --service-account=a --chart-interval=1h",
    "helmrelease app --chart-ref=OCIRepository/web",
    "helmrelease app --chart-ref=HelmChart/web.apps --kubeconfig-secret-ref=k",
    "tenant team --with-namespace=team-a,team-b",
    "tenant team --with-namespace=team --cluster-role=edit",
    "alert all --provider-ref=slack --event-source=Kustomization/* --event-severity=error",
    "alert some --provider-ref=slack --event-source=Kustomization/app,HelmRelease/web",
    "alert-provider slack --type=slack --channel=general --address=https://hooks.example.com --secret-ref=s",
    "receiver hook --type=github --event=ping,push --resource=GitRepository/app --secret-ref=s",
    "image repository app --image=example.com/app",
    "image repository app --image=example.com/app --secret-ref=s --interval=5m",
    "image policy app --image-ref=app --select-semver=>=1.0.0",
    "image policy app --image-ref=app --select-numeric=asc --filter-regex=^main-(?P<ts>[0-9]+)$ --filter-extract=$ts",
    "image policy app --image-ref=app --select-alpha=desc",
    "image update app --git-repo-ref=app --git-repo-path=./deploy --checkout-branch=main --author-name=bot --author-email=bot@example.com",
    "image update app --git-repo-ref=app --checkout-branch=main --push-branch=updates --author-name=bot --author-email=b@e --commit-template=x",
    "secret helm credentials --username=u --password=p",
    "secret git credentials --url=https://example.com/app --username=u --password=p",
    "secret git credentials --url=https://example.com/app --bearer-token=t",
    "secret receiver hook --type=github --hostname=flux.example.com --token=t",
    "secret receiver hook --type=gcr --hostname=flux.example.com --token=t --email-claim=a@example.com",
    "secret receiver hook --type=gcr --hostname=flux.example.com --token=t --email-claim=a@example.com --audience-claim=b",
    "secret proxy credentials --address=https://proxy.example.com --username=u --password=p",
];

#[test]
fn what_is_created_from_flags_is_what_flux_makes_of_them() {
    Package::Flux.ensure(&mut |line| println!("{line}")).unwrap();
    let flux = Package::Flux.path().unwrap();
    let ours = program("windlass").unwrap();
    let mut differences = Vec::new();
    for line in LINES {
        let both = said(&flux, line).and_then(|theirs| Ok((theirs, said(&ours, line)?)));
        match both {
            // Behind a Secret, flux prints an empty line.
            Ok((theirs, ours)) if theirs.trim_end() == ours.trim_end() => {}
            Ok((theirs, ours)) => differences.push(format!("{line}\nflux:\n{theirs}\nwindlass:\n{ours}")),
            Err(error) => differences.push(format!("{line}: {error:#}")),
        }
    }
    assert!(
        differences.is_empty(),
        "{} differ:\n{}",
        differences.len(),
        differences.join("\n\n")
    );
}

fn said(program: &std::path::Path, line: &str) -> Result<String> {
    let output = Command::new(program)
        .arg("create")
        .args(line.split(' '))
        .arg("--export")
        // Neither needs one.
        .env("KUBECONFIG", "/nowhere")
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("failed to start {}", program.display()))?;
    let problem = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}: {problem}", program.display());
    Ok(String::from_utf8(output.stdout)?)
}
