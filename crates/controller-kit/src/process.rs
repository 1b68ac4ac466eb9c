//! Set-up of a process, first thing in `main`: the crypto provider and the allocator; and its end.

use std::process::ExitCode;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Sets up what has to be there before anything else. To be called before threads are started.
pub fn init() {
    // rustls panics at its first use if two providers are compiled in and none was chosen.
    if rustls::crypto::aws_lc_rs::default_provider()
        .install_default()
        .is_err()
    {
        tracing::debug!("a crypto provider was installed already");
    }
    limit_malloc();
}

/// A token that is cancelled on SIGTERM or SIGINT. A second signal ends the process at once.
///
/// To be called within a Tokio runtime. Where signals cannot be listened to, they end the process as they do
/// by default, and the token is never cancelled.
pub fn shutdown() -> CancellationToken {
    let token = CancellationToken::new();
    let listeners = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()));
    let (Ok(mut terminate), Ok(mut interrupt)) = listeners else {
        tracing::error!("failed to listen to signals; a signal will end this process without a drain");
        return token;
    };
    let cancelled = token.clone();
    tokio::spawn(async move {
        for first in [true, false] {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            if first {
                tracing::info!("shutting down");
                cancelled.cancel();
            } else {
                tracing::error!("a second signal came before the end of the drain");
                std::process::exit(1);
            }
        }
    });
    token
}

/// The exit code of a result, whose error has been told already.
pub(crate) fn exit_code<T, E>(result: &Result<T, E>) -> ExitCode {
    if result.is_ok() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Keeps glibc's allocator small.
///
/// By default it makes up to eight arenas per core and gives freed memory back only from the top of each. With
/// work that moves between threads each arena ends as large as the largest moment, which doubles the resident
/// size of a controller. Two arenas are enough for what we allocate, and at 128 KiB of free memory (the default,
/// which otherwise grows by itself to as much as 64 MiB) an arena is trimmed.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "mallopt has no safe interface")]
fn limit_malloc() {
    for (parameter, value) in [(libc::M_ARENA_MAX, 2), (libc::M_TRIM_THRESHOLD, 128 * 1024)] {
        // SAFETY: mallopt takes two integers, and touches only the allocator's own settings under its own lock.
        // Any value is allowed: it answers 0 to one that it does not know, and nothing has changed then.
        if unsafe { libc::mallopt(parameter, value) } == 0 {
            tracing::debug!(parameter, value, "the allocator does not know this setting");
        }
    }
}

/// Other allocators have no such settings.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn limit_malloc() {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crypto_provider_is_installed_once() {
        init();
        init();
        assert!(rustls::crypto::CryptoProvider::get_default().is_some());
    }

    #[tokio::test]
    async fn a_signal_cancels_the_token() {
        let token = shutdown();
        assert!(!token.is_cancelled());
        let me = std::process::id().to_string();
        let sent = tokio::process::Command::new("kill")
            .args(["-TERM", &me])
            .status()
            .await;
        assert!(sent.expect("there is a kill program").success());
        token.cancelled().await;
    }
}
