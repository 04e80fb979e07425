//! Which settings make git, or what is built on it, run a program, read more settings, or lead it elsewhere.

use super::parse::Setting;

/// Sections of which every setting is refused.
const SECTIONS: [&str; 18] = [
    "alias",
    "browser",
    "credential",
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
/// Sections of which none of these is more than a yes or a no.
const SWITCHES: [&str; 2] = ["advice", "color"];
/// What the names of programs end with, and of what chooses one, in whatever section they stand.
const ENDINGS: [&str; 15] = [
    "askpass", "browser", "cmd", "command", "driver", "editor", "gitproxy", "helper", "hook", "pager", "prog",
    "program", "textconv", "tool", "tunnel",
];

impl Setting {
    /// Whether it has to be there before a command to be there after it. `depth` is how many folders a repository of a
    /// submodule stands below its root; `None` for others.
    pub(in crate::sandbox::zygote) fn is_refused(&self, depth: Option<usize>) -> bool {
        let key = String::from_utf8_lossy(&self.key);
        let Some((section, rest)) = key.split_once('.') else { return false };
        let (subsection, name) = rest.rsplit_once('.').unwrap_or(("", rest));
        let value = String::from_utf8_lossy(self.value.as_deref().unwrap_or_default());
        let is_program = || !SWITCHES.contains(&section) && ENDINGS.iter().any(|ending| name.ends_with(ending));
        if SECTIONS.contains(&section) || is_program() {
            return true;
        }
        match section {
            "core" => match name {
                "worktree" => !depth.is_some_and(|depth| is_beside(&value, depth)),
                _ => matches!(name, "fsmonitor" | "hookspath" | "attributesfile" | "virtualfilesystem"),
            },
            "diff" => name == "external",
            "interactive" => name == "difffilter",
            "init" => name == "templatedir",
            "extensions" => name == "worktreeconfig",
            // The name of a strategy is that of a program.
            "pull" => matches!(name, "twohead" | "octopus"),
            "branch" if name == "mergeoptions" => true,
            "remote" if matches!(name, "uploadpack" | "receivepack" | "vcs" | "proxy") => true,
            "remote" | "remotes" | "branch" => names_helper(&value),
            "submodule" => name == "update" && value.starts_with('!') || name == "url" && names_helper(&value),
            "protocol" => name == "allow",
            "svn" | "svn-remote" => name == "configdir",
            "lfs" => {
                name == "standalonetransferagent"
                    || ["customtransfer", "extension"].iter().any(|one| subsection.starts_with(one))
            }
            // The cookies are written wherever it says.
            "http" => {
                matches!(name, "cookiefile" | "savecookies" | "sslverify" | "proxy" | "curloptresolve")
                    || name.ends_with("cainfo")
                    || name.ends_with("capath")
            }
            _ => false,
        }
    }

    /// What it is told apart from others by.
    pub(in crate::sandbox::zygote) fn bytes(&self) -> Vec<u8> {
        // A key holds no line break.
        [self.key.as_slice(), b"\n", self.value.as_deref().unwrap_or(b"\n")].concat()
    }

    /// The key as it is told.
    pub(super) fn shown(&self) -> String {
        let key = String::from_utf8_lossy(&self.key);
        key.chars().take(100).flat_map(char::escape_debug).collect()
    }
}

/// Whether an address is of the form `helper::address`, which runs `git-remote-helper`.
fn names_helper(address: &str) -> bool {
    let rest =
        address.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.' | '_' | ' '));
    rest.starts_with("::")
}

/// Whether the working tree lies in the root: so many folders up, and then down alone.
fn is_beside(value: &str, depth: usize) -> bool {
    let parts: Vec<&str> = value.split('/').collect();
    let ups = parts.iter().take_while(|part| **part == "..").count();
    let is_plain = |part: &str| !matches!(part, "" | "." | "..") && !part.eq_ignore_ascii_case(".git");
    ups == depth && parts.len() > ups && parts.iter().skip(ups).copied().all(is_plain)
}
