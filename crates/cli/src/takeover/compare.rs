//! Compares two snapshots of a cluster. Pure.

use std::collections::BTreeSet;

use manifest::ObjectId;

use super::snapshot::Snapshot;

/// Differences that are expected.
#[derive(Clone, Debug, Default)]
pub(crate) struct Expected {
    /// May be other objects, or gone: ids as inventories have them.
    pub(crate) remade: BTreeSet<String>,
    /// May be changed.
    pub(crate) changed: BTreeSet<String>,
}

impl Expected {
    pub(crate) fn ids<'a>(ids: impl IntoIterator<Item = &'a ObjectId>) -> BTreeSet<String> {
        ids.into_iter().map(ObjectId::inventory_id).collect()
    }
}

/// Says what is not as it was, a line for each object, those first that were re-created.
pub(crate) fn differences(before: &Snapshot, after: &Snapshot, expected: &Expected) -> Vec<String> {
    let mut found: Vec<(u8, String)> = Vec::new();
    let mut look = |id: &str, was: (&str, i64), is: Option<(&str, i64)>| {
        let named = shown(id);
        let difference = match is {
            _ if expected.remade.contains(id) => None,
            None => Some((1, format!("{named} is gone"))),
            Some((uid, _)) if uid != was.0 => Some((0, format!("{named} was made anew"))),
            _ if expected.changed.contains(id) => None,
            Some((_, generation)) if generation != was.1 => Some((
                2,
                format!("{named} was changed: generation {} is {generation}", was.1),
            )),
            Some(_) => None,
        };
        found.extend(difference);
    };
    for (id, was) in &before.objects {
        let is = after.objects.get(id);
        let is = is.map(|is| (is.uid.as_str(), is.generation));
        look(id, (&was.uid, was.generation), is);
    }
    // What one object of Flux has delivered may be another one: it was looked at already.
    for (id, was) in before
        .inventory
        .iter()
        .filter(|(id, _)| !before.objects.contains_key(*id))
    {
        let is = after.inventory.get(id);
        let is = is.map(|is| (is.uid.as_str(), is.generation));
        look(id, (&was.uid, was.generation), is);
    }
    for (name, was) in &before.releases {
        let is = after.releases.get(name).copied().unwrap_or_default();
        if is != *was {
            found.push((1, format!("Helm release {name} has revision {is}; it had {was}")));
        }
    }
    found.sort();
    found.into_iter().map(|(_, line)| line).collect()
}

fn shown(id: &str) -> String {
    ObjectId::parse_inventory_id(id).map_or_else(|_| id.to_owned(), |id| id.to_string())
}

#[cfg(test)]
mod tests {
    use super::super::snapshot::{Declared, Delivered};
    use super::*;

    fn snapshot(objects: &[(&str, &str, i64)], inventory: &[(&str, &str, i64)], revision: i64) -> Snapshot {
        let declared = |(id, uid, generation): &(&str, &str, i64)| {
            let declared = Declared {
                uid: (*uid).to_owned(),
                generation: *generation,
                ready: true,
                suspended: false,
            };
            ((*id).to_owned(), declared)
        };
        let delivered = |(id, uid, generation): &(&str, &str, i64)| {
            let delivered = Delivered {
                uid: (*uid).to_owned(),
                generation: *generation,
            };
            ((*id).to_owned(), delivered)
        };
        Snapshot {
            objects: objects.iter().map(declared).collect(),
            inventory: inventory.iter().map(delivered).collect(),
            releases: [("n/web".to_owned(), revision)].into(),
            elsewhere: 0,
        }
    }

    const APP: &str = "n_app_kustomize.toolkit.fluxcd.io_Kustomization";

    #[test]
    fn what_was_made_anew_changed_or_released_is_named_and_the_rest_is_not() {
        let before = snapshot(
            &[(APP, "1", 1)],
            &[
                (APP, "1", 1),
                ("n_a_apps_Deployment", "2", 1),
                ("n_b__ConfigMap", "3", 0),
                ("n_c__Service", "4", 0),
            ],
            3,
        );
        assert_eq!(differences(&before, &before, &Expected::default()), [""; 0]);
        let after = snapshot(
            &[(APP, "1", 2)],
            &[
                ("n_a_apps_Deployment", "9", 1),
                ("n_b__ConfigMap", "3", 0),
                ("n_d__Service", "5", 0),
            ],
            4,
        );
        assert_eq!(
            differences(&before, &after, &Expected::default()),
            [
                "Deployment/n/a was made anew",
                "Helm release n/web has revision 4; it had 3",
                "Service/n/c is gone",
                "Kustomization/n/app was changed: generation 1 is 2",
            ]
        );
        let expected = Expected {
            remade: ["n_a_apps_Deployment".to_owned(), "n_c__Service".to_owned()].into(),
            changed: [APP.to_owned()].into(),
        };
        assert_eq!(
            differences(&before, &after, &expected),
            ["Helm release n/web has revision 4; it had 3"]
        );
    }
}
