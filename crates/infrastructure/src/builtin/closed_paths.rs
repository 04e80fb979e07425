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
use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    time::Duration,
};
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
    /// Not to be changed without a yes, as they are met.
    asked: Vec<PathBuf>,
}

impl ClosedPaths {
    /// What the rules close to this call.
    ///
    /// # Errors
    /// When not every path could be looked at: then nothing may be started.
    pub(super) async fn of(run: &Run<'_>) -> Result<Self, ToolFailure> {
        let grant = &run.context().grant;
        // Toolstead's own data, whatever the rules say and wherever it lies: folders beside the roots are shown, too.
        let mut closed = Self { hidden: grant.roots().forbidden.clone(), ..Self::default() };
        if grant.has_rules_against_paths() {
            let (workspace, grant) = (run.world().workspace.clone(), grant.of_running_command());
            let walk = move |files: &GrantedWorkspace| {
                found(&GrantedWorkspace::new(workspace, grant, files.stop().within(MAX_TIME)), closed)
            };
            closed = run.on_files(walk).await?;
        }
        if closed.hidden.len() + closed.sealed.len() > MAX_CLOSED {
            let message = format!("more than {MAX_CLOSED} paths of the workspace are closed by rules");
            return Err(not_told(message));
        }
        Ok(closed)
    }

    fn seal(&mut self, path: &Path, objection: Verdict) {
        match objection {
            Verdict::Allow => {}
            Verdict::Ask => self.asked.push(path.to_path_buf()),
            Verdict::Deny => self.sealed.push(path.to_path_buf()),
        }
    }

    fn add(&mut self, other: Self) {
        self.hidden.extend(other.hidden);
        self.sealed.extend(other.sealed);
        self.asked.extend(other.asked);
    }
}

fn not_told(message: String) -> ToolFailure {
    ToolFailure::new(ErrorKind::BudgetExhausted, format!("{message}, so no command can be kept from them"))
        .next("Name fewer or narrower paths in deny and ask rules, or smaller roots.")
}

/// Walks all roots.
fn found(files: &GrantedWorkspace, mut closed: ClosedPaths) -> Result<ClosedPaths, ToolFailure> {
    let (grant, mut left) = (files.grant(), MAX_ENTRIES);
    let roots = grant.roots();
    for root in roots.write.iter().chain(&roots.read_only) {
        let path = PathAccess { lexical: root.clone(), real: root.clone(), tree: false };
        let reading = Access::ReadPath(path.clone());
        if !grant.permits(&reading) {
            closed.hidden.push(root.clone());
            continue;
        }
        let objection = objection(grant, &path, FileKind::Folder);
        closed.seal(root, objection);
        let limits = WalkLimits { entries: left, depth: MAX_DEPTH, order: WalkOrder::AnyOrder };
        let folder = files.find_lexical(root)?;
        let (walked, workers) = files.walk(&folder, limits, objection, &Closed { grant })?;
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
    let room = MAX_CLOSED.saturating_sub(closed.hidden.len() + closed.sealed.len());
    let asked = std::mem::take(&mut closed.asked);
    closed.sealed.extend(folded(asked, room, grant));
    Ok(closed)
}

/// What ask rules seal, as at most so many paths: of too many the folders that hold them, the lower the better, but none
/// in which something was approved.
fn folded(paths: Vec<PathBuf>, most: usize, grant: &Grant) -> Vec<PathBuf> {
    if paths.len() <= most {
        return paths;
    }
    let depth = |path: &Path| {
        let below = grant.roots().containing(path).and_then(|(root, _)| path.strip_prefix(root).ok());
        below.map_or(0, |below| below.components().count())
    };
    let paths: Vec<(usize, &Path)> = paths.iter().map(|path| (depth(path), &**path)).collect();
    let deepest = paths.iter().map(|(depth, _)| *depth).max().unwrap_or_default();
    let at = |level: usize| -> BTreeSet<&Path> {
        paths.iter().filter_map(|(depth, path)| path.ancestors().nth(depth.saturating_sub(level))).collect()
    };
    let folders = (0..deepest).rev().map(at).find(|folders| folders.len() <= most).unwrap_or_default();
    folders.into_iter().filter(|folder| !grant.approves_writing_in(folder)).map(Path::to_path_buf).collect()
}

/// Whether a rule keeps the call from writing what it may read: one that denies it, or one that asks, since nobody can be
/// asked any more. A folder is sealed where a rule closes whatever is in it, also what is not there yet.
fn objection(grant: &Grant, path: &PathAccess, kind: FileKind) -> Verdict {
    let is_folder = kind == FileKind::Folder;
    let path = if is_folder { path.clone().whole_tree() } else { path.clone() };
    let real = path.real.clone();
    match grant.objection_to_change(path) {
        // What was approved in a folder must be within reach there.
        Verdict::Ask if is_folder && grant.approves_writing_in(&real) => Verdict::Allow,
        verdict => verdict,
    }
}

struct Closed<'a> {
    grant: &'a Grant,
}

impl Visitor for Closed<'_> {
    /// What seals a folder, with all that it holds.
    type Context = Verdict;
    type Worker = ClosedPaths;

    fn worker(&self) -> ClosedPaths {
        ClosedPaths::default()
    }

    fn enter(&self, folder: &Folder<'_>, above: &Verdict) -> Verdict {
        objection(self.grant, folder.path(), FileKind::Folder).max(*above)
    }

    fn pass_over(&self, closed: &mut ClosedPaths, path: &PathAccess) {
        closed.hidden.push(path.real.clone());
    }

    fn meet(&self, closed: &mut ClosedPaths, entry: &Entry<'_>, above: &Verdict) -> Visit {
        // In a root that is read-only it is sealed anyhow, and everything of it is denied.
        let is_writable = self.grant.roots().write.iter().any(|root| entry.path().real.starts_with(root));
        let objection = objection(self.grant, entry.path(), entry.kind());
        // Its folder seals it, but not what a link leads to.
        let is_held = objection <= *above && entry.kind() != FileKind::Link;
        if is_writable && !is_held {
            closed.seal(&entry.path().real, objection);
        }
        Visit::Continue
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests make links behind the tools' back")]
mod tests {
    use crate::builtin::tests::Bench;
    use serde_json::json;
    use toolstead_domain::permission::rule::Effect;

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

    #[test]
    fn an_ask_rule_on_all_changes_is_answered_with_the_command() {
        for rules in [&["Edit"][..], &["Write", "Edit(other)"]] {
            check_asked(rules, "tee open.txt <<< changed > /dev/null; cat open.txt", &["changed\n"], &["of open.txt"]);
        }
    }

    #[test]
    fn what_a_link_in_a_sealed_folder_leads_to_is_sealed() {
        for bench in [Bench::with_deny(&["Edit(links/**)"]), Bench::with_ask(&["Edit(links/**)"])] {
            bench.put("target.txt", "as it was");
            bench.put("links/file", "");
            std::os::unix::fs::symlink("../target.txt", bench.path("links/link")).unwrap();
            check_on(&bench, "tee target.txt <<< changed > /dev/null; cat target.txt", &["as it was"], &["changed"]);
        }
    }

    #[test]
    fn more_paths_than_can_be_sealed_are_sealed_with_their_folders_where_rules_only_ask() {
        let many = |bench: Bench| {
            for number in 0..=super::MAX_CLOSED {
                bench.put(&format!("packages/{}/{number}.json", number % 7), "");
            }
            bench.put("here.json", "as it was");
            bench
        };
        let change = "touch packages/8; touch packages/3/new; touch new; tee here.json <<< changed > /dev/null; \
                      ls; ls packages packages/3; cat here.json";
        let asked = many(Bench::with_ask(&["Edit(*.json)"]));
        check_on(&asked, change, &["new\n", "packages", "\n8\n", "as it was"], &["2999.json\nnew"]);
        assert!(asked.exists("new") && !asked.exists("packages/3/new"));
        // What is denied is not given up.
        let both = many(Bench::with_ask(&["Edit(*.json)"]).with_rule(Effect::Deny, "Edit(*.lock)"));
        both.put("packages/3/file.lock", "as it was");
        let touched = "touch packages/3/new.json; tee packages/3/file.lock <<< changed; cat packages/3/file.lock";
        check_on(&both, touched, &["as it was"], &[]);
        assert_eq!(both.get("packages/3/file.lock"), b"as it was");
        let denied = many(Bench::with_deny(&["Edit(*.json)"])).call("bash", json!({"command": "true"})).unwrap_err();
        assert!(denied.text().contains("paths of the workspace are closed by rules"), "{}", denied.text());
    }
}
