use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use error_chain::chain;

use super::*;
use crate::fake::{World, account};

const KEYS: [(&str, &str); 2] = [("AWS_ACCESS_KEY_ID", "AKIA"), ("AWS_SECRET_ACCESS_KEY", "s")];
const BEARER: &str = r#"{"access_token":"token-1","expires_in":3599}"#;
const EKS: &str = "arn:aws:eks:eu-west-1:123456789012:cluster/prod";
const GKE: &str = "projects/p/locations/europe-west1/clusters/prod";
const AKS: &str = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/g/providers/\
                   Microsoft.ContainerService/managedClusters/prod";

fn cluster(cloud: Cloud, resource: &str) -> Cluster {
    Cluster {
        cloud,
        resource: resource.to_owned(),
        address: String::new(),
        authority: String::new(),
    }
}

/// "server authority", as a kubeconfig of these tests is written.
fn read(kubeconfig: &[u8]) -> Option<Endpoint> {
    let (address, authority) = std::str::from_utf8(kubeconfig).ok()?.split_once(' ')?;
    Some(Endpoint {
        address: address.to_owned(),
        authority: authority.as_bytes().to_vec(),
    })
}

async fn endpoint(cluster: &Cluster, world: &World) -> Result<Endpoint, String> {
    let found = cluster
        .endpoint(&Identity::Controller, world.session(), read)
        .await;
    found.map_err(|error| chain(&error))
}

#[tokio::test]
async fn eks_is_described_and_its_token_is_a_signed_question() {
    let answer = r#"{"cluster": {"endpoint": "https://x.eks.amazonaws.com", "certificateAuthority": {"data": "UEVN"}}}"#;
    let world = World::new(&KEYS, &[(200, answer)]);
    let cluster = cluster(Cloud::Aws, EKS);
    let found = endpoint(&cluster, &world).await.unwrap();
    assert_eq!(found.address, "https://x.eks.amazonaws.com");
    assert_eq!(found.authority, b"PEM");
    let request = world.services.request();
    assert!(
        request.starts_with("GET https://eks.eu-west-1.amazonaws.com/clusters/prod\n"),
        "{request}"
    );
    assert!(request.contains("/eu-west-1/eks/aws4_request"), "{request}");

    let token = cluster
        .token(&Identity::Controller, world.session())
        .await
        .unwrap();
    let encoded = token.as_bearer().unwrap().strip_prefix("k8s-aws-v1.").unwrap();
    let url = String::from_utf8(URL_SAFE_NO_PAD.decode(encoded).unwrap()).unwrap();
    let expected = "https://sts.eu-west-1.amazonaws.com/?Action=GetCallerIdentity&Version=2011-06-15&X-Amz-Algorithm=\
                    AWS4-HMAC-SHA256&X-Amz-Credential=AKIA%2F20130524%2Feu-west-1%2Fsts%2Faws4_request&X-Amz-Date=\
                    20130524T000000Z&X-Amz-Expires=900&X-Amz-SignedHeaders=host%3Bx-k8s-aws-id&X-Amz-Signature=";
    assert!(url.starts_with(expected), "{url}");
    assert_eq!(token.expires.unwrap().to_string(), "2013-05-24T00:15:00Z");
}

#[tokio::test]
async fn gke_is_described_with_the_token_that_it_takes() {
    let answer = r#"{"endpoint": "10.0.0.1", "masterAuth": {"clusterCaCertificate": "UEVN"}}"#;
    let world = World::new(&[], &[(200, BEARER), (200, answer), (200, BEARER)]);
    let cluster = cluster(Cloud::Gcp, GKE);
    let found = endpoint(&cluster, &world).await.unwrap();
    assert_eq!(
        (found.address.as_str(), found.authority.as_slice()),
        ("10.0.0.1", &b"PEM"[..])
    );
    let requests = world.services.requests();
    assert_eq!(
        requests[1],
        format!("GET https://container.googleapis.com/v1/{GKE}\nauthorization: Bearer token-1")
    );
    let token = cluster
        .token(&Identity::Controller, world.session())
        .await
        .unwrap();
    assert_eq!(token.as_bearer(), Some("token-1"));
}

#[tokio::test]
async fn aks_has_the_address_that_is_wanted() {
    let kubeconfigs = |servers: &[&str]| {
        let values = servers.iter().map(|server| {
            format!(
                r#"{{"value": "{}"}}"#,
                STANDARD.encode(format!("{server} PEM of {server}"))
            )
        });
        format!(r#"{{"kubeconfigs": [{}]}}"#, values.collect::<Vec<_>>().join(","))
    };
    let two = kubeconfigs(&["https://a.azmk8s.io:443", "https://b.azmk8s.io:443"]);
    let answers = [
        (200, BEARER),
        (200, r#"{"properties": {"aadProfile": {}}}"#),
        (200, two.as_str()),
    ];
    for (address, authority) in [
        ("", "PEM of https://a.azmk8s.io:443"),
        ("B.azmk8s.io", "PEM of https://b.azmk8s.io:443"),
    ] {
        let world = World::new(&[], &answers);
        let mut cluster = cluster(Cloud::Azure, AKS);
        cluster.address = address.to_owned();
        let found = endpoint(&cluster, &world).await.unwrap();
        assert_eq!(found.authority, authority.as_bytes());
        let expected = authority.trim_start_matches("PEM of ");
        assert_eq!(found.address, expected, "as the provider has it");
        let requests = world.services.requests();
        assert!(
            requests[1].starts_with(&format!("GET https://management.azure.com{AKS}?api-version=")),
            "{requests:?}"
        );
        assert!(requests[2].starts_with("POST "), "{requests:?}");
    }
    let mut elsewhere = cluster(Cloud::Azure, AKS);
    elsewhere.address = "c.azmk8s.io".to_owned();
    let error = endpoint(&elsewhere, &World::new(&[], &answers))
        .await
        .unwrap_err();
    assert!(
        error.contains("cluster addresses: ['https://a.azmk8s.io:443', 'https://b.azmk8s.io:443']"),
        "{error}"
    );
    let answers = [(200, BEARER), (200, r#"{"properties": {}}"#)];
    let error = endpoint(&cluster(Cloud::Azure, AKS), &World::new(&[], &answers))
        .await
        .unwrap_err();
    assert!(
        error.contains("does not have Microsoft Entra ID integration enabled"),
        "{error}"
    );
}

#[tokio::test]
async fn what_is_known_is_not_asked_for_by_an_account_and_not_believed_by_the_controller() {
    for (cloud, resource) in [(Cloud::Aws, EKS), (Cloud::Azure, ""), (Cloud::Gcp, "")] {
        let known = Cluster {
            address: "https://mine".to_owned(),
            authority: "PEM".to_owned(),
            ..cluster(cloud, resource)
        };
        let world = World::new(&[], &[]);
        let found = known
            .endpoint(&account(&[]), world.session(), |_| None)
            .await
            .unwrap();
        assert_eq!(
            (found.address.as_str(), found.authority.as_slice()),
            ("https://mine", &b"PEM"[..])
        );
        assert!(world.services.requests().is_empty());
        // A token of the controller would go to whoever wrote the address.
        assert!(endpoint(&known, &world).await.is_err());
    }
}

#[tokio::test]
async fn the_controller_asks_no_cluster_at_an_address_that_is_not_the_clusters() {
    let described = r#"{"endpoint": "1.2.3.4", "masterAuth": {"clusterCaCertificate": "UEVN"}}"#;
    let answers = [
        (200, r#"{"access_token": "t", "expires_in": 3600}"#),
        (200, described),
    ];
    for (address, is_taken) in [("https://1.2.3.4", true), ("https://evil.example.com", false)] {
        let known = Cluster {
            address: address.to_owned(),
            authority: "PEM of somebody else".to_owned(),
            ..cluster(Cloud::Gcp, "projects/a/locations/b/clusters/c")
        };
        match endpoint(&known, &World::new(&[], &answers)).await {
            Ok(found) => assert!(is_taken && found.authority == b"PEM", "{found:?}"),
            Err(error) => assert!(!is_taken && error.contains("is not that of cluster"), "{error}"),
        }
    }
}

#[tokio::test]
async fn names_that_lead_elsewhere_are_refused_before_anybody_is_asked() {
    for (cloud, resource) in [
        (Cloud::Aws, ""),
        (Cloud::Aws, "arn:aws:eks:eu-west-1:1:cluster/a/../b"),
        (Cloud::Aws, "arn:aws:eks:evil.com/:1:cluster/a"),
        (Cloud::Gcp, "projects/../locations/b/clusters/c"),
        (Cloud::Gcp, "projects/a/locations/b/clusters/c?d"),
        (Cloud::Azure, "/subscriptions/x"),
    ] {
        let world = World::new(&KEYS, &[]);
        let error = endpoint(&cluster(cloud, resource), &world).await.unwrap_err();
        assert!(error.contains("invalid"), "{error}");
        assert!(world.services.requests().is_empty());
    }
}

#[tokio::test]
async fn a_service_account_asks_for_itself() {
    let world = World::new(&[], &[(403, r#"{"message": "no"}"#)]);
    let identity = account(&[("eks.amazonaws.com/role-arn", "arn:aws:iam::1:role/r")]);
    let error = cluster(Cloud::Aws, EKS)
        .token(&identity, world.session())
        .await
        .unwrap_err();
    let error = chain(&error);
    assert!(
        error.starts_with("failed to get access token for cluster: "),
        "{error}"
    );
    assert!(world.services.request().contains("AssumeRoleWithWebIdentity"));
}
