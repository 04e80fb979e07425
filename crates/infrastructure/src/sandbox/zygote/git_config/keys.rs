//! Which settings make git, or what is built on it, run a program, read more settings, or lead it elsewhere.

use super::parse::Setting;

/// Sections of which every setting is refused.
const SECTIONS: [&str; 22] = [
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
    "svn",
    "svn-remote",
    "url",
    "web",
    "imap",
    "protocol",
];
/// Names that mean a program, or what chooses one, in whatever section they end the name there.
const ENDINGS: [&str; 16] = [
    "askpass", "browser", "cmd", "command", "driver", "editor", "exec", "gitproxy", "helper", "hook", "pager", "prog",
    "program", "textconv", "tool", "tunnel",
];

impl Setting {
    /// Whether it has to be there before a command to be there after it. `depth` is how many folders a repository of a
    /// submodule stands below its root; `None` for others.
    pub(super) fn is_refused(&self, depth: Option<usize>) -> bool {
        let key = String::from_utf8_lossy(&self.key);
        let Some((section, rest)) = key.split_once('.') else { return false };
        let (subsection, name) = rest.rsplit_once('.').unwrap_or(("", rest));
        let value = String::from_utf8_lossy(self.value.as_deref().unwrap_or_default());
        if SECTIONS.contains(&section) || section != "color" && ENDINGS.iter().any(|ending| name.ends_with(ending)) {
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
            // `helper::address` runs `git-remote-helper`.
            "remote" | "remotes" | "branch" => value.contains("::"),
            "submodule" => name == "update" && value.starts_with('!') || name == "url" && value.contains("::"),
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

    /// The key as it is told.
    pub(super) fn shown(&self) -> String {
        let key = String::from_utf8_lossy(&self.key);
        key.chars().take(100).flat_map(char::escape_debug).collect()
    }
}

/// Whether the working tree lies in the root: so many folders up, and then down alone.
fn is_beside(value: &str, depth: usize) -> bool {
    let parts: Vec<&str> = value.split('/').collect();
    let ups = parts.iter().take_while(|part| **part == "..").count();
    let is_plain = |part: &str| !matches!(part, "" | "." | "..") && !part.eq_ignore_ascii_case(".git");
    ups == depth && parts.len() > ups && parts.iter().skip(ups).copied().all(is_plain)
}
