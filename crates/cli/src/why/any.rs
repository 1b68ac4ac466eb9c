//! Why an object of any kind is not well: what its Pods say, what delivers it, and what is wrong with that.

use delivery_graph::causes::look_into_deliverers;
use delivery_graph::climb::climb;
use delivery_graph::walk::{Finding, State, finding};
use delivery_graph::{object, one_line, origin};
use manifest::ObjectId;

use crate::cluster::anything::Named;
use crate::cluster::{Cluster, Failure, Reader};

/// Climbs from an object, and looks into it and into what delivers it.
pub(crate) async fn find(cluster: &Cluster, named: &Named) -> Result<Finding, Failure> {
    let object = cluster.need_named(named).await?;
    let id = object::id(&object);
    let reader = Reader::new(cluster);
    let mut found = climb(&reader, &object).await;
    found.from = origin::origin_of(&found);
    if found.state != State::Ready {
        let cause = kube_health::why::gather(&cluster.client(), &id).await;
        match cause.map_err(|error| Failure::request(format!("look into {id}"), error)) {
            Ok(Some(cause)) => explain(&mut found, &id, cause),
            Ok(None) => {}
            // What is known is told; that more could not be looked up, too.
            Err(failure) => found.message = format!("{}; {failure}", found.message),
        }
    }
    let asked_about = found.object.clone();
    look_into_deliverers(&reader, &mut found, &asked_about).await;
    Ok(found)
}

/// Says what is wrong with an object, or with a Pod of it.
fn explain(found: &mut Finding, id: &ObjectId, cause: kube_health::why::Cause) {
    let Some(pod) = cause.pod.filter(|pod| id.kind != "Pod" || *pod != id.name) else {
        found.reason = cause.kind.to_string();
        found.message = one_line(&cause.text);
        return;
    };
    let pod = ObjectId {
        group: String::new(),
        kind: "Pod".to_owned(),
        namespace: id.namespace.clone(),
        name: pod,
    };
    let pod = Finding {
        reason: cause.kind.to_string(),
        message: one_line(&cause.text),
        ..finding(pod.to_string(), "because", State::NotReady)
    };
    found.because.insert(0, pod);
}
