//! Wrapper scripts of browsers, and the programs that they start.
//!
//! Distributions install a shell script under the browser's name. Debian's reads `/etc/chromium.d`, which the sandbox
//! does not show, so the browser is started without its wrapper. The flags that Debian's wrapper adds repeat ours
//! (`--no-default-browser-check`, `--disable-dev-shm-usage`) or concern extensions, the GPU and keys for Google's
//! services, which are off here.
#![expect(clippy::disallowed_methods, reason = "looks at programs of the machine that no tool can write to")]

use crate::sandbox::writable_roots::{PathKindCache, WritableRoots};
use std::{
    fs::File,
    io::Read,
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

/// Programs that a wrapper may start, by the file name of the wrapper; paths start at its folder. The script itself is
/// never interpreted.
const WRAPPERS: [(&str, &[&str]); 9] = [
    ("chromium", &["../lib/chromium/chromium", "../lib64/chromium/chromium"]),
    ("chromium-headless-shell", &["../lib/chromium/chromium-headless-shell"]),
    ("chromium-browser", &["../lib/chromium-browser/chromium-browser", "chrome"]),
    ("chromium-browser.sh", &["chromium-browser"]),
    ("chromium-launcher.sh", &["chromium"]),
    ("google-chrome", &["chrome"]),
    ("google-chrome-beta", &["chrome"]),
    ("google-chrome-unstable", &["chrome"]),
    ("chrome-wrapper", &["chrome"]),
];
/// File name of the program that every command of a snap is a link to.
const SNAP: &str = "snap";

/// Returns the program to start for a browser's file: the one that a known wrapper script starts, else the file itself,
/// with links resolved.
///
/// `None` if tools can write to either, or to a link on the way, and for a snap, which starts outside of the sandbox
/// only. A known wrapper without its program is started as it is if the configuration names it; in a search for a
/// browser (`is_searched`) it is skipped, since Ubuntu's `chromium-browser` only starts a snap.
pub(super) fn program_of(file: &Path, is_searched: bool, writable: &WritableRoots) -> Option<PathBuf> {
    let mut links = PathKindCache::default();
    let file = writable.resolve_outside(&mut links, file)?;
    let (folder, name) = (file.parent()?, file.file_name()?);
    if name == SNAP {
        return None;
    }
    let wrapper = WRAPPERS.iter().find(|(wrapper, _)| name == *wrapper).filter(|_| is_script(&file));
    let programs = wrapper.map_or(&[][..], |(_, programs)| programs);
    match programs.iter().map(|program| folder.join(program)).find(|program| is_executable(program)) {
        Some(program) => writable.resolve_outside(&mut links, &program),
        None if wrapper.is_some() && is_searched => None,
        None => Some(file),
    }
}

fn is_script(file: &Path) -> bool {
    let mut begin = [0; 2];
    // Opening a pipe for reading would wait for a writer.
    let opened = File::options().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(file);
    opened.and_then(|mut file| file.read_exact(&mut begin)).is_ok() && begin == *b"#!"
}

/// Returns `true` if the path is an executable file.
pub(super) fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        fs::{self, Permissions},
        os::unix::fs::symlink,
    };
    use tempfile::TempDir;

    const SCRIPT: &str = "#!/bin/sh\nexec elsewhere\n";

    fn installed(files: &[(&str, &str)]) -> (TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        for (name, text) in files {
            let file = top.join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, text).unwrap();
            fs::set_permissions(&file, Permissions::from_mode(0o755)).unwrap();
        }
        (folder, top)
    }

    #[test]
    fn a_known_wrapper_resolves_to_the_program_that_it_starts() {
        let (_folder, top) = installed(&[
            ("usr/bin/chromium", SCRIPT),
            ("usr/bin/chromium-headless-shell", SCRIPT),
            ("usr/bin/chromium-browser", SCRIPT),
            ("usr/lib/chromium/chromium", "ELF"),
            ("usr/lib/chromium/chromium-headless-shell", "ELF"),
            ("usr/local/bin/chromium", "ELF"),
            ("usr/local/lib/chromium/chromium", "ELF"),
            ("opt/google/chrome/google-chrome", SCRIPT),
            ("opt/google/chrome/chrome", "ELF"),
            ("opt/own/browse", SCRIPT),
            ("opt/own/chrome", "ELF"),
            ("usr/bin/snap", "ELF"),
        ]);
        symlink("../../opt/google/chrome/google-chrome", top.join("usr/bin/google-chrome-stable")).unwrap();
        symlink("google-chrome-stable", top.join("usr/bin/google-chrome")).unwrap();
        symlink("snap", top.join("usr/bin/snapped")).unwrap();
        for (file, program) in [
            ("usr/bin/chromium", Some("usr/lib/chromium/chromium")),
            ("usr/bin/chromium-headless-shell", Some("usr/lib/chromium/chromium-headless-shell")),
            ("usr/bin/google-chrome", Some("opt/google/chrome/chrome")),
            // A wrapper without its program, an unknown script and a program are started as they are.
            ("usr/bin/chromium-browser", Some("usr/bin/chromium-browser")),
            ("opt/own/browse", Some("opt/own/browse")),
            ("usr/local/bin/chromium", Some("usr/local/bin/chromium")),
            ("usr/bin/snapped", None),
            ("usr/bin/missing", None),
        ] {
            let found = program_of(&top.join(file), false, &WritableRoots::default());
            assert_eq!(found, program.map(|program| top.join(program)), "{file}");
        }
        let searched = |file: &str| program_of(&top.join(file), true, &WritableRoots::default());
        assert_eq!(searched("usr/bin/chromium-browser"), None);
        assert_eq!(searched("usr/bin/chromium"), Some(top.join("usr/lib/chromium/chromium")));
    }

    #[test]
    fn a_browser_is_not_started_if_tools_can_write_to_its_wrapper_or_program() {
        let (_folder, top) = installed(&[
            ("usr/bin/chromium", SCRIPT),
            ("usr/lib/chromium/chromium", "ELF"),
            ("work/chromium", "ELF"),
            ("opt/google/chrome/google-chrome", SCRIPT),
        ]);
        symlink("../../../work/chromium", top.join("opt/google/chrome/chrome")).unwrap();
        let found = |file: &str, root: &str| program_of(&top.join(file), false, &WritableRoots::new(&[top.join(root)]));
        assert_eq!(found("usr/bin/chromium", "usr/lib"), None);
        assert_eq!(found("usr/bin/chromium", "usr/bin"), None);
        assert_eq!(found("usr/bin/chromium", "work"), Some(top.join("usr/lib/chromium/chromium")));
        assert_eq!(found("opt/google/chrome/google-chrome", "work"), None);
    }
}
