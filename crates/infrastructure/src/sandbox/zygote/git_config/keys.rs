//! Settings that make git, or a tool built on it, run a program, read more settings, or work in another place.

use super::parse::GitSetting;

/// Sections of which every setting is refused.
const SECTIONS: [&str; 21] = [
    "alias",
    // It tests and signs outgoing patches with commands.
    "b4",
    "browser",
    "credential",
    "cvsimport",
    // It has hooks and procedures, and loads modules.
    "datalad",
    "difftool",
    "filter",
    "fsmonitor",
    "gitcvs",
    "guitool",
    "hook",
    "include",
    "includeif",
    "instaweb",
    "man",
    "mergetool",
    "pager",
    "sendemail",
    "url",
    "web",
];
/// Names of settings with the address of a repository.
const ADDRESSES: [&str; 6] = ["url", "pushurl", "annexurl", "remote", "pushremote", "pushdefault"];
/// URL schemes that git implements itself. For any other scheme it runs `git-remote-SCHEME`.
const SCHEMES: [&str; 9] = ["http", "https", "ssh", "git", "file", "ftp", "ftps", "git+ssh", "ssh+git"];
/// Sections in which names with one of the [`ENDINGS`] are only switches.
const SWITCHES: [&str; 2] = ["advice", "color"];
/// Endings of names, in any section, of settings that name a program, select one, or are passed to one.
const ENDINGS: [&str; 18] = [
    "-args", "-options", "askpass", "bin", "browser", "cmd", "command", "driver", "editor", "gitproxy", "helper",
    "hook", "pager", "prog", "program", "textconv", "tool", "tunnel",
];

impl GitSetting {
    /// Returns `true` unless a command may make this setting. `may_stand` returns `true` if the repository's working
    /// tree may be at a path.
    pub(in crate::sandbox::zygote) fn is_refused(&self, may_stand: &dyn Fn(&[u8]) -> bool) -> bool {
        let key = String::from_utf8_lossy(&self.key);
        let Some((section, rest)) = key.split_once('.') else { return false };
        let (subsection, name) = rest.rsplit_once('.').unwrap_or(("", rest));
        let value = String::from_utf8_lossy(self.value.as_deref().unwrap_or_default());
        let of_annex = name.strip_prefix("annex-").or_else(|| (section == "annex").then_some(name)).unwrap_or_default();
        if matches!(of_annex, "externaltype" | "shell") || of_annex.starts_with("rsync-") {
            return true;
        }
        let is_program = || !SWITCHES.contains(&section) && ENDINGS.iter().any(|ending| name.ends_with(ending));
        if SECTIONS.contains(&section) || is_program() {
            return true;
        }
        match section {
            "core" => match name {
                "worktree" => !self.value.as_deref().is_some_and(may_stand),
                _ => matches!(name, "fsmonitor" | "hookspath" | "attributesfile" | "virtualfilesystem"),
            },
            "annex" => subsection == "security",
            "diff" => name == "external",
            // Each line after a line break is a separate step of the rebase; `exec` is one.
            "rebase" => name == "instructionformat",
            // Git writes files to this folder by itself.
            "format" => name == "outputdirectory",
            "gc" => name == "repackfilterto",
            "extensions" => match name {
                "refstorage" => value.contains(':'),
                // The name of a remote may be an address.
                _ => name == "partialclone" && names_helper(&value),
            },
            "remote" if names_helper(subsection) => true,
            // An address of the form `rsh:command` is run.
            "git-p4" => name == "port",
            "interactive" => name == "difffilter",
            "init" => name == "templatedir",
            // The name of a strategy is the name of a program.
            "pull" => matches!(name, "twohead" | "octopus"),
            "branch" if name == "mergeoptions" => true,
            "remote" if matches!(name, "uploadpack" | "receivepack" | "vcs" | "proxy") => true,
            "remote" | "branch" | "submodule" if ADDRESSES.contains(&name) => names_helper(&value),
            "remotes" => value.split_whitespace().any(names_helper),
            "submodule" => name == "update" && value.starts_with('!'),
            "protocol" => name == "allow",
            "gitflow" => subsection == "path" && name == "hooks",
            "secrets" => name == "providers",
            "tig" => subsection.eq_ignore_ascii_case("bind"),
            "stgit" => subsection.starts_with("alias"),
            "branchless" => subsection.starts_with("test.alias"),
            "svn" | "svn-remote" => name == "configdir",
            "lfs" => {
                matches!(name, "standalonetransferagent" | "storage")
                    || ["customtransfer", "extension"]
                        .iter()
                        .any(|one| subsection.to_ascii_lowercase().starts_with(one))
            }
            // Cookies are written to any configured file. Certificates and keys may be addresses of modules.
            "http" => {
                matches!(name, "cookiefile" | "savecookies" | "sslverify" | "proxy" | "curloptresolve")
                    || ["cainfo", "capath", "sslcert", "sslkey"].iter().any(|ending| name.ends_with(ending))
            }
            _ => false,
        }
    }

    /// Returns `true` if this setting is the path of the repository's working tree.
    pub(in crate::sandbox::zygote) fn is_worktree(&self) -> bool {
        self.key == b"core.worktree"
    }

    /// Returns bytes that identify the setting: its key and its value.
    pub(in crate::sandbox::zygote) fn bytes(&self) -> Vec<u8> {
        // A key contains no line break.
        [self.key.as_slice(), b"\n", self.value.as_deref().unwrap_or(b"\n")].concat()
    }

    /// Returns the key for a message, escaped and at most 100 characters long.
    pub(super) fn shown(&self) -> String {
        let key = String::from_utf8_lossy(&self.key);
        key.chars().take(100).flat_map(char::escape_debug).collect()
    }
}

/// Returns `true` if an address has the form `helper::address` or `helper://address`, which runs `git-remote-helper`.
fn names_helper(address: &str) -> bool {
    let rest =
        address.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.' | '_' | ' '));
    rest.starts_with("::") || rest.starts_with("://") && !SCHEMES.contains(&&address[..address.len() - rest.len()])
}
