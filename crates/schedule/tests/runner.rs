//! The crate's integration tests: examples from outside, and what holds for all input.

#[cfg(test)]
mod runner {
    mod vectors;
    mod scan;
    mod firings;
    mod paths;
    mod cases;
}
