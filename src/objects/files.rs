//! Files with objects: one file, a folder, or an archive. Archives are read in memory, so nothing in them can be
//! written outside of a folder. Links are not followed.

use std::{
    fs::{self, File},
    io::{self, BufReader, Read},
    path::{Component, Path},
};

use flate2::read::MultiGzDecoder;

use super::ObjectsError;
use crate::k8s::error::plain;

/// Maximum size of all files together, unpacked, in bytes.
const LIMIT: u64 = 4 << 30;

/// Extensions of files with objects in folders and archives. Other files are logs and the like.
const EXTENSIONS: [&str; 3] = ["json", "yaml", "yml"];

/// First bytes of a gzip file (RFC 1952).
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// A file with its name in the folder or archive.
#[derive(Debug)]
pub struct NamedFile {
    pub name: String,
    pub bytes: Vec<u8>,
    /// Whether the file is part of a folder or archive. A file that is read alone must contain objects.
    pub is_one_of_many: bool,
    /// Whether the file's path leads out of its archive. Such a file is not read.
    pub is_outside: bool,
}

/// Passes every file that may have objects to `each`: one file, those of a folder and of the folders below, or those of
/// an archive (`.tar`, compressed or not). The path `-` is standard input.
///
/// # Errors
/// The path cannot be read, the files are too large together, or `each` fails.
pub fn for_each_file(
    path: &Path,
    each: &mut dyn FnMut(NamedFile) -> Result<(), ObjectsError>,
) -> Result<(), ObjectsError> {
    let mut files = Files { left: LIMIT, root: path, each };
    if path.as_os_str() == "-" {
        return files.stream(io::stdin().lock(), "standard input");
    }
    let metadata = fs::metadata(path).map_err(|error| read_error(path, error))?;
    if metadata.is_dir() {
        return files.folder(path);
    }
    let file = File::open(path).map_err(|error| read_error(path, error))?;
    files.stream(BufReader::new(file), &plain(&path.display().to_string()))
}

/// A walk over files, with the number of bytes that may still be read.
struct Files<'a> {
    left: u64,
    root: &'a Path,
    each: &'a mut dyn FnMut(NamedFile) -> Result<(), ObjectsError>,
}

impl Files<'_> {
    /// Reads a file or archive from its bytes.
    fn stream(&mut self, mut input: impl Read, name: &str) -> Result<(), ObjectsError> {
        let failed = |error| ObjectsError::Read { file: name.into(), error };
        let mut head = Vec::new();
        input.by_ref().take(GZIP.len() as u64).read_to_end(&mut head).map_err(failed)?;
        let is_compressed = head == GZIP;
        let input = io::Cursor::new(head).chain(input);
        if is_compressed {
            self.unpacked(MultiGzDecoder::new(input), name)
        } else {
            self.unpacked(input, name)
        }
    }

    /// Reads a file or archive that is not compressed.
    fn unpacked(&mut self, input: impl Read, name: &str) -> Result<(), ObjectsError> {
        const HEADER: u64 = 512;
        let failed = |error| ObjectsError::Read { file: name.into(), error };
        let mut input = BufReader::new(input);
        let mut head = Vec::new();
        input.by_ref().take(HEADER).read_to_end(&mut head).map_err(failed)?;
        let is_archive = head.get(257..262) == Some(b"ustar");
        let mut input = io::Cursor::new(head).chain(input);
        if is_archive {
            return self.archive(input, name);
        }
        let bytes = self.bytes(&mut input, name)?;
        (self.each)(NamedFile { name: name.into(), bytes, is_one_of_many: false, is_outside: false })
    }

    fn archive(&mut self, input: impl Read, name: &str) -> Result<(), ObjectsError> {
        let failed = |error| ObjectsError::Read { file: name.into(), error };
        let mut archive = tar::Archive::new(input);
        for entry in archive.entries().map_err(failed)? {
            let mut entry = entry.map_err(failed)?;
            let path = entry.path().map_err(failed)?.into_owned();
            if entry.header().entry_type().is_file() && has_objects(&path) {
                let name = plain(&path.display().to_string());
                let is_outside = leads_out(&path);
                let bytes = if is_outside { Vec::new() } else { self.bytes(&mut entry, &name)? };
                (self.each)(NamedFile { name, bytes, is_one_of_many: true, is_outside })?;
            }
        }
        Ok(())
    }

    /// Reads a folder in the order of its names.
    fn folder(&mut self, folder: &Path) -> Result<(), ObjectsError> {
        let failed = |error| read_error(folder, error);
        let entries: Result<Vec<_>, _> = fs::read_dir(folder).map_err(failed)?.collect();
        let mut entries = entries.map_err(failed)?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let path = entry.path();
            let kind = entry.file_type().map_err(|error| read_error(&path, error))?;
            if kind.is_dir() {
                self.folder(&path)?;
            } else if kind.is_file() && has_objects(&path) {
                let mut file = File::open(&path).map_err(|error| read_error(&path, error))?;
                let name = plain(&path.strip_prefix(self.root).unwrap_or(&path).display().to_string());
                let bytes = self.bytes(&mut file, &name)?;
                (self.each)(NamedFile { name, bytes, is_one_of_many: true, is_outside: false })?;
            }
        }
        Ok(())
    }

    fn bytes(&mut self, input: &mut dyn Read, name: &str) -> Result<Vec<u8>, ObjectsError> {
        let mut bytes = Vec::new();
        let read = input.take(self.left + 1).read_to_end(&mut bytes);
        let read = read.map_err(|error| ObjectsError::Read { file: name.into(), error })? as u64;
        let too_large =
            || ObjectsError::TooLarge { file: name.into(), limit: format!("{} GiB", LIMIT >> 30) };
        self.left = self.left.checked_sub(read).ok_or_else(too_large)?;
        Ok(bytes)
    }
}

/// Whether a path in an archive leads out of the folder into which the archive is extracted.
fn leads_out(path: &Path) -> bool {
    !path.components().all(|part| matches!(part, Component::CurDir | Component::Normal(_)))
}

fn has_objects(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| EXTENSIONS.contains(&extension))
}

fn read_error(path: &Path, error: io::Error) -> ObjectsError {
    ObjectsError::Read { file: plain(&path.display().to_string()), error }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::{Compression, write::GzEncoder};

    use super::*;

    fn names(path: &Path) -> Vec<String> {
        let mut names = Vec::new();
        let mut each = |file: NamedFile| {
            names.push(format!("{} {}", file.name, String::from_utf8_lossy(&file.bytes)));
            Ok(())
        };
        for_each_file(path, &mut each).expect("it can be read");
        names
    }

    #[test]
    fn a_path_that_leads_out_of_its_archive_is_noticed() {
        let leads_out = |path: &str| leads_out(Path::new(path));
        assert_eq!(["nodes.json", "./dump/nodes.json"].map(leads_out), [false, false]);
        assert_eq!(["../nodes.json", "dump/../../nodes.json", "/nodes.json"].map(leads_out), [true; 3]);
    }

    #[test]
    fn archives_and_folders_have_the_same_files_and_links_are_left_out() {
        let folder = tempfile::tempdir().expect("a folder");
        let below = folder.path().join("dump/ns");
        fs::create_dir_all(&below).expect("a folder");
        fs::write(folder.path().join("dump/nodes.json"), "{}").expect("a file");
        fs::write(below.join("pods.yaml"), "a: 1").expect("a file");
        fs::write(below.join("container.log"), "noise").expect("a file");
        fs::write(folder.path().join("outside.json"), "secret").expect("a file");
        std::os::unix::fs::symlink(folder.path().join("outside.json"), below.join("link.json"))
            .expect("a link");
        let archive = folder.path().join("dump.tar.gz");
        let mut builder =
            tar::Builder::new(GzEncoder::new(File::create(&archive).expect("a file"), Compression::fast()));
        builder.follow_symlinks(false);
        builder.append_dir_all(".", folder.path().join("dump")).expect("an archive");
        builder.into_inner().and_then(GzEncoder::finish).expect("it is complete").flush().expect("written");
        let expected = ["nodes.json {}", "ns/pods.yaml a: 1"];
        assert_eq!(names(&folder.path().join("dump")), expected);
        let mut packed = names(&archive);
        packed.sort();
        assert_eq!(packed, expected);
    }
}
