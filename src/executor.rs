//! Consumes effects: records them (dry-run) or carries them out (enforce); outcomes come back as input.
