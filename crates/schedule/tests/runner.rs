//! The crate's integration tests: examples from outside, and what holds for all input.

mod runner {
    mod vectors;
    mod scan;
    mod firings;
    mod paths;
    mod cases;
}
