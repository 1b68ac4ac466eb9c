//! Times, durations and reference layouts as Go's time package has them.
