//! Trees that are made for the measurement: one build of many objects, and one small build in a large repository.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::Result;

use super::cases::Case;

/// Half Deployments, half ConfigMaps that these name, one file each; with everything that touches all of them:
/// namespace, prefix, labels, an image.
pub fn objects(folder: &Path, count: usize) -> Result<Case> {
    fs::create_dir_all(folder)?;
    let mut kustomization = "namespace: bench\nnamePrefix: prod-\nlabels:\n- pairs: {team: bench}\n  \
                             includeSelectors: true\nimages:\n- {name: registry.example.com/app, newTag: '2.0'}\n\
                             resources:\n"
        .to_owned();
    for number in 0..count / 2 {
        fs::write(
            folder.join(format!("deployment-{number}.yaml")),
            deployment(number),
        )?;
        fs::write(folder.join(format!("config-{number}.yaml")), config_map(number))?;
        writeln!(
            kustomization,
            "- deployment-{number}.yaml\n- config-{number}.yaml"
        )?;
    }
    fs::write(folder.join("kustomization.yaml"), kustomization)?;
    Ok(case(folder, ""))
}

/// A repository of many applications with a base and two overlays, of which one overlay is built.
pub fn repository(folder: &Path, files: usize) -> Result<Case> {
    const FILES_OF_ONE: usize = 50;
    for number in 0..files / FILES_OF_ONE {
        let application = folder.join(format!("apps/app-{number}"));
        let base = application.join("base");
        fs::create_dir_all(&base)?;
        let mut kustomization = "resources:\n".to_owned();
        // A kustomization, and one for each overlay, are the rest.
        for object in 0..FILES_OF_ONE - 3 {
            let (name, text) = match object {
                0 => ("deployment.yaml".to_owned(), deployment(number)),
                object => (format!("config-{object}.yaml"), config_map(object)),
            };
            fs::write(base.join(&name), text)?;
            writeln!(kustomization, "- {name}")?;
        }
        fs::write(base.join("kustomization.yaml"), kustomization)?;
        for overlay in ["staging", "production"] {
            let folder = application.join(overlay);
            fs::create_dir_all(&folder)?;
            let text = format!("namespace: {overlay}\nresources:\n- ../base\n");
            fs::write(folder.join("kustomization.yaml"), text)?;
        }
    }
    Ok(case(folder, "apps/app-1/production"))
}

fn case(folder: &Path, path: &str) -> Case {
    Case {
        tree: folder.to_owned(),
        path: path.to_owned(),
        flags: Vec::new(),
    }
}

fn deployment(number: usize) -> String {
    format!(
        "apiVersion: apps/v1
kind: Deployment
metadata:
  name: app-{number}
  labels:
    app: app-{number}
spec:
  replicas: 2
  selector:
    matchLabels:
      app: app-{number}
  template:
    metadata:
      labels:
        app: app-{number}
    spec:
      containers:
      - name: app
        image: registry.example.com/app:1.0
        ports:
        - containerPort: 8080
          name: http
        envFrom:
        - configMapRef:
            name: config-{number}
        resources:
          limits:
            cpu: 500m
            memory: 256Mi
        volumeMounts:
        - name: config
          mountPath: /etc/app
      volumes:
      - name: config
        configMap:
          name: config-{number}
"
    )
}

fn config_map(number: usize) -> String {
    format!(
        "apiVersion: v1
kind: ConfigMap
metadata:
  name: config-{number}
data:
  number: '{number}'
  settings.yaml: |
    name: app-{number}
    level: info
"
    )
}
