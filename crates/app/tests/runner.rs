//! The binary as people use it: real processes, each test in a home of its own.

#[cfg(test)]
mod runner {
    mod home;
    mod normal;

    mod help;
    mod manual;
    mod reference;
    mod unreachable;
    mod config;
    mod events;
    mod operate;
    mod runs;
    mod sessions;
    mod waits;
    mod work;
    mod up;
    mod restart;
    mod encrypted;
    mod past;
}
