//! A stream of answers that counts as running until it ends, and that ends when the client does not take it.
//!
//! A stalled client would keep a file open and a place among its calls for ever: HTTP/2 keeps the connection alive
//! however long a stream stands still.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures::{Stream, StreamExt as _, stream};
use prost::Message;
use tokio::sync::mpsc;
use tonic::Status;

use crate::metrics::Call;
use access_review::limit::Permit;

/// Longest time for which a client may take nothing.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// Hands the answers on as they are taken, and keeps the permit meanwhile.
pub(super) fn guarded<T: Send + 'static>(
    answers: impl Stream<Item = Result<T, Status>> + Send + 'static,
    permit: Permit,
    patience: Duration,
) -> impl Stream<Item = Result<T, Status>> + Send + 'static {
    let (client, taken) = mpsc::channel(1);
    let was_cut_off = Arc::new(AtomicBool::new(false));
    let cut_off = was_cut_off.clone();
    tokio::spawn(async move {
        let _running = permit;
        let mut answers = std::pin::pin!(answers);
        loop {
            let answer = tokio::select! {
                answer = answers.next() => answer,
                () = client.closed() => return,
            };
            let Some(answer) = answer else { return };
            match tokio::time::timeout(patience, client.send(answer)).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return,
                Err(_) => return cut_off.store(true, Ordering::Release),
            }
        }
    });
    stream::unfold(Some(taken), move |taken| {
        let was_cut_off = was_cut_off.clone();
        async move {
            let mut taken = taken?;
            match taken.recv().await {
                Some(answer) => Some((answer, Some(taken))),
                // Not an ordinary end: the client must not take this for the whole.
                None if was_cut_off.load(Ordering::Acquire) => Some((
                    Err(Status::deadline_exceeded("the answer was not taken in time")),
                    None,
                )),
                None => None,
            }
        }
    })
}

/// Counts the answers, and how the call ends.
pub(super) fn counted<T: Message>(
    answers: impl Stream<Item = Result<T, Status>> + Send + 'static,
    call: Call,
) -> impl Stream<Item = Result<T, Status>> + Send + 'static {
    stream::unfold((Box::pin(answers), call), |(mut answers, mut call)| async move {
        let answer = answers.next().await;
        match &answer {
            Some(Ok(message)) => call.sends(message.encoded_len()),
            Some(Err(status)) => call.end(status.code()),
            // After an error the stream has ended with that.
            None => call.end_well(),
        }
        Some((answer?, (answers, call)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use access_review::limit::Limiter;

    fn numbers() -> impl Stream<Item = Result<u32, Status>> + Send + 'static {
        stream::iter((0..5).map(Ok))
    }

    #[tokio::test]
    async fn answers_pass_and_the_permit_ends_with_them() {
        let limiter = Limiter::new(1);
        let answers = guarded(numbers(), limiter.begin("a").unwrap(), PATIENCE);
        assert!(limiter.begin("a").is_none());
        let all: Vec<_> = answers.map(Result::unwrap).collect().await;
        assert_eq!(all, [0, 1, 2, 3, 4]);
        tokio::task::yield_now().await;
        assert!(limiter.begin("a").is_some());
    }

    #[tokio::test]
    async fn who_takes_nothing_is_cut_off_and_told_so() {
        let limiter = Limiter::new(1);
        let patience = Duration::from_millis(20);
        let answers = guarded(numbers(), limiter.begin("a").unwrap(), patience);
        tokio::time::sleep(patience * 5).await;
        assert!(limiter.begin("a").is_some(), "the place is free");
        let all: Vec<_> = answers.collect().await;
        assert_eq!(all.len(), 2);
        assert_eq!(all[1].as_ref().unwrap_err().code(), tonic::Code::DeadlineExceeded);
    }

    #[tokio::test]
    async fn who_leaves_frees_the_place() {
        let limiter = Limiter::new(1);
        let answers = guarded(
            stream::pending::<Result<u32, Status>>(),
            limiter.begin("a").unwrap(),
            PATIENCE,
        );
        drop(answers);
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert!(limiter.begin("a").is_some());
    }
}
