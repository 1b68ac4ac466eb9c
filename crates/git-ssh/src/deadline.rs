//! A connection that ends by itself: when its time is over, or when more was received than allowed.
//!
//! russh runs a connection on a task of its own. With this below it, that task cannot outlive the fetch that it is for,
//! whatever the server does.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

/// Bytes that may still be received.
#[derive(Debug, Clone)]
pub(crate) struct Allowance(Arc<AtomicU64>);

impl Allowance {
    pub(crate) fn new(bytes: u64) -> Self {
        Self(Arc::new(AtomicU64::new(bytes)))
    }

    /// Replaces what is left.
    pub(crate) fn set(&self, bytes: u64) {
        self.0.store(bytes, Ordering::Relaxed);
    }

    pub(crate) fn is_used_up(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }

    fn take(&self, bytes: u64) -> bool {
        let left = |left: u64| Some(left.saturating_sub(bytes));
        // Always Ok: the function always answers Some.
        let before = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left);
        before.is_ok_and(|before| before > bytes)
    }
}

/// A stream within bounds.
pub(crate) struct Bounded<S> {
    stream: S,
    over: Pin<Box<Sleep>>,
    allowance: Allowance,
}

impl<S> Bounded<S> {
    pub(crate) fn new(stream: S, deadline: Instant, allowance: Allowance) -> Self {
        Self {
            stream,
            over: Box::pin(sleep_until(deadline)),
            allowance,
        }
    }

    fn check(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        match self.over.as_mut().poll(context) {
            Poll::Ready(()) => Err(io::ErrorKind::TimedOut.into()),
            Poll::Pending => Ok(()),
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Bounded<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.check(context)?;
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        let read = buffer.filled().len() - before;
        if read > 0 && !self.allowance.take(read as u64) {
            return Poll::Ready(Err(io::Error::other("more was received than allowed")));
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Bounded<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.check(context)?;
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check(context)?;
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check(context)?;
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[tokio::test]
    async fn it_ends_with_its_time_and_with_its_allowance() {
        let (mut far, near) = tokio::io::duplex(64);
        let deadline = Instant::now() + Duration::from_millis(50);
        let allowance = Allowance::new(8);
        let mut near = Bounded::new(near, deadline, allowance.clone());
        let mut buffer = [0; 64];
        far.write_all(b"seven!!").await.unwrap();
        assert_eq!(near.read(&mut buffer).await.unwrap(), 7);
        far.write_all(b"more").await.unwrap();
        assert!(
            near.read(&mut buffer)
                .await
                .unwrap_err()
                .to_string()
                .contains("more was received")
        );
        assert!(allowance.is_used_up());
        allowance.set(100);
        let error = near.read(&mut buffer).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
