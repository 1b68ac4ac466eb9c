//! Metrics of artifact readers: calls over HTTP and gRPC, and the bytes of the answers.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use tonic::Code;

/// `windlass_artifact_requests_total` and `windlass_artifact_sent_bytes_total`. Clones share their values.
#[derive(Clone, Default)]
pub(crate) struct Served {
    requests: Family<Labels, Counter>,
    sent: Family<ProtocolLabel, Counter>,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Labels {
    protocol: &'static str,
    method: &'static str,
    code: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ProtocolLabel {
    protocol: &'static str,
}

impl Served {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "windlass_artifact_requests",
            "Answered requests for artifacts, by protocol, method and code",
            self.requests.clone(),
        );
        registry.register(
            "windlass_artifact_sent_bytes",
            "Bytes of artifacts that were sent",
            self.sent.clone(),
        );
        // A rate wants a beginning.
        drop((self.sent("http"), self.sent("grpc")));
    }

    /// Counts an answer over HTTP.
    pub(crate) fn answered(&self, is_head: bool, status: http::StatusCode) {
        let method = if is_head { "HEAD" } else { "GET" };
        self.count("http", method, status.as_u16().to_string());
    }

    /// Bytes sent over a protocol.
    pub(crate) fn sent(&self, protocol: &'static str) -> Counter {
        self.sent.get_or_create_owned(&ProtocolLabel { protocol })
    }

    /// A gRPC call that begins.
    pub(crate) fn call(&self, method: &'static str) -> Call {
        Call {
            method,
            code: Code::Cancelled,
            sent: self.sent("grpc"),
            served: self.clone(),
        }
    }

    fn count(&self, protocol: &'static str, method: &'static str, code: String) {
        let labels = Labels {
            protocol,
            method,
            code,
        };
        self.requests.get_or_create(&labels).inc();
    }
}

/// A gRPC call. It is counted when it is dropped: as cancelled, unless it was said how it ended.
pub(crate) struct Call {
    method: &'static str,
    code: Code,
    sent: Counter,
    served: Served,
}

impl Call {
    /// A message goes out.
    pub(crate) fn sends(&self, bytes: usize) {
        self.sent.inc_by(bytes as u64);
    }

    /// Says how the call ended.
    pub(crate) fn end(&mut self, code: Code) {
        self.code = code;
    }

    /// Says that there is no more to send, unless it failed before.
    pub(crate) fn end_well(&mut self) {
        if self.code == Code::Cancelled {
            self.code = Code::Ok;
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        // The names of the specification, which are those of tonic but for this one.
        let code = match self.code {
            Code::Ok => "OK".to_owned(),
            code => format!("{code:?}"),
        };
        self.served.count("grpc", self.method, code);
    }
}
