//! Keeps deep templates from overflowing the stack, which would end the process.
//!
//! Go's stacks grow to a gigabyte. Ours do not, so an execution looks at the address of a local variable to know how much
//! it has used, and stops with Go's message for endless recursion before the end is reached.

use std::hint::black_box;
use std::io;

/// Stack reserved for functions that do not check the bound: encoders, printers, other libraries.
const RESERVE: usize = 384 * 1024;

/// Part of the reserve that is left to functions that do check.
const LAST: usize = 128 * 1024;

/// The lowest address that an execution may reach.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Floor(usize);

impl Floor {
    /// Allows `bytes` from here.
    pub(crate) fn below_here(bytes: usize) -> Self {
        Self(here().saturating_sub(bytes.saturating_sub(RESERVE)))
    }

    /// Returns whether the stack is used up.
    #[inline]
    pub(crate) fn is_reached(self) -> bool {
        here() < self.0
    }

    /// Returns whether a function has used up what is kept for it.
    pub(crate) fn is_reserve_used(self) -> bool {
        here() < self.0.saturating_sub(RESERVE - LAST)
    }
}

#[inline]
fn here() -> usize {
    let marker = 0_u8;
    std::ptr::from_ref(black_box(&marker)).addr()
}

/// Runs `work` on a thread of its own with a stack of that many bytes, of which only what is used takes memory.
pub fn on_stack<T: Send>(bytes: usize, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name("render".to_owned())
            .stack_size(bytes)
            .spawn_scoped(scope, work)?;
        thread.join().or_else(|panic| std::panic::resume_unwind(panic))
    })
}
