//! The stages, stepped by hand on one thread: every interleaving a test wants, and no other.

#[cfg(test)]
mod runner {
    mod clock;
    mod engines;
    mod pulse;
    mod server;
    mod told;
    mod tokens;
    mod world;

    mod accept;
    mod alias;
    mod alone;
    mod budget;
    mod capacity;
    mod causal;
    mod complete;
    mod control;
    mod counted;
    mod crash;
    mod credential;
    mod crash_sequels;
    mod crash_use;
    mod crowd;
    mod gate;
    mod gated;
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
    mod rung;
    mod shuffle;
    mod toolbelt;
    mod wait;
    mod wake;
    mod woken;
    mod recover;
    mod recur;
    mod replay;
    mod retain;
    mod retry;
    mod route;
    mod specification;
    mod workspace;
}
