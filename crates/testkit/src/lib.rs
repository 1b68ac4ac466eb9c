//! For development: control plane, Git server, registry, object builders.
