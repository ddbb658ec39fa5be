//! Everything that talks to an API server: connect, watch, decode, write, access, errors.

pub mod feed;
