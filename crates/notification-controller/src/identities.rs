//! Identities of this controller, and of the ServiceAccounts of Providers, at cloud providers.

use cloud_identity::{Future, Identity, Session};

/// [`workload_identity::Identities`] as the notifier asks it.
pub struct Identities(pub workload_identity::Identities);

impl notifier::Identities for Identities {
    fn session(&self) -> Session<'_> {
        self.0.session()
    }

    fn identity_of<'a>(
        &'a self,
        namespace: &'a str,
        account: Option<&'a str>,
    ) -> Future<'a, Result<Identity, String>> {
        Box::pin(self.0.identity_of(namespace, account))
    }
}
