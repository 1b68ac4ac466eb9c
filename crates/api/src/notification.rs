//! Group `notification.toolkit.fluxcd.io`: events out to people and services, webhooks in.

mod alert;
mod object_reference;
mod provider;
mod receiver;

pub use alert::{Alert, AlertSpec, EventSeverity};
pub use object_reference::{CrossNamespaceObjectReference, EventSourceKind};
pub use provider::{Provider, ProviderSpec, ProviderType};
pub use receiver::{
    OIDCProvider, OIDCValidation, OIDCVariable, Receiver, ReceiverResource, ReceiverSpec, ReceiverStatus,
    ReceiverType,
};

/// Version of Alert and Provider.
pub const VERSION: &str = "v1beta3";
/// Version of Receiver.
pub const RECEIVER_VERSION: &str = "v1";
