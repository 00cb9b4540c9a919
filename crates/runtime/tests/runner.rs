//! The stages, stepped by hand on one thread: every interleaving a test wants, and no other.

#[cfg(test)]
mod runner {
    mod server;
    mod world;

    mod accept;
    mod alias;
    mod capacity;
    mod causal;
    mod complete;
    mod control;
    mod crash;
    mod crowd;
    mod loops;
    mod orphan;
    mod own;
    mod poison;
    mod room;
    mod shuffle;
    mod wait;
    mod wake;
    mod woken;
    mod recover;
    mod retry;
    mod route;
    mod specification;
}
