//! Inputs that a client gets from outside and that change while it runs: the trusted authority, and the
//! token.

use std::{fmt, io, path::PathBuf, sync::Arc, time::Duration};

use tokio::sync::watch;

/// How long a call waits for what has not been supplied yet.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where a text comes from. It is asked for anew whenever it is needed, so a change needs no restart.
#[derive(Clone, Default)]
pub enum Supply {
    /// There is none.
    #[default]
    Nothing,
    /// A file, such as a projected volume's, that someone else replaces.
    File(PathBuf),
    /// The newest value of a channel; None until there is one.
    Watched(watch::Receiver<Option<Arc<str>>>),
}

impl Supply {
    /// The text as it is now, without white space around it. None if there is nothing to come.
    pub(super) async fn get(&self) -> io::Result<Option<Arc<str>>> {
        match self {
            Self::Nothing => Ok(None),
            Self::File(path) => {
                let text = tokio::fs::read_to_string(path).await?;
                Ok(Some(text.trim().into()))
            }
            Self::Watched(receiver) => {
                let mut receiver = receiver.clone();
                let supplied = tokio::time::timeout(PATIENCE, receiver.wait_for(Option::is_some)).await;
                match supplied {
                    Ok(Ok(text)) => Ok(text.clone()),
                    Ok(Err(_)) | Err(_) => Err(io::Error::new(
                        io::ErrorKind::TimedOut,
                        "nobody has supplied it yet",
                    )),
                }
            }
        }
    }
}

/// Says where it comes from, never what it is: it may be a token.
impl fmt::Debug for Supply {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => formatter.write_str("Nothing"),
            Self::File(path) => formatter.debug_tuple("File").field(path).finish(),
            Self::Watched(_) => formatter.write_str("Watched"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_file_is_read_anew_each_time_and_a_channel_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let supply = Supply::File(path.clone());
        assert!(supply.get().await.is_err());
        for text in ["one\n", "two"] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(supply.get().await.unwrap().as_deref(), Some(text.trim()));
        }
        assert_eq!(Supply::Nothing.get().await.unwrap(), None);

        let (sender, receiver) = watch::channel(None);
        let supply = Supply::Watched(receiver);
        let waiting = tokio::spawn({
            let supply = supply.clone();
            async move { supply.get().await }
        });
        tokio::task::yield_now().await;
        sender.send(Some("secret".into())).unwrap();
        assert_eq!(waiting.await.unwrap().unwrap().as_deref(), Some("secret"));
        assert!(!format!("{supply:?}").contains("secret"));
    }
}
