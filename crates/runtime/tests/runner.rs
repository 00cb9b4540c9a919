//! The stages, stepped by hand on one thread: every interleaving a test wants, and no other.

#[cfg(test)]
mod runner {
    mod engines;
    mod server;
    mod told;
    mod world;

    mod accept;
    mod alias;
    mod alone;
    mod budget;
    mod capacity;
    mod causal;
    mod complete;
    mod control;
    mod crash;
    mod credential;
    mod crash_sequels;
    mod crowd;
    mod gate;
    mod interrupt;
    mod inject;
    mod loops;
    mod meter;
    mod orphan;
    mod own;
    mod pause;
    mod quiet;
    mod successor;
    mod poison;
    mod room;
    mod shuffle;
    mod wait;
    mod wake;
    mod woken;
    mod recover;
    mod replay;
    mod retain;
    mod retry;
    mod route;
    mod specification;
}
