//! All files of a run appear together and whole, or none does: they are written beside their targets under temporary names
//! and renamed once every one of them is complete.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use tempfile::{NamedTempFile, TempPath};

use crate::error::{Error, Result};

/// Files on their way. Dropped before [`Outputs::commit`], they leave nothing behind.
#[derive(Debug)]
pub struct Outputs {
    force: bool,
    written: Vec<(PathBuf, TempPath)>,
}

/// Checks the targets of a run before its work begins.
///
/// # Errors
/// [`Error::Parameter`] for a path that stands twice, [`Error::Write`] for a folder that is not there or a target that is a
/// folder, and without `force` [`Error::Exists`] for a file that is there already.
pub fn check<P: AsRef<Path>>(targets: &[P], force: bool) -> Result<()> {
    let mut seen: Vec<PathBuf> = Vec::with_capacity(targets.len());
    for target in targets {
        let target = target.as_ref();
        let place = place_of(target)?;
        if seen.contains(&place) {
            let value = target.display().to_string();
            return Err(Error::Parameter { name: "output", value, allowed: "but it was named before" });
        }
        check_free(target, force)?;
        seen.push(place);
    }
    Ok(())
}

impl Outputs {
    /// No file yet. With `force` existing targets are replaced.
    pub fn new(force: bool) -> Self {
        Self { force, written: Vec::new() }
    }

    /// Writes one file under a temporary name.
    ///
    /// # Errors
    /// As [`check`], and [`Error::Write`] for what `write` returns.
    pub fn write(&mut self, target: &Path, write: impl FnOnce(&mut BufWriter<&File>) -> io::Result<()>) -> Result<()> {
        let place = place_of(target)?;
        check_free(target, self.force)?;
        let fault = |source| Error::Write { path: target.to_path_buf(), source };
        let folder = place.parent().unwrap_or(Path::new("."));
        let file = temporary(folder).map_err(fault)?;
        let mut buffer = BufWriter::with_capacity(1 << 18, file.as_file());
        write(&mut buffer).and_then(|()| buffer.flush()).map_err(fault)?;
        drop(buffer);
        // Closed: a run may write more files than may be open at once.
        self.written.push((target.to_path_buf(), file.into_temp_path()));
        Ok(())
    }

    /// Gives all files their names. Where that fails for one, those that had taken a new name are removed again.
    ///
    /// # Errors
    /// [`Error::Write`], [`Error::Exists`].
    pub fn commit(self) -> Result<()> {
        let mut created: Vec<PathBuf> = Vec::new();
        for (target, file) in self.written {
            let existed = target.exists();
            match rename(file, &target, self.force) {
                Ok(()) if existed => {}
                Ok(()) => created.push(target),
                Err(error) => {
                    for path in created {
                        // The first fault is the one to report.
                        _ = std::fs::remove_file(path);
                    }
                    return Err(error);
                }
            }
        }
        Ok(())
    }
}

fn rename(file: TempPath, target: &Path, force: bool) -> Result<()> {
    let place = place_of(target)?;
    let renamed = if force { file.persist(&place) } else { file.persist_noclobber(&place) };
    match renamed {
        Ok(_) => Ok(()),
        Err(e) if !force && e.error.kind() == io::ErrorKind::AlreadyExists => Err(Error::Exists(target.to_path_buf())),
        Err(e) => Err(Error::Write { path: target.to_path_buf(), source: e.error }),
    }
}

/// Where a target really lies: its folder resolved, and a link to a file followed, so that the link itself stays.
fn place_of(target: &Path) -> Result<PathBuf> {
    if let Ok(file) = target.canonicalize() {
        return Ok(file);
    }
    let folder = match target.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let fault = |path: &Path, kind, what: &str| {
        let source = io::Error::new(kind, what.to_owned());
        Error::Write { path: path.to_path_buf(), source }
    };
    let name = target
        .file_name()
        .ok_or_else(|| fault(target, io::ErrorKind::InvalidInput, "this is not the name of a file"))?;
    let folder = folder.canonicalize().map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => fault(folder, e.kind(), "there is no such folder; make it first"),
        _ => Error::Write { path: folder.to_path_buf(), source: e },
    })?;
    Ok(folder.join(name))
}

fn check_free(target: &Path, force: bool) -> Result<()> {
    if target.is_dir() {
        let source = io::Error::new(io::ErrorKind::IsADirectory, "this is a folder");
        return Err(Error::Write { path: target.to_path_buf(), source });
    }
    if !force && target.exists() {
        return Err(Error::Exists(target.to_path_buf()));
    }
    Ok(())
}

/// A new file in the folder, readable by whom new files are readable.
fn temporary(folder: &Path) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".skinbind-").suffix(".tmp");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // What the user's mask leaves of it; the default of temporary files would let nobody else read the result.
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn put(outputs: &mut Outputs, target: &Path, text: &str) -> Result<()> {
        outputs.write(target, |out| out.write_all(text.as_bytes()))
    }

    #[test]
    fn files_appear_together_at_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let (a, b) = (folder.path().join("a.txt"), folder.path().join("b.txt"));
        let mut outputs = Outputs::new(false);
        put(&mut outputs, &a, "one").unwrap();
        put(&mut outputs, &b, "two").unwrap();
        assert!(!a.exists() && !b.exists());
        outputs.commit().unwrap();
        assert_eq!(names(folder.path()), ["a.txt", "b.txt"]);
        assert_eq!(std::fs::read_to_string(&b).unwrap(), "two");
    }

    #[test]
    fn a_failure_leaves_nothing_and_keeps_what_was_there() {
        let folder = tempfile::tempdir().unwrap();
        let (a, b) = (folder.path().join("a.txt"), folder.path().join("b.txt"));
        std::fs::write(&a, "old").unwrap();
        let mut outputs = Outputs::new(true);
        put(&mut outputs, &a, "new").unwrap();
        let failed = outputs.write(&b, |out| {
            out.write_all(b"half")?;
            Err(io::Error::other("the disk is full"))
        });
        assert!(failed.unwrap_err().to_string().contains("b.txt"));
        drop(outputs);
        assert_eq!(names(folder.path()), ["a.txt"]);
        assert_eq!(std::fs::read_to_string(&a).unwrap(), "old");
    }

    #[test]
    fn existing_files_are_replaced_with_force_only() {
        let folder = tempfile::tempdir().unwrap();
        let a = folder.path().join("a.txt");
        std::fs::write(&a, "old").unwrap();
        assert!(matches!(check(&[&a], false), Err(Error::Exists(path)) if path == a));
        assert!(matches!(put(&mut Outputs::new(false), &a, "new"), Err(Error::Exists(_))));
        check(&[&a], true).unwrap();
        let mut outputs = Outputs::new(true);
        put(&mut outputs, &a, "new").unwrap();
        outputs.commit().unwrap();
        assert_eq!(std::fs::read_to_string(&a).unwrap(), "new");
    }

    #[test]
    fn a_file_that_appears_in_the_meantime_is_kept_and_so_is_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let (a, b) = (folder.path().join("a.txt"), folder.path().join("b.txt"));
        let mut outputs = Outputs::new(false);
        put(&mut outputs, &a, "new").unwrap();
        put(&mut outputs, &b, "new").unwrap();
        std::fs::write(&b, "old").unwrap();
        assert!(matches!(outputs.commit(), Err(Error::Exists(_))));
        assert_eq!(names(folder.path()), ["b.txt"]);
        assert_eq!(std::fs::read_to_string(&b).unwrap(), "old");
    }

    #[test]
    fn targets_are_checked_before_the_work() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("nowhere").join("a.txt");
        let message = check(&[missing], false).unwrap_err().to_string();
        assert!(message.contains("nowhere") && message.contains("folder"), "{message}");
        assert!(matches!(check(&[folder.path()], true), Err(Error::Write { .. })));
        let (a, same) = (folder.path().join("a.txt"), folder.path().join(".").join("a.txt"));
        assert!(matches!(check(&[a.clone(), same], false), Err(Error::Parameter { .. })));
        check(&[a, folder.path().join("b.txt")], false).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_and_new_files_are_as_readable_as_others() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real.txt"), folder.path().join("link.txt"));
        std::fs::write(&real, "old").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let mut outputs = Outputs::new(true);
        put(&mut outputs, &link, "new").unwrap();
        outputs.commit().unwrap();
        assert!(link.is_symlink());
        assert_eq!(std::fs::read_to_string(&real).unwrap(), "new");
        let plain = folder.path().join("plain.txt");
        std::fs::write(&plain, "").unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&real), mode(&plain));
    }
}
