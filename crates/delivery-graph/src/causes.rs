//! Why an object of any kind is not well, as far as what delivers it says.

use crate::origin::{APPLIED_BY, MADE_OF, OWNED_BY};
use crate::walk::{Finding, State, walk_over};
use crate::{Objects, kind};

/// Looks into the nearest deliverer. Those above it say where it comes from, and are no cause.
pub async fn look_into_deliverers(objects: &dyn Objects, found: &mut Finding, asked_about: &str) {
    let mut here = found;
    let mut is_nearest = true;
    loop {
        let above = here
            .because
            .iter()
            .position(|cause| matches!(cause.role, APPLIED_BY | OWNED_BY));
        let Some(above) = above else { return };
        here = &mut here.because[above];
        // What owns it is as unwell as it is.
        here.follows = here.role != APPLIED_BY || !is_nearest;
        if here.role == APPLIED_BY && is_nearest {
            is_nearest = false;
            if let Some(id) = kind::parse_id(&here.object) {
                let walked = walk_over(objects, &id).await;
                merge(here, walked, asked_about);
            }
        }
    }
}

/// Lays what keeps a deliverer from being ready over what it is made of.
fn merge(here: &mut Finding, walked: Finding, asked_about: &str) {
    let is_about_it = |cause: &Finding| cause.object == asked_about;
    here.follows = walked.state == State::NotReady && walked.because.iter().any(is_about_it);
    here.state = walked.state;
    if !walked.message.is_empty() {
        here.reason = walked.reason;
        here.message = walked.message;
    }
    for mut cause in walked.because.into_iter().filter(|cause| !is_about_it(cause)) {
        let known = here
            .because
            .iter_mut()
            .find(|known| known.role == MADE_OF && known.object == cause.object);
        match known {
            Some(known) => {
                cause.role = MADE_OF;
                *known = cause;
            }
            None => here.because.push(cause),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::walk::finding;

    fn one(object: &str, role: &'static str, state: State, because: Vec<Finding>) -> Finding {
        Finding {
            because,
            ..finding(object.to_owned(), role, state)
        }
    }

    #[test]
    fn a_deliverer_that_fails_because_of_the_object_is_no_cause() {
        let web = "Deployment/shop/web";
        let git = one("GitRepository/shop/app", MADE_OF, State::Ready, vec![]);
        let mut here = one("Kustomization/shop/app", APPLIED_BY, State::Ready, vec![git]);
        let failing = one(web, "applied", State::NotReady, vec![]);
        let walked = one("Kustomization/shop/app", "object", State::NotReady, vec![failing]);
        merge(&mut here, walked, web);
        assert!(here.follows && here.because.len() == 1);
        let pod = one("Pod/shop/web-1", "because", State::NotReady, vec![]);
        let root = one(web, "object", State::NotReady, vec![pod, here]);
        let roots: Vec<_> = root.roots().iter().map(|root| root.object.as_str()).collect();
        assert_eq!(roots, ["Pod/shop/web-1"]);
    }

    #[test]
    fn a_source_that_fails_is_the_cause_and_stands_once() {
        let git = |role, state| one("GitRepository/shop/app", role, state, vec![]);
        let mut here = one(
            "Kustomization/shop/app",
            APPLIED_BY,
            State::Ready,
            vec![git(MADE_OF, State::NotReady)],
        );
        let walked = one(
            "Kustomization/shop/app",
            "object",
            State::Ready,
            vec![git("source", State::NotReady)],
        );
        merge(&mut here, walked, "Deployment/shop/web");
        assert_eq!(here.because.len(), 1);
        assert_eq!(here.because[0].role, MADE_OF);
        let roots: Vec<_> = here.roots().iter().map(|root| root.object.clone()).collect();
        assert_eq!(roots, ["GitRepository/shop/app"]);
    }

    #[test]
    fn deliverers_are_found_by_their_kind() {
        let id = kind::parse_id("Kustomization/shop/app").unwrap();
        assert_eq!(id.group, "kustomize.toolkit.fluxcd.io");
        assert!(kind::parse_id("Deployment/shop/web").is_none());
    }
}
