//! The stages, stepped by hand on one thread: every interleaving a test wants, and no other.

#[cfg(test)]
mod runner {
    mod world;

    mod accept;
    mod capacity;
    mod complete;
    mod control;
    mod crash;
    mod crowd;
    mod orphan;
    mod poison;
    mod room;
    mod wake;
    mod recover;
    mod route;
}
