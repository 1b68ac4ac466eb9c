//! What was rendered is judged before it is recorded: by rules of the cluster that Helm does not know.

use std::collections::BTreeSet;

use futures::future::BoxFuture;
use helm_render::Rendered;
use manifest::Object;

use crate::{Error, ErrorKind, resources};

/// Judges what was rendered.
pub trait Admission: Send + Sync {
    /// Judges objects of a release in a namespace, hooks and tests among them, and may change them. Returns which it changed, by their
    /// places in the list.
    ///
    /// An error ends the action with that text, before anything is recorded or applied.
    fn admit<'a>(
        &'a self,
        namespace: &'a str,
        objects: &'a mut [Object],
    ) -> BoxFuture<'a, Result<BTreeSet<usize>, String>>;
}

/// Has everything judged that was rendered, and writes anew what was changed.
pub(crate) async fn admit(
    admission: &dyn Admission,
    namespace: &str,
    rendered: &mut Rendered,
) -> Result<(), Error> {
    let manifests = rendered
        .manifests
        .iter_mut()
        .map(|manifest| &mut manifest.content);
    let hooks = rendered.hooks.iter_mut().map(|hook| &mut hook.content);
    let mut contents: Vec<&mut String> = manifests.chain(hooks).collect();
    let (mut objects, mut ends) = (Vec::new(), Vec::new());
    for content in &contents {
        objects.extend(resources::objects(content)?);
        ends.push(objects.len());
    }
    let changed = admission.admit(namespace, &mut objects).await;
    let changed = changed.map_err(|reason| Error::new(ErrorKind::Refused, reason))?;
    let mut begin = 0;
    for (content, end) in contents.iter_mut().zip(ends) {
        if changed.range(begin..end).next().is_some() {
            **content = written(&objects[begin..end])?;
        }
        begin = end;
    }
    Ok(())
}

fn written(objects: &[Object]) -> Result<String, Error> {
    let mut texts = Vec::new();
    for object in objects {
        let text = manifest::yaml::write_mapping(object.value());
        texts.push(text.map_err(|error| Error::new(ErrorKind::Build, error.to_string()))?);
    }
    Ok(texts.join("---\n").trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// Refuses what is called `evil`, and labels what is called `web`.
    struct Names;

    impl Admission for Names {
        fn admit<'a>(
            &'a self,
            namespace: &'a str,
            objects: &'a mut [Object],
        ) -> BoxFuture<'a, Result<BTreeSet<usize>, String>> {
            Box::pin(async move {
                let mut changed = BTreeSet::new();
                for (place, object) in objects.iter_mut().enumerate() {
                    match object.name() {
                        "evil" => return Err("evil is refused".to_owned()),
                        "web" => {
                            object.set_label("from", namespace);
                            changed.insert(place);
                        }
                        _ => {}
                    }
                }
                Ok(changed)
            })
        }
    }

    fn object(name: &str) -> String {
        format!("# A comment.\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}")
    }

    fn rendered(manifests: &[String], hook: &str) -> Rendered {
        let chart = helm_chart::File {
            name: "Chart.yaml".to_owned(),
            data: "{apiVersion: v2, name: web, version: 1.0.0}".into(),
        };
        let hook_file = helm_chart::File {
            name: "templates/hook.yaml".to_owned(),
            data: format!(
                "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {hook}\n  annotations:\n    helm.sh/hook: test\n"
            )
            .into_bytes()
            .into(),
        };
        let chart =
            helm_chart::load_files(vec![chart, hook_file], helm_chart::Helm::V4, &mut Vec::new()).unwrap();
        let renderer = helm_render::Renderer::new(chart, helm_chart::Helm::V4);
        let options = helm_render::Options::new(helm_render::Release::new("web", "shop"));
        let mut rendered = renderer.render(&serde_json::Map::new(), &options).unwrap();
        rendered.manifests = manifests
            .iter()
            .map(|content| helm_render::manifest::Manifest {
                path: Arc::from("web/templates/a.yaml"),
                content: content.clone(),
                api_version: "v1".to_owned(),
                kind: "ConfigMap".to_owned(),
                name: String::new(),
            })
            .collect();
        rendered
    }

    #[tokio::test]
    async fn only_what_was_changed_is_written_anew() {
        let mut all = rendered(&[object("other"), object("web")], "web");
        admit(&Names, "shop", &mut all).await.unwrap();
        assert_eq!(all.manifests[0].content, object("other"));
        let labelled = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  labels:\n    from: shop\n  name: web";
        assert_eq!(all.manifests[1].content, labelled);
        assert!(all.hooks[0].content.contains("from: shop"), "{:?}", all.hooks);
    }

    #[tokio::test]
    async fn hooks_are_judged_too() {
        let mut all = rendered(&[object("web")], "evil");
        let refused = admit(&Names, "shop", &mut all).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Refused);
        assert_eq!(refused.to_string(), "evil is refused");
    }
}
