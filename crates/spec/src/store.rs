//! Cases for the storage contract, `domain::store`: what every engine must do, in one text for all.
//!
//! Cases are grouped by the part of the contract they are about, one file each, and named flat, so that
//! `memory::NAME`, `sqlite::NAME` and `postgres::NAME` are the same promise on three engines. A case judges
//! by what the store answers. Within a body it passes errors on and looks at the answer of the request: an
//! engine that queues its writes learns of a conflict only after the call that caused it.

use std::future::Future;
use std::time::Duration;

use domain::store::Store;

mod access;
mod config;
mod durability;
mod event;
mod execution;
mod feed;
mod listing;
mod route;
mod sample;
mod together;
mod transaction;
mod work;

pub use self::access::*;
pub use self::config::*;
pub use self::durability::*;
pub use self::event::*;
pub use self::execution::*;
pub use self::feed::*;
pub use self::listing::*;
pub use self::route::*;
pub use self::transaction::*;
pub use self::work::*;

/// A store under test. Each case gets one of its own, empty.
pub trait StoreDriver: Sync {
    /// The open store.
    fn store(&self) -> &Store;

    /// Moves the store's clock forward. The clock stands still otherwise, or runs at its own pace.
    fn advance(&self, by: Duration);
}

/// A store that outlives its process, for the cases about what does.
pub trait DurableDriver: StoreDriver + Send {
    /// Closes the store and opens the same database again, as a new life of the process.
    fn reopen(&mut self) -> impl Future<Output = ()> + Send;
}

/// Calls the macro `$each` with the name of every case that holds for every engine.
///
/// A case is `async fn NAME(driver: &impl StoreDriver)`.
#[macro_export]
macro_rules! for_each_store_case {
    ($each:ident) => {
        $each! {
        }
    };
}

/// Calls the macro `$each` with the name of every case that holds for engines that keep a database.
///
/// A case is `async fn NAME(driver: &mut impl DurableDriver)`.
#[macro_export]
macro_rules! for_each_durability_case {
    ($each:ident) => {
        $each! {
        }
    };
}
