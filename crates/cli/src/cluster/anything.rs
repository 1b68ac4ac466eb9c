//! Objects of any kind, by the words that kubectl takes: kinds, plurals, short names, and those with their group.

use delivery_graph::kind;
use futures::future::join_all;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::ListParams;
use kube::core::{ApiResource, ObjectList};
use manifest::ObjectId;
use serde_json::Value;

use super::{Cluster, Failure, is_absent};

/// As many objects are in a page of a list.
const PAGE: u32 = 500;

/// A kind that the cluster serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Served {
    pub(crate) resource: ApiResource,
    pub(crate) namespaced: bool,
    /// Whether its objects can be listed. Some kinds are only questions.
    pub(crate) is_listed: bool,
    /// Other words for it, in small letters.
    words: Vec<String>,
}

/// An object that was named on the command line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Named {
    /// The requested kind, as written.
    pub(crate) kind: String,
    pub(crate) name: String,
}

/// Reads `KIND/NAME` or `KIND NAME`.
pub(crate) fn one_named(words: &[String]) -> Result<Named, Failure> {
    let (kind, name) = match words {
        [word] => word.split_once('/').unwrap_or((word, "")),
        [kind, name] => (kind.as_str(), name.as_str()),
        _ => ("", ""),
    };
    if kind.is_empty() || name.is_empty() || name.contains(['/', '%', '?', '#']) {
        return Err(Failure::Usage(
            "name one object, as KIND/NAME or KIND NAME".to_owned(),
        ));
    }
    Ok(Named {
        kind: kind.to_owned(),
        name: name.to_owned(),
    })
}

impl Cluster {
    /// Reads an object that was named, of whatever kind.
    pub(crate) async fn need_named(&self, named: &Named) -> Result<Value, Failure> {
        let served = self.served(&named.kind).await?;
        let namespace = if served.namespaced {
            self.namespace.clone()
        } else {
            String::new()
        };
        let id = ObjectId {
            group: served.resource.group.clone(),
            kind: served.resource.kind.clone(),
            namespace,
            name: named.name.clone(),
        };
        let found = self.get_any(&id, &served.resource).await;
        let found = found.map_err(|error| Failure::request(format!("get {id}"), error))?;
        found.ok_or_else(|| {
            let hint = match served.namespaced {
                true => "; name its namespace with -n",
                false => "",
            };
            Failure::NotReady(format!("{id} does not exist{hint}"))
        })
    }

    /// Finds the kind that a word names.
    pub(crate) async fn served(&self, word: &str) -> Result<Served, Failure> {
        if let Some(known) = kind::named(word) {
            return Ok(Served {
                resource: known.resource(),
                namespaced: true,
                is_listed: true,
                words: Vec::new(),
            });
        }
        let core = self.in_group("", "v1").await?;
        if let Some(found) = find(&core, word) {
            return Ok(found.clone());
        }
        // A group whose server is away serves nothing that could be shown.
        let (all, _) = self.in_groups().await?;
        find(&all, word)
            .cloned()
            .ok_or_else(|| Failure::Usage(format!("the cluster has no kind {word:?}")))
    }

    /// All kinds, each in the version that its group prefers; and why those of some groups are not known.
    pub(crate) async fn all_served(&self) -> Result<(Vec<Served>, Vec<String>), Failure> {
        let mut all = self.in_group("", "v1").await?;
        let (others, problems) = self.in_groups().await?;
        all.extend(others);
        Ok((all, problems))
    }

    async fn in_groups(&self) -> Result<(Vec<Served>, Vec<String>), Failure> {
        let groups = self.client.list_api_groups().await;
        let groups = groups.map_err(|error| Failure::request("list the kinds of the cluster", error))?;
        let preferred = groups.groups.iter().filter_map(|group| {
            let version = group.preferred_version.as_ref().or(group.versions.first())?;
            Some((group.name.as_str(), version.version.as_str()))
        });
        let listed =
            join_all(preferred.map(async |(group, version)| self.in_group(group, version).await)).await;
        let (mut all, mut problems) = (Vec::new(), Vec::new());
        for group in listed {
            match group {
                Ok(kinds) => all.extend(kinds),
                Err(failure) => problems.push(failure.to_string()),
            }
        }
        Ok((all, problems))
    }

    pub(super) async fn in_group(&self, group: &str, version: &str) -> Result<Vec<Served>, Failure> {
        let api_version = if group.is_empty() {
            version.to_owned()
        } else {
            format!("{group}/{version}")
        };
        let listed = match group {
            "" => self.client.list_core_api_resources(version).await,
            _ => self.client.list_api_group_resources(&api_version).await,
        };
        let listed = match listed {
            Ok(listed) => listed.resources,
            Err(error) if is_absent(&error) => Vec::new(),
            Err(error) => {
                return Err(Failure::request(
                    format!("list the kinds of {api_version}"),
                    error,
                ));
            }
        };
        let whole = listed.into_iter().filter(|one| !one.name.contains('/'));
        Ok(whole
            .map(|one| {
                let mut words = vec![one.singular_name, one.name.clone(), one.kind.to_lowercase()];
                words.extend(one.short_names.unwrap_or_default());
                Served {
                    resource: ApiResource {
                        group: group.to_owned(),
                        version: version.to_owned(),
                        api_version: api_version.clone(),
                        kind: one.kind,
                        plural: one.name,
                    },
                    namespaced: one.namespaced,
                    is_listed: one.verbs.iter().any(|verb| verb == "list"),
                    words,
                }
            })
            .collect())
    }

    /// Lists the objects of a kind of Flux where that is allowed: everywhere, or in the namespace.
    pub(crate) async fn list_where_allowed(
        &self,
        kind: &kind::Kind,
        namespace: &str,
    ) -> Result<Vec<Value>, Failure> {
        let found = match self.list(kind, None, None).await {
            Err(Failure::Forbidden { .. }) => self.list(kind, Some(namespace), None).await,
            found => found,
        };
        Ok(found?.unwrap_or_default())
    }

    /// Lists the metadata of all objects of a kind, in a namespace or in the cluster, and keeps what is made of each: the whole of a large
    /// cluster would not fit into memory.
    pub(crate) async fn list_metadata<T>(
        &self,
        resource: &ApiResource,
        namespace: Option<&str>,
        keep: impl Fn(ObjectMeta) -> T,
    ) -> Result<Vec<T>, Failure> {
        let api = self.api(resource, namespace);
        let read = async |parameters| api.list_metadata(&parameters).await;
        let found = pages(read, |object| Some(keep(object.metadata))).await;
        found.map_err(|error| list_failed(resource, error))
    }

    /// Lists all objects of a kind in the cluster, and keeps what is made of some of them.
    pub(crate) async fn list_everywhere<T>(
        &self,
        resource: &ApiResource,
        keep: impl Fn(Value) -> Option<T>,
    ) -> Result<Vec<T>, Failure> {
        let api = self.api(resource, None);
        let read = async |parameters| api.list(&parameters).await;
        let found = pages(read, |object| {
            keep(serde_json::to_value(object).unwrap_or_default())
        })
        .await;
        found.map_err(|error| list_failed(resource, error))
    }

    /// Lists objects of a kind by labels.
    pub(crate) async fn list_any(
        &self,
        resource: &ApiResource,
        namespace: &str,
        labels: &str,
    ) -> Result<Vec<Value>, Failure> {
        let parameters = ListParams::default().labels(labels);
        let found = self.api(resource, Some(namespace)).list(&parameters).await;
        let found = found.map_err(|error| list_failed(resource, error))?;
        Ok(found
            .into_iter()
            .map(|object| serde_json::to_value(object).unwrap_or_default())
            .collect())
    }
}

/// Reads a list in pages.
async fn pages<K: Clone, T>(
    read: impl AsyncFn(ListParams) -> Result<ObjectList<K>, kube::Error>,
    keep: impl Fn(K) -> Option<T>,
) -> Result<Vec<T>, kube::Error> {
    let mut found = Vec::new();
    let mut parameters = ListParams::default().limit(PAGE);
    loop {
        let page = read(parameters.clone()).await?;
        found.extend(page.items.into_iter().filter_map(&keep));
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => parameters = parameters.continue_token(&token),
            None => return Ok(found),
        }
    }
}

fn list_failed(resource: &ApiResource, error: kube::Error) -> Failure {
    let group = match resource.group.as_str() {
        "" => String::new(),
        group => format!(".{group}"),
    };
    Failure::request(format!("list {}{group}", resource.plural), error)
}

/// Finds the kind that a word names: `deploy`, `Deployment`, `deployments`, `deployments.apps`, `deployment.v1.apps`.
fn find<'s>(served: &'s [Served], word: &str) -> Option<&'s Served> {
    let word = word.to_lowercase();
    let (name, rest) = word
        .split_once('.')
        .map_or((word.as_str(), None), |(name, rest)| (name, Some(rest)));
    served.iter().find(|served| {
        let resource = &served.resource;
        let is_of =
            |rest: &str| rest == resource.group || rest == format!("{}.{}", resource.version, resource.group);
        served.words.iter().any(|known| known == name) && rest.is_none_or(is_of)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(group: &str, version: &str, kind: &str, plural: &str, short: &str) -> Served {
        Served {
            resource: ApiResource {
                group: group.to_owned(),
                version: version.to_owned(),
                api_version: format!("{group}/{version}"),
                kind: kind.to_owned(),
                plural: plural.to_owned(),
            },
            namespaced: true,
            is_listed: true,
            words: vec![kind.to_lowercase(), plural.to_owned(), short.to_owned()],
        }
    }

    #[test]
    fn kinds_are_found_by_kubectls_words() {
        let all = [
            served("apps", "v1", "Deployment", "deployments", "deploy"),
            served("example.com", "v2", "Deployment", "deployments", "d"),
        ];
        for (word, group) in [
            ("deploy", "apps"),
            ("Deployment", "apps"),
            ("deployments.apps", "apps"),
            ("deployment.example.com", "example.com"),
            ("deployments.v2.example.com", "example.com"),
        ] {
            assert_eq!(find(&all, word).unwrap().resource.group, group, "{word}");
        }
        assert_eq!(find(&all, "deployments.v1.example.com"), None);
        assert_eq!(find(&all, "pods"), None);
    }

    #[test]
    fn an_object_is_named_in_one_word_or_two() {
        let named = |words: &str| {
            let words: Vec<_> = words.split(' ').map(str::to_owned).collect();
            one_named(&words).map(|named| format!("{} {}", named.kind, named.name))
        };
        assert_eq!(named("deploy/web").unwrap(), "deploy web");
        assert_eq!(named("deploy web").unwrap(), "deploy web");
        for wrong in ["deploy", "deploy/", "deploy/a/b", "a b c", "/x"] {
            assert!(named(wrong).is_err(), "{wrong}");
        }
    }
}
