//! Whether the user of this machine has seen the tour: a file in the state folder.

use std::{
    fs::{DirBuilder, OpenOptions},
    os::unix::fs::DirBuilderExt,
    path::Path,
};

use crate::journal;

/// Returns `true` the first time it is called on this machine. Without a state folder it returns `false`, because the
/// tour would be shown at every start.
pub fn is_first_start() -> bool {
    // The state folder is that of the journals, `kordon/journal`.
    journal::folder().is_some_and(|journals| is_first(&journals.with_file_name("tour-seen")))
}

fn is_first(file: &Path) -> bool {
    let Some(folder) = file.parent() else { return false };
    let created = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    created.is_ok() && OpenOptions::new().write(true).create_new(true).open(file).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_first_start_once_and_never_where_nothing_can_be_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("kordon/tour-seen");
        assert!(is_first(&file));
        assert!(!is_first(&file));
        assert!(!is_first(&file.join("below-a-file/tour-seen")));
    }
}
