//! Environment of a child process. It is built from a short list and never inherited.

use std::{collections::BTreeMap, path::Path};
use toolstead_domain::sandbox_policy::SYSTEM_PATH;

/// Returns the environment that every child starts from: `PATH`, `HOME`, `USER`, `LANG`, `TMPDIR`, and `TZ` and `TERM`
/// if the runtime has them. Keys, tokens and sockets of agents are not included. The caller adds variables that the
/// configuration declares for one child.
///
/// `runtime` reads a variable of the runtime's own environment. `PATH` has the runtime's absolute folders in their
/// order, so that `npx` or `uvx` is the one that the user has installed, followed by the system folders that are not
/// among them. Relative and empty entries are omitted, because programs could then come from the working folder of the
/// child.
pub fn base(runtime: impl Fn(&str) -> Option<String>) -> BTreeMap<String, String> {
    let given = |name: &str| runtime(name).filter(|value| !value.is_empty() && !value.contains('\0'));
    let mut folders: Vec<String> = Vec::new();
    for folder in given("PATH").as_deref().unwrap_or("").split(':').chain(SYSTEM_PATH.split(':')) {
        if Path::new(folder).is_absolute() && !folders.iter().any(|known| known == folder) {
            folders.push(folder.into());
        }
    }
    let mut environment = BTreeMap::from([("PATH".to_owned(), folders.join(":"))]);
    for (name, default) in [
        ("HOME", Some("/")),
        ("USER", Some("nobody")),
        ("LANG", Some("C.UTF-8")),
        ("TMPDIR", Some("/tmp")),
        ("TZ", None),
        ("TERM", None),
    ] {
        if let Some(value) = given(name).or(default.map(str::to_owned)) {
            environment.insert(name.into(), value);
        }
    }
    environment
}

#[cfg(test)]
mod tests {
    use super::*;

    fn built(runtime: &[(&str, &str)]) -> BTreeMap<String, String> {
        base(|name| runtime.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn a_child_environment_contains_only_listed_variables() {
        let environment = built(&[
            ("HOME", "/home/a"),
            ("TZ", "UTC"),
            ("AWS_SECRET_ACCESS_KEY", "s"),
            ("SSH_AUTH_SOCK", "/s"),
            ("USER", ""),
        ]);
        let expected = [
            ("HOME", "/home/a"),
            ("LANG", "C.UTF-8"),
            ("PATH", SYSTEM_PATH),
            ("TMPDIR", "/tmp"),
            ("TZ", "UTC"),
            ("USER", "nobody"),
        ];
        assert_eq!(environment, expected.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
    }

    #[test]
    fn path_keeps_absolute_user_folders_and_drops_relative_entries() {
        let path = built(&[("PATH", "/opt/node/bin::.:bin:/usr/bin:/opt/node/bin")]).remove("PATH");
        assert_eq!(path.as_deref(), Some("/opt/node/bin:/usr/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/sbin:/bin"));
    }
}
