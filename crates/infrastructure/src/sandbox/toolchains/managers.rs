//! Folders in the home where programs install other programs, and their visible parts.
//!
//! Beside installed programs these folders contain settings, histories, caches and clones, with passwords in addresses,
//! tokens and private keys. A part is visible because a program needs it to run, never because the program stores data
//! there.

use std::{
    collections::HashMap,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

/// Maximum number of entries of a folder that are checked for parts with a wildcard.
const MAX_ENTRIES: usize = 1_000;
/// Part that represents the programs directly in a folder.
const PROGRAMS: &str = ".";

/// A known installation folder.
#[derive(Debug)]
pub(super) struct InstallationFolder {
    /// Path below the home.
    pub(super) folder: &'static str,
    /// Visible parts, where `*` matches any text within a name. Empty if everything is visible.
    parts: &'static [&'static str],
    /// Reason for hiding the rest, or for showing everything.
    #[cfg_attr(not(test), expect(dead_code, reason = "every row of the table states its reason"))]
    reason: &'static str,
}

/// Entry for a manager with the layout of rbenv.
macro_rules! like_rbenv {
    ($folder:literal) => {
        InstallationFolder {
            folder: $folder,
            parts: &[
                "bin", "shims", "libexec", "versions", "version", "plugins/*/bin", "plugins/*/etc", "plugins/*/libexec",
                "plugins/*/share", "plugins/*/shims", "*.d",
            ],
            reason: "the clone, and those of its plugins, name the addresses that they came from, with tokens of private ones",
        }
    };
}

const MANAGERS: &[InstallationFolder] = &[
    InstallationFolder {
        folder: ".asdf",
        parts: &[
            "bin",
            "shims",
            "installs",
            "lib",
            "libexec",
            "asdf.sh",
            "plugins/*/bin",
            "plugins/*/lib",
            "plugins/*/shims",
        ],
        reason: "clones of plugins name the addresses that they came from, with tokens of private ones",
    },
    InstallationFolder {
        folder: ".bun",
        parts: &["bin", "install/global/node_modules"],
        reason: "settings next to the installed programs contain tokens of registries",
    },
    InstallationFolder { folder: ".composer/vendor", parts: &[], reason: "packages alone; `auth.json` is next to it" },
    InstallationFolder {
        folder: ".config/composer/vendor",
        parts: &[],
        reason: "packages alone; `auth.json` is next to it",
    },
    InstallationFolder {
        folder: ".deno",
        parts: &["bin"],
        reason: "as a cache it holds what scripts stored, and modules of private addresses",
    },
    InstallationFolder {
        folder: ".dotnet",
        parts: &[
            PROGRAMS,
            "host",
            "sdk",
            "sdk-manifests",
            "shared",
            "packs",
            "templates",
            "library-packs",
            "metadata",
            "tools",
        ],
        reason: "`corefx/cryptography` holds private keys",
    },
    InstallationFolder {
        folder: ".elan",
        parts: &["bin", "toolchains", "settings.toml"],
        reason: "its downloads are private",
    },
    InstallationFolder {
        folder: ".fnm",
        parts: &[PROGRAMS, "node-versions", "aliases"],
        reason: "nothing else is needed",
    },
    InstallationFolder { folder: ".gem/ruby", parts: &[], reason: "packages alone; `credentials` is next to it" },
    InstallationFolder {
        folder: ".ghcup",
        parts: &["bin", "ghc", "hls", "cabal", "stack", "share"],
        reason: "`config.yaml` names addresses, which may hold passwords; logs and caches",
    },
    like_rbenv!(".goenv"),
    like_rbenv!(".jenv"),
    InstallationFolder {
        folder: ".juliaup",
        parts: &["bin", "juliaup", "juliaupself.json"],
        reason: "nothing else is needed",
    },
    InstallationFolder {
        folder: ".linuxbrew",
        parts: &[
            "bin",
            "sbin",
            "Cellar",
            "opt",
            "lib",
            "libexec",
            "include",
            "share",
            "etc/ca-certificates",
            "etc/openssl@*/cert.pem",
            "etc/openssl@*/openssl.cnf",
        ],
        reason: "`etc` and `var` hold settings and data of services",
    },
    InstallationFolder { folder: ".local/lib", parts: &[], reason: "libraries alone" },
    InstallationFolder {
        folder: ".local/pipx",
        parts: &["shared", "venvs/*/bin", "venvs/*/lib", "venvs/*/lib64", "venvs/*/share", "venvs/*/pyvenv.cfg"],
        reason: "`pipx_metadata.json` holds the options of pip, with addresses of private indexes",
    },
    InstallationFolder {
        folder: ".local/share/fnm",
        parts: &["node-versions", "aliases"],
        reason: "nothing else is needed",
    },
    InstallationFolder {
        folder: ".local/share/mise",
        parts: &["bin", "shims", "installs", "plugins/*/bin", "plugins/*/lib", "plugins/*/hooks"],
        reason: "clones of plugins name the addresses that they came from, with tokens of private ones",
    },
    InstallationFolder {
        folder: ".local/share/pipx",
        parts: &["shared", "venvs/*/bin", "venvs/*/lib", "venvs/*/lib64", "venvs/*/share", "venvs/*/pyvenv.cfg"],
        reason: "`pipx_metadata.json` holds the options of pip, with addresses of private indexes",
    },
    InstallationFolder {
        folder: ".local/share/pnpm",
        parts: &[PROGRAMS, "bin", "nodejs", "global/*/node_modules", "global/*/.pnpm", ".tools"],
        reason: "settings next to the programs contain tokens of registries; the store holds packages of all projects",
    },
    InstallationFolder {
        folder: ".local/share/rtx",
        parts: &["bin", "shims", "installs", "plugins/*/bin", "plugins/*/lib", "plugins/*/hooks"],
        reason: "clones of plugins name the addresses that they came from, with tokens of private ones",
    },
    InstallationFolder {
        folder: ".local/share/uv/python",
        parts: &[],
        reason: "installations alone; uv's credentials are next to it",
    },
    InstallationFolder {
        folder: ".local/share/uv/tools",
        parts: &["*/bin", "*/lib", "*/lib64", "*/share", "*/pyvenv.cfg"],
        reason: "`uv-receipt.toml` names the addresses that a tool came from, with passwords of private ones",
    },
    like_rbenv!(".nodenv"),
    InstallationFolder {
        folder: ".npm-global",
        parts: &["bin", "lib", "share"],
        reason: "`etc/npmrc` holds tokens of registries",
    },
    InstallationFolder {
        folder: ".npm-packages",
        parts: &["bin", "lib", "share"],
        reason: "`etc/npmrc` holds tokens of registries",
    },
    InstallationFolder {
        folder: ".nvm",
        parts: &["versions", "alias", "nvm.sh", "nvm-exec"],
        reason: "the clone names the address that it came from; caches",
    },
    InstallationFolder {
        folder: ".opam",
        parts: &["*/bin", "*/sbin", "*/lib", "*/share"],
        reason: "`repo`, `config` and the sources of a switch name addresses, with tokens of private ones",
    },
    like_rbenv!(".phpenv"),
    like_rbenv!(".plenv"),
    like_rbenv!(".pyenv"),
    like_rbenv!(".rbenv"),
    InstallationFolder {
        folder: ".rustup",
        parts: &[],
        reason: "toolchains, and which of them is the usual one; the tokens of registries are cargo's",
    },
    InstallationFolder {
        folder: ".rvm",
        parts: &["bin", "rubies", "gems", "wrappers", "environments", "scripts", "lib"],
        reason: "`user` holds settings, `log` what was run",
    },
    InstallationFolder {
        folder: ".sdkman",
        parts: &["bin", "candidates", "libexec", "src"],
        reason: "`etc` holds settings; caches",
    },
    InstallationFolder {
        folder: ".swiftly",
        parts: &["bin", "toolchains", "config.json"],
        reason: "nothing else is needed",
    },
    InstallationFolder {
        folder: ".volta",
        parts: &["bin", "tools", "layout.v*"],
        reason: "`hooks.json` names addresses, with tokens of private ones",
    },
    InstallationFolder {
        folder: ".yarn",
        parts: &["bin"],
        reason: "as a global folder it holds packages of private registries",
    },
];

/// Returns the known installation folder that contains a path below the home.
pub(super) fn of(of_home: &Path) -> Option<&'static InstallationFolder> {
    // Comparing paths parses their components, so texts are compared first.
    let text = of_home.as_os_str().as_encoded_bytes();
    let may_hold = |manager: &&InstallationFolder| text.starts_with(manager.folder.as_bytes());
    MANAGERS.iter().filter(may_hold).find(|manager| of_home.starts_with(manager.folder))
}

impl InstallationFolder {
    /// Returns the visible parts of the folder at `place`. They may include paths that do not exist.
    pub(super) fn parts_in(&self, place: &Path) -> Vec<PathBuf> {
        if self.parts.is_empty() {
            return vec![place.to_path_buf()];
        }
        let mut listed = EntryNameCache::default();
        let parts = self.parts.iter().flat_map(|part| match *part {
            PROGRAMS => programs_in(place),
            part => part.split('/').fold(vec![place.to_path_buf()], |folders, name| {
                folders.iter().flat_map(|folder| matching_entries(folder, name, &mut listed)).collect()
            }),
        });
        parts.collect()
    }
}

/// Names of the entries of folders, by the path of the folder. Each folder is read once, because it may contain several
/// parts.
type EntryNameCache = HashMap<PathBuf, Vec<String>>;

/// Returns the paths of the entries of a folder that match a name with at most one wildcard. Without a wildcard,
/// returns the path with this name, which may not exist.
fn matching_entries(folder: &Path, name: &str, listed: &mut EntryNameCache) -> Vec<PathBuf> {
    let Some((start, end)) = name.split_once('*') else { return vec![folder.join(name)] };
    let fits = |entry: &str| entry.len() >= start.len() + end.len() && entry.starts_with(start) && entry.ends_with(end);
    let names = listed.entry(folder.to_path_buf()).or_insert_with(|| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten().take(MAX_ENTRIES);
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
    });
    names.iter().filter(|name| fits(name)).map(|name| folder.join(name)).collect()
}

fn programs_in(folder: &Path) -> Vec<PathBuf> {
    let is_program = |path: &PathBuf| {
        fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().take(MAX_ENTRIES);
    entries.map(|entry| entry.path()).filter(is_program).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_installation_folder_is_listed_once_with_a_reason() {
        for manager in MANAGERS {
            assert_eq!(MANAGERS.iter().filter(|other| Path::new(other.folder).starts_with(manager.folder)).count(), 1);
            assert!(!manager.reason.is_empty(), "{}", manager.folder);
        }
        assert!(MANAGERS.is_sorted_by_key(|manager| manager.folder));
    }
}
