//! The whole loop: through what Flux's own code was recorded to do (hack/oracle/helm-state), where it is better, and killed at
//! every point.

mod better;
mod crash;
mod flux;
