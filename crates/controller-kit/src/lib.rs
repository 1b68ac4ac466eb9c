//! What every controller needs: flags, logs, metrics, health endpoints, leader election, conditions, queue.
