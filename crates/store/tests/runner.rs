//! The storage cases of the specification, each on every engine: `memory::NAME`, `sqlite::NAME` and
//! `postgres::NAME`.
//!
//! The PostgreSQL server is named by `OPEN_CONDUIT_TEST_POSTGRES`, a connection string of somebody who may
//! create databases. Without it those tests fail, unless `OPEN_CONDUIT_TEST_WITHOUT` names `postgres`: what
//! is left out has to be said.

#[cfg(test)]
#[path = "runner/driver.rs"]
mod driver;
#[cfg(test)]
#[path = "runner/nodes.rs"]
mod nodes;
#[cfg(test)]
#[path = "runner/server.rs"]
mod server;

/// Makes a test of each case, on a store that the function `$on` opens.
macro_rules! cases {
    ($on:path; $($case:ident)*) => {
        $(
            #[test]
            fn $case() {
                $on(async |driver: &mut crate::driver::Driver| spec::store::$case(driver).await);
            }
        )*
    };
}

mod memory {
    macro_rules! on_memory {
        ($($case:ident)*) => { cases!(crate::driver::memory; $($case)*); };
    }

    spec::for_each_store_case!(on_memory);
}

mod sqlite {
    macro_rules! on_sqlite {
        ($($case:ident)*) => { cases!(crate::driver::sqlite; $($case)*); };
    }

    spec::for_each_store_case!(on_sqlite);
    spec::for_each_durability_case!(on_sqlite);
}

mod postgres {
    macro_rules! on_postgres {
        ($($case:ident)*) => { cases!(crate::driver::postgres; $($case)*); };
    }

    spec::for_each_store_case!(on_postgres);
    spec::for_each_durability_case!(on_postgres);

    #[test]
    fn schema_is_the_one_of_sqlite() {
        crate::server::schema_is_the_one_of_sqlite();
    }

    #[test]
    fn nodes_take_turns() {
        crate::nodes::nodes_take_turns();
    }

    #[test]
    fn lost_commit_is_looked_up() {
        crate::nodes::lost_commit_is_looked_up();
    }

    #[test]
    fn ended_connections_are_made_again() {
        crate::nodes::ended_connections_are_made_again();
    }

    #[test]
    fn time_is_the_databases() {
        crate::nodes::time_is_the_databases();
    }

    #[test]
    fn ownership_is_seen_by_every_node() {
        crate::nodes::ownership_is_seen_by_every_node();
    }

    #[test]
    fn dead_owner_leaves_its_host_the_loops() {
        crate::nodes::dead_owner_leaves_its_host_the_loops();
    }

    #[test]
    fn executions_belong_to_their_host() {
        crate::nodes::executions_belong_to_their_host();
    }

    #[test]
    fn resumed_execution_belongs_to_the_host_that_resumes_it() {
        crate::nodes::resumed_execution_belongs_to_the_host_that_resumes_it();
    }

    #[test]
    fn inline_callers_wait() {
        crate::nodes::inline_callers_wait();
    }
}
