//! All the screen depends on: state, the command table, the key map, the journal view.
