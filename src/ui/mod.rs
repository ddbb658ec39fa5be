//! The screen: draws an `App`, reads and never decides.
