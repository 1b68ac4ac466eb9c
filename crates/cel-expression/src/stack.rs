//! A stack that is large enough for the deepest expression that the limits let through.

use std::thread;

/// Only what is used is ever backed by memory. Debug builds need most: some 20 KiB for each level.
const SIZE: usize = 256 << 20;

/// Runs `work` there. None when it panicked.
pub(crate) fn run<T: Send>(work: impl FnOnce() -> T + Send) -> Option<T> {
    thread::scope(|scope| {
        let builder = thread::Builder::new().name("cel".to_owned()).stack_size(SIZE);
        builder.spawn_scoped(scope, work).ok()?.join().ok()
    })
}
