//! Chapters of the demo: a first sync, a commit, changes by hand, and a new image.

mod by_hand;
mod commit;
mod first_sync;
mod image;
mod steps;

use anyhow::Result;

use super::story::Story;
use super::witness::Witness;
use super::world::World;

/// Plays all chapters, and checks at the end that everything is Ready.
pub(crate) async fn play(story: &mut Story, world: &World, witness: &mut Witness) -> Result<()> {
    first_sync::play(story, world, witness).await?;
    commit::play(story, world, witness).await?;
    by_hand::play(story, world, witness).await?;
    image::play(story, world, witness).await
}
