//! The main job, told on the terminal while it really happens.
//!
//! `world` starts the peers (or takes the cluster of `KUBECONFIG`) and our controllers. `witness` watches the real
//! objects; every line that `story` prints is something that a watch has seen, with the time since its cause. The
//! `chapters` cause things: a first sync, a commit, changes by hand, a new image. Each line has a time limit, and when one passes the
//! demo ends with what is missing, what was seen last and the end of the controllers' logs.

mod chapters;
mod ending;
mod forge;
pub(crate) mod registry_sign;
mod story;
mod witness;
mod world;

use std::io::Write as _;

use anyhow::{Result, anyhow, bail};

use story::Story;
use witness::Witness;
use world::World;

/// Arguments of `xtask demo`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// End by itself after the story: with 0 when everything happened, with 1 when not.
    #[arg(long)]
    once: bool,
}

/// Plays the demo. A failure is told here, in full and without a backtrace, and ends the process with 1.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let played = runtime.block_on(play(arguments));
    // What is still running belongs to the demo: peers in this process and their connections.
    drop(runtime);
    if let Err(error) = played {
        let causes: Vec<String> = error.chain().map(ToString::to_string).collect();
        writeln!(std::io::stderr(), "\nthe demo failed: {}", causes.join("\n"))?;
        std::process::exit(1);
    }
    Ok(())
}

async fn play(arguments: &Arguments) -> Result<()> {
    let mut story = Story::new();
    let world = unless_interrupted(World::prepare(&mut story, arguments.once)).await?;
    let mut witness = Witness::start(&world.client, &world.namespace);
    let told = unless_interrupted(chapters::play(&mut story, &world, &mut witness)).await;
    let ended = match told {
        Ok(()) if arguments.once => ending::summarise(&mut story, &world, &witness),
        Ok(()) => ending::stay(&mut story, &world, &mut witness).await,
        Err(error) => Err(anyhow!(world.describe_failure()).context(format!("{error:#}"))),
    };
    unless_interrupted(world.clean_up(&mut story)).await?;
    ended
}

/// Ctrl-C ends a step, so that what comes after it (stopping, cleaning up) still happens.
async fn unless_interrupted<T>(step: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::select! {
        result = step => result,
        interrupted = tokio::signal::ctrl_c() => {
            interrupted?;
            bail!("interrupted")
        }
    }
}
