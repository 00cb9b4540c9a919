//! The storage cases of the specification, each on every engine: `memory::NAME`, `sqlite::NAME` and
//! `postgres::NAME`.
//!
//! The PostgreSQL server is named by `OPEN_CONDUIT_TEST_POSTGRES`, a connection string of somebody who may
//! create databases. Without it those tests fail, unless `OPEN_CONDUIT_TEST_WITHOUT` names `postgres`: what
//! is left out has to be said.

mod runner {
    pub(crate) mod driver;
    pub(crate) mod postgres;
}

use runner::driver::{memory, postgres, sqlite};

/// Runs a case as its driver has it.
macro_rules! cases {
    ($engine:ident; $($case:ident)*) => {
        $(
            #[test]
            fn $case() {
                super::super::$engine(async |driver| spec::store::$case(driver).await);
            }
        )*
    };
}

macro_rules! memory_cases {
    ($($case:ident)*) => { cases!(memory; $($case)*); };
}

macro_rules! sqlite_cases {
    ($($case:ident)*) => { cases!(sqlite; $($case)*); };
}

macro_rules! postgres_cases {
    ($($case:ident)*) => { cases!(postgres; $($case)*); };
}

mod on {
    mod memory {
        spec::for_each_store_case!(memory_cases);
    }

    mod sqlite {
        spec::for_each_store_case!(sqlite_cases);
        spec::for_each_durability_case!(sqlite_cases);
    }

    mod postgres {
        spec::for_each_store_case!(postgres_cases);
        spec::for_each_durability_case!(postgres_cases);
    }
}
