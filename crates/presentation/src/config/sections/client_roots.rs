//! Checks the folders that a client offers as roots. Used if the configuration defines no root.

use crate::config::{
    layers::folders::{StandardFolders, real},
    tree::problem::Problem,
    trust::{self, TrustList},
};
use std::path::{Path, PathBuf};
use toolstead_domain::invisible_characters::{displaces_text, is_invisible};

/// File systems of the kernel and folders for run-time state. The sandbox rejects them as roots, too.
const OF_THE_SYSTEM: [&str; 4] = ["/proc", "/sys", "/dev", "/run"];

/// Checker of the folders that an MCP client offers as roots.
#[derive(Debug, Clone)]
pub struct ClientRootChecker {
    folders: StandardFolders,
}

impl ClientRootChecker {
    /// Creates a checker. It rejects every root that contains the user's home folder, and every root that contains a
    /// folder for data or configuration or lies within one.
    pub fn new(folders: StandardFolders) -> Self {
        Self { folders }
    }

    /// Returns the resolved path of a folder that may be a root. Blocks.
    ///
    /// # Errors
    /// The reason why the folder may not be a root.
    pub fn judge(&self, folder: &Path) -> Result<PathBuf, String> {
        let root = folder.canonicalize().map_err(|error| format!("it cannot be used: {error}"))?;
        let is_shown_as_it_is = root.to_str().is_some_and(|text| !text.chars().any(is_misleading));
        let own = [&self.folders.data, &self.folders.config];
        let mut own = own.into_iter().flatten().chain([&self.folders.administrator]).map(|path| real(path));
        match () {
            () if !root.is_dir() => Err("it is not a folder".into()),
            () if !is_shown_as_it_is => Err("its name cannot be shown as it is".into()),
            () if root.parent().is_none() => Err("it is the whole machine".into()),
            () if self.is_home(&root) => Err("it is a home folder, or holds one".into()),
            () if OF_THE_SYSTEM.iter().any(|place| root.starts_with(place)) => Err("it belongs to the system".into()),
            () if own.any(|own| own.starts_with(&root) || root.starts_with(&own)) => {
                Err("it holds the data or the configuration of this program, or belongs to it".into())
            }
            () => Ok(root),
        }
    }

    /// Returns `true` for the user's home folder, a folder that contains it, and the usual locations of other users'
    /// home folders.
    fn is_home(&self, root: &Path) -> bool {
        let holds_own = self.folders.home.as_deref().is_some_and(|home| home.starts_with(root));
        let usual = ["/home", "/root"].map(Path::new);
        holds_own || usual.contains(&root) || root.parent() == Some(usual[0])
    }

    /// Returns `true` if the user trusted this folder as a root. Blocks.
    pub fn is_trusted(&self, root: &Path) -> bool {
        TrustList::load(&self.folders).0.is_root(root)
    }

    /// Trusts this folder as a root, or revokes the trust. Blocks.
    ///
    /// # Errors
    /// A [`Problem`] if the list of trusted files cannot be written.
    pub fn set_trust(&self, root: &Path, trusted: bool) -> Result<(), Problem> {
        trust::set_root(&self.folders, root, trusted)
    }
}

/// Returns `true` if the character could make a name look like another one.
fn is_misleading(c: char) -> bool {
    matches!(c, '\n' | '\t') || displaces_text(c) || is_invisible(c)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, os::unix::fs::symlink};

    #[test]
    fn a_client_root_can_be_a_project_but_no_home_system_or_configuration_folder() {
        let machine = tempfile::tempdir().unwrap();
        let top = machine.path().canonicalize().unwrap();
        for name in
            ["people/ada/project", "people/ada/.local/share/toolstead/blobs", "people/ada/.config/toolstead", "etc"]
        {
            fs::create_dir_all(top.join(name)).unwrap();
        }
        fs::write(top.join("file"), "").unwrap();
        fs::create_dir(top.join("a\nb")).unwrap();
        symlink(top.join("people/ada/project"), top.join("link")).unwrap();
        symlink(top.join("people/ada"), top.join("link home")).unwrap();
        let home = top.join("people/ada");
        let roots = ClientRootChecker::new(StandardFolders {
            start: top.clone(),
            config: Some(home.join(".config/toolstead")),
            data: Some(home.join(".local/share/toolstead")),
            administrator: top.join("etc/toolstead"),
            home: Some(home.clone()),
        });
        assert_eq!(roots.judge(&home.join("project")), Ok(home.join("project")));
        assert_eq!(roots.judge(&top.join("link")), Ok(home.join("project")));
        for (folder, reason) in [
            ("/", "whole machine"),
            ("people", "home folder"),
            ("people/ada", "home folder"),
            ("link home", "home folder"),
            ("people/ada/.local", "data or the configuration"),
            ("people/ada/.local/share/toolstead/blobs", "data or the configuration"),
            ("people/ada/.config", "data or the configuration"),
            ("etc", "data or the configuration"),
            ("file", "not a folder"),
            ("missing", "cannot be used"),
            ("a\nb", "cannot be shown"),
            ("/proc/self", "belongs to the system"),
            ("/dev", "belongs to the system"),
        ] {
            let refused = roots.judge(&top.join(folder)).unwrap_err();
            assert!(refused.contains(reason), "{folder}: {refused}");
        }
    }

    #[test]
    fn trust_in_a_folder_is_stored_until_it_is_revoked() {
        let data = tempfile::tempdir().unwrap();
        let folders = StandardFolders {
            start: "/".into(),
            home: None,
            config: None,
            data: Some(data.path().join("data")),
            administrator: "/nowhere".into(),
        };
        let roots = ClientRootChecker::new(folders);
        let (one, other) = (Path::new("/w/one"), Path::new("/w/other"));
        assert!(!roots.is_trusted(one));
        roots.set_trust(one, true).unwrap();
        roots.set_trust(other, true).unwrap();
        assert!(
            roots.is_trusted(one) && !roots.is_trusted(Path::new("/w")) && !roots.is_trusted(Path::new("/w/one/in"))
        );
        roots.set_trust(one, false).unwrap();
        assert!(!roots.is_trusted(one) && roots.is_trusted(other));
    }
}
