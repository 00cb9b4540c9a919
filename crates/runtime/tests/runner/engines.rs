//! The same test on each engine: in memory, and on a PostgreSQL database of which one process has the loops.

use std::sync::Arc;

use domain::scope::EffectiveScope;
use store::{Host, Location, Options};

use super::server::on_database;
use super::world::{Double, HandClock, World};

/// Runs a test in a world of these scopes on every engine.
pub(super) fn on_each_engine(scopes: &[EffectiveScope], test: impl AsyncFn(World)) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let clock = HandClock::new();
        let store = super::world::open(&Location::Memory, &clock).await;
        let mut world = World::over(store, clock, Arc::default(), Arc::default()).await;
        world.apply_all(scopes.to_vec()).await;
        test(world).await;
    });
    on_database(async |dsn| {
        let mut world = at(dsn, &HandClock::new(), None).await;
        world.apply_all(scopes.to_vec()).await;
        test(world).await;
    });
}

/// A world on a PostgreSQL database, after another one or as the first.
async fn at(dsn: &str, clock: &Arc<HandClock>, like: Option<&World>) -> World {
    let host = Host { identity: "cellar".to_owned(), label: "the cellar".to_owned() };
    let options = Options {
        clock: Arc::<HandClock>::clone(clock),
        own_time: true,
        inline: true,
        host: Some(host),
        ..Options::default()
    };
    let store = store::open(&Location::Postgres(dsn.to_owned()), options).await.unwrap();
    let texts = like.map(World::texts).unwrap_or_default();
    let mut world = World::over(store, Arc::clone(clock), Arc::<Double>::default(), texts).await;
    world.claims = true;
    world
}
