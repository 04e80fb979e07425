//! Which paths of the workspace rules close to a command, looked up before it starts.
//!
//! A rule is a pattern and the kernel knows paths: what the patterns fit is found by a walk. What appears later, and what
//! has a second name by a hard link, is not held by it.

use crate::{
    builtin::run::Run,
    sandbox::workspace::{
        facts::FileKind,
        granted::GrantedWorkspace,
        walk::{Entry, Folder, Visit, Visitor, WalkEnd, WalkLimits, WalkOrder},
    },
};
use std::{path::PathBuf, time::Duration};
use toolstead_domain::{
    access::{Access, PathAccess},
    error_kind::ErrorKind,
    permission::{decision::Verdict, grant::Grant},
    tool_failure::ToolFailure,
};

/// As many entries of all roots together are looked at.
const MAX_ENTRIES: usize = 400_000;
/// As many folders within each other.
const MAX_DEPTH: usize = 200;
/// As many paths are closed: each is a mount.
const MAX_CLOSED: usize = 2_000;
/// It takes no longer than this.
const MAX_TIME: Duration = Duration::from_secs(10);

/// Real paths that a command must not reach.
#[derive(Debug, Default)]
pub(super) struct ClosedPaths {
    /// Not to be read.
    pub(super) hidden: Vec<PathBuf>,
    /// Not to be changed.
    pub(super) sealed: Vec<PathBuf>,
}

impl ClosedPaths {
    /// What the rules close to this call.
    ///
    /// # Errors
    /// When not every path could be looked at: then nothing may be started.
    pub(super) async fn of(run: &Run<'_>) -> Result<Self, ToolFailure> {
        let grant = &run.context().grant;
        // Toolstead's own data, whatever the rules say and wherever it lies: folders beside the roots are shown, too.
        let mut closed = Self { hidden: grant.roots().forbidden.clone(), sealed: Vec::new() };
        if grant.has_rules_against_paths() {
            let (workspace, grant) = (run.world().workspace.clone(), grant.by_real_paths());
            let walk = |files: &GrantedWorkspace| {
                found(&GrantedWorkspace::new(workspace, grant, files.stop().within(MAX_TIME)))
            };
            closed.add(run.on_files(walk).await?);
        }
        if closed.hidden.len() + closed.sealed.len() > MAX_CLOSED {
            let message = format!("more than {MAX_CLOSED} paths of the workspace are closed by rules");
            return Err(not_told(message));
        }
        Ok(closed)
    }

    fn add(&mut self, other: Self) {
        self.hidden.extend(other.hidden);
        self.sealed.extend(other.sealed);
    }
}

fn not_told(message: String) -> ToolFailure {
    ToolFailure::new(ErrorKind::BudgetExhausted, format!("{message}, so no command can be kept from them"))
        .next("Name fewer or narrower paths in deny and ask rules, or smaller roots.")
}

/// Walks all roots.
fn found(files: &GrantedWorkspace) -> Result<ClosedPaths, ToolFailure> {
    let (grant, mut closed, mut left) = (files.grant(), ClosedPaths::default(), MAX_ENTRIES);
    let roots = grant.roots();
    for root in roots.write.iter().chain(&roots.read_only) {
        let path = PathAccess { lexical: root.clone(), real: root.clone(), tree: false };
        let reading = Access::ReadPath(path.clone());
        if !grant.permits(&reading) {
            closed.hidden.push(root.clone());
            continue;
        }
        let is_all_sealed = is_sealed(grant, &path, FileKind::Folder);
        if is_all_sealed {
            closed.sealed.push(root.clone());
        }
        let limits = WalkLimits { entries: left, depth: MAX_DEPTH, order: WalkOrder::AnyOrder };
        let folder = files.find_lexical(root)?;
        let (walked, workers) = files.walk(&folder, limits, is_all_sealed, &Closed { grant })?;
        left = left.saturating_sub(walked.entries);
        workers.into_iter().for_each(|worker| closed.add(worker));
        let shown = root.display();
        match walked.ended {
            Some(WalkEnd::Entries) => {
                let message =
                    format!("`{shown}` holds more than {MAX_ENTRIES} entries, and rules may close some of them");
                return Err(not_told(message));
            }
            Some(WalkEnd::Time) => {
                let message = format!("looking for what rules close in `{shown}` took too long");
                return Err(not_told(message));
            }
            Some(WalkEnd::Visitor) | None => {}
        }
        if walked.unreadable > 0 {
            let message =
                format!("{} folders in `{shown}` cannot be looked into for what rules close", walked.unreadable);
            return Err(not_told(message));
        }
    }
    Ok(closed)
}

/// Whether a rule keeps the call from writing what it may read: one that denies it, or one that asks, since nobody can be
/// asked any more. A folder is sealed where a rule closes whatever is in it, also what is not there yet.
fn is_sealed(grant: &Grant, path: &PathAccess, kind: FileKind) -> bool {
    let is_folder = kind == FileKind::Folder;
    let path = if is_folder { path.clone().whole_tree() } else { path.clone() };
    let real = path.real.clone();
    match grant.objection(&Access::WritePath(path)) {
        Verdict::Allow => false,
        Verdict::Deny => true,
        // What was approved in a folder must be within reach there.
        Verdict::Ask => !(is_folder && grant.approves_writing_in(&real)),
    }
}

struct Closed<'a> {
    grant: &'a Grant,
}

impl Visitor for Closed<'_> {
    /// Whether a folder is sealed, with all that it holds.
    type Context = bool;
    type Worker = ClosedPaths;

    fn worker(&self) -> ClosedPaths {
        ClosedPaths::default()
    }

    fn enter(&self, folder: &Folder<'_>, is_sealed_above: &bool) -> bool {
        *is_sealed_above || is_sealed(self.grant, folder.path(), FileKind::Folder)
    }

    fn pass_over(&self, closed: &mut ClosedPaths, path: &PathAccess) {
        closed.hidden.push(path.real.clone());
    }

    fn meet(&self, closed: &mut ClosedPaths, entry: &Entry<'_>, is_in_sealed: &bool) -> Visit {
        // In a root that is read-only it is sealed anyhow, and everything of it is denied.
        let is_writable = self.grant.roots().write.iter().any(|root| entry.path().real.starts_with(root));
        if is_writable && !is_in_sealed && is_sealed(self.grant, entry.path(), entry.kind()) {
            closed.sealed.push(entry.path().real.clone());
        }
        Visit::Continue
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests make links behind the tools' back")]
mod tests {
    use crate::builtin::tests::Bench;
    use serde_json::json;

    #[track_caller]
    fn check(rules: &[&str], command: &str, these: &[&str], those: &[&str]) {
        check_on(&Bench::with_deny(rules), command, these, those);
    }

    /// Where each rule asks, and a person says yes to what is asked.
    #[track_caller]
    fn check_asked(rules: &[&str], command: &str, these: &[&str], those: &[&str]) {
        check_on(&Bench::with_ask(rules), command, these, those);
    }

    #[track_caller]
    fn check_on(bench: &Bench, command: &str, these: &[&str], those: &[&str]) {
        for name in ["a/secret/key", "a/secret/deep/key", "a/open.txt", "open.txt", ".env", "held.lock"] {
            bench.put(name, format!("contents of {name}\n"));
        }
        std::os::unix::fs::symlink(".env", bench.path("link")).unwrap();
        let result = bench.call("bash", json!({"command": command})).unwrap_or_else(|failure| failure.into_result());
        let text = format!("{} {:?}", result.joined_text(), result.structured_content());
        for part in these {
            assert!(text.contains(part), "{command} does not tell `{part}`: {text}");
        }
        for part in those {
            assert!(!text.contains(part), "{command} tells `{part}`: {text}");
        }
    }

    /// Beside a program on the `PATH`, with which it would be shown.
    #[test]
    fn own_data_is_hidden_outside_of_the_workspace_too() {
        let tool = tempfile::tempdir().unwrap();
        let top = tool.path().canonicalize().unwrap();
        for (name, text) in [("bin/x", "program\n"), ("data/key", "secret\n")] {
            std::fs::create_dir_all(top.join(name).parent().unwrap()).unwrap();
            std::fs::write(top.join(name), text).unwrap();
        }
        let bin = top.join("bin").display().to_string();
        let command = json!({"command": format!("cat {0}/bin/x {0}/data/key; true", top.display())});
        for (data, sees) in [("nothing", true), ("data", false)] {
            let bench = Bench::new().with_path_in(&bin).with_own_data(top.join(data));
            let text = bench.text("bash", command.clone());
            assert!(text.contains("program") && text.contains("secret") == sees, "{text}");
        }
    }

    #[test]
    fn what_deny_rules_name_cannot_be_read_by_a_command() {
        let everything = "cat .env link open.txt a/open.txt a/secret/key a/secret/deep/key";
        check(&["Read(.env)"], everything, &["of open.txt", "of a/secret/key"], &["of .env"]);
        check(&["Read(a/secret/**)"], everything, &["of .env", "of a/open.txt"], &["of a/secret/"]);
        check(&["Read(a/secret/**)"], "grep -rh contents .", &["of .env"], &["of a/secret/"]);
        check(
            &["Read(a/secret/key)"],
            "mv a b; mv a/secret b; cat */key */*/key",
            &["of a/secret/deep/key"],
            &["of a/secret/key"],
        );
        check(&["Read(a/secret/key)"], "ln a/secret/key x; cp a/secret/key x; cat x", &[], &["of a/secret/key"]);
        check(&["Read"], everything, &[], &["contents of"]);
    }

    #[test]
    fn what_ask_rules_name_is_closed_unless_the_command_was_approved_for_it() {
        let all = "cat a/secret/key a/secret/deep/key a/open.txt";
        let of_secret = ["of a/secret/key", "of a/secret/deep/key"];
        for rule in ["Read(a/secret/**)", "Read(a/secret)"] {
            check_asked(&[rule], all, &["of a/open.txt"], &of_secret);
            for opening in ["cat < a/secret/key", "cp a/secret/key x; cat x"] {
                check_asked(&[rule], &format!("{opening}; {all}"), &of_secret[..1], &of_secret[1..]);
            }
        }
        check_asked(&["Read(.env)"], "cat link", &[], &["of .env"]);
        check_asked(&["Read(.env)"], "cat < link", &["of .env"], &[]);
        let write = "for f in a/secret/key a/secret/deep/key a/secret/new; do tee $f <<< changed; cat $f; done";
        for rule in ["Write(a/secret/**)", "Edit(a/secret)"] {
            check_asked(&[rule], &format!("cat a/secret/*; {write}; ls a/secret"), &of_secret, &["new\n"]);
            check_asked(
                &[rule],
                "touch a/secret/new; ls a/secret; tee a/secret/key <<< x; cat a/secret/key",
                &["new\n", "of a/secret/key"],
                &[],
            );
            check_asked(&[rule], "rm a/secret/key; ls a/secret", &["deep\n"], &["key\n"]);
            check_asked(
                &[rule],
                "cp a/secret/key x; cat x; tee a/secret/new <<< y; ls a/secret",
                &of_secret[..1],
                &["new\n"],
            );
            check_asked(
                &[rule],
                "echo changed > a/secret/key; cat a/secret/key; tee a/secret/deep/key <<< x; cat a/secret/deep/key",
                &["changed\n", "of a/secret/deep/key"],
                &of_secret[..1],
            );
        }
    }

    #[test]
    fn what_deny_rules_on_changes_name_can_be_read_and_not_changed() {
        // With programs whose files the rules do not see: what they see is denied before it runs.
        let change =
            "truncate -s 0 held.lock; unlink held.lock; tee held.lock <<< x; cat held.lock; tee open.txt <<< ok";
        check(&["Edit(*.lock)"], change, &["of held.lock", "ok\n"], &[]);
        check(
            &["Write(a/**)"],
            "tee a/new <<< x; test -e a/new && echo made; find a -delete; cat a/open.txt; tee new <<< x",
            &["of a/open.txt", "x\n"],
            &["made"],
        );
        check(&["Edit"], "tee open.txt <<< x; cat open.txt", &["of open.txt"], &[]);
    }
}
