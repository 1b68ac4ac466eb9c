//! Server-side apply: plan, stages, dry run, prune, inventory.
