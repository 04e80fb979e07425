//! Hostile commands: their changes to protected names are undone, or reported as untrusted.

use super::*;

impl World {
    fn has(&self, name: &str) -> bool {
        fs::symlink_metadata(self.work().join(name)).is_ok()
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.work().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.work().join(name)).unwrap()
    }

    /// Runs git in the workspace, outside of any sandbox.
    fn git(&self, line: &str) {
        let script = format!("export GIT_CONFIG_GLOBAL=/dev/null; cd {} && {line}", self.work().display());
        let output = Command::new("bash").args(["-ec", &script]).output().unwrap();
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// A repository with a submodule and a second working tree, in the workspace.
    fn repository(&self) {
        self.git(
            "id='-c user.name=a -c user.email=a@b -c protocol.file.allow=always'; \
             git init -q lib && git $id -C lib commit -q --allow-empty -m one && \
             git init -q && git $id submodule --quiet add \"$PWD/lib\" sub && git $id commit -qm two && \
             git worktree add -q tree",
        );
    }
}

/// Renames, or fails. `mv` would copy and remove instead.
const RENAME: &str = "python3 -c 'import os, sys; os.rename(*sys.argv[1:])'";

/// Returns the mode that a command left on a folder, and makes the folder accessible again.
fn reopened(path: &Path) -> u32 {
    let Ok(found) = fs::metadata(path) else { return 0 };
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    found.mode() & 0o777
}

#[test]
fn planted_files_are_undone_even_if_the_command_obstructs_the_removal() {
    as_both("protected_names::planted_files_are_undone_even_if_the_command_obstructs_the_removal", async || {
        // Command, expected message, path that must not exist, and mode of the folder afterwards.
        for (script, said, gone, rights) in [
            (
                "touch .mcp.json.refused; for i in $(seq 99); do touch .mcp.json.refused-$i; done; echo x > .mcp.json",
                ".mcp.json.refused-",
                ".mcp.json",
                "",
            ),
            ("echo x > .mcp.json; chmod 555 .", "`.mcp.json.refused`", ".mcp.json", ". 555"),
            ("mkdir .claude; echo x > .claude/a; chmod 0 .claude .", "`.claude.refused`", ".claude", ". 0"),
            ("ln -s nowhere .mcp.json; ln -s .claude .claude", ".claude.refused", ".mcp.json .claude", ""),
            (
                "git init -q; echo x > .git/hooks/pre-commit; chmod 0 .git/hooks",
                "pre-commit",
                ".git/hooks/pre-commit",
                ".git/hooks 0",
            ),
            (
                "git init -q; echo x > .git/hooks/pre-commit; chmod 0 .git",
                "pre-commit",
                ".git/hooks/pre-commit",
                ".git 0",
            ),
            ("git init -q; rm -r .git/hooks; ln -s /tmp .git/hooks", "hooks.refused", ".git/hooks", ""),
            ("git init -q; rm -r .git/hooks; echo x > .git/hooks", "hooks.refused", ".git/hooks", ""),
            ("git init -q; printf x > $'.git/hooks/post-\\xff\\n'", "post-", ".git/hooks/post-\u{fffd}\n", ""),
            ("git init -q; n=$(printf 'x%.0s' $(seq 255)); echo x > .git/hooks/$n", "refused-", "", ""),
            (
                "git init -q; cd .git/hooks; for i in $(seq 100); do echo > x-$i; done; echo x > pre-commit",
                "`hooks.refused`",
                ".git/hooks",
                "",
            ),
            (
                "git init -q; cd .git/hooks; for i in $(seq 60); do echo > $i$(printf '\\001%.0s' $(seq 200)); done",
                "and there are more",
                "",
                "",
            ),
            ("git init -q; git config core.fsmonitor x; chmod 555 .git", "core.fsmonitor", "", ".git 555"),
            ("git init -q; git config core.fsmonitor x; mkdir .git/config.toolstead", "core.fsmonitor", "", ""),
            ("git init -q; git config core.fsmonitor x; chmod 0 .git/config", "config.refused", ".git/config", ""),
            ("git init -q; rm .git/config; mkdir -p .git/config/x", "config.refused", ".git/config", ""),
            (
                "git init -q; printf '[core \"fsmonitor\\0\"] x = y\\n' >> .git/config",
                "config.refused",
                ".git/config",
                "",
            ),
            ("git init -q; echo ../../x > .git/commondir", "commondir.refused", ".git/commondir", ""),
            (
                "git init -q; mkdir -p .git/remotes; echo URL: foo://x > .git/remotes/o",
                "remotes/o",
                ".git/remotes/o",
                "",
            ),
            ("echo gitdir: $HOME/x > .git", "`.git.refused`", ".git", ""),
            ("echo gitdir: /elsewhere/.git > .git", "`.git.refused`", ".git", ""),
            ("git init -q --separate-git-dir=$HOME/x", "`.git.refused`", ".git", ""),
            (
                "git init -q; git config core.fsmonitor x; touch .git/config.lock",
                "/.git/config.lock` existed the whole time",
                "",
                "",
            ),
            ("mkdir .vscode; echo x > .vscode/tasks.json", "tasks.json.refused", ".vscode/tasks.json", ""),
            ("mkdir .vscode; echo x > .vscode/mcp.json; chmod 0 .vscode", "mcp.json.refused", "", ".vscode 0"),
            ("ln -s /tmp .vscode", ".vscode.refused", ".vscode", ""),
            ("git init -q; ln -s /tmp .git/modules", "modules.refused", ".git/modules", ""),
            ("git init -q --bare x; mv x/* .; git config core.fsmonitor x", "HEAD.refused", "HEAD", ""),
            (
                "mkdir .git; git init -q --bare x; mv x/* .; git --git-dir=. config core.fsmonitor x",
                "HEAD.refused",
                "HEAD",
                "",
            ),
            ("echo ref: refs/heads/x > HEAD; echo /elsewhere > commondir", "HEAD.refused", "HEAD", ""),
        ] {
            let world = World::new();
            let done = world.bash(script).await;
            if let Some((name, mode)) = rights.split_once(' ') {
                assert_eq!(format!("{:o}", reopened(&world.work().join(name))), mode, "{script}");
            }
            assert_eq!(done.exit, Exit::Code(0), "{script}: {}", done.stderr);
            let message = done.undone.join("\n");
            assert!(message.contains(said), "{script}: {message}");
            assert!(done.left.is_empty() && message.len() < 16 << 10, "{script}: {:?}", done.left);
            for name in gone.split(' ').filter(|name| !name.is_empty()) {
                assert!(!world.has(name), "{script}: {name}");
            }
            if let Ok(config) = fs::read_to_string(world.work().join(".git/config")) {
                assert!(!config.contains("fsmonitor"), "{script}: {config}");
            }
            if let Ok(hooks) = fs::read_dir(world.work().join(".git/hooks")) {
                let names = hooks.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
                let left: Vec<_> =
                    names.filter(|name| !name.ends_with(".sample") && !name.contains(".refused")).collect();
                assert_eq!(left, [""; 0], "{script}");
            }
        }
    });
}

#[test]
fn planted_changes_in_submodules_and_worktrees_are_undone() {
    as_both("protected_names::planted_changes_in_submodules_and_worktrees_are_undone", async || {
        const EVIL: &str = "printf '[core]\\n\\tfsmonitor = ./x\\n'";
        // Command, expected message, and path that must not exist.
        for (script, said, gone) in [
            ("EVIL > .git/config.worktree", ".git/config.worktree", ""),
            ("echo ../../x > .git/commondir", "commondir.refused", ".git/commondir"),
            ("EVIL >> .git/modules/sub/config", "modules/sub/config", ""),
            ("git -C sub config core.worktree /etc", "core.worktree", ""),
            ("ln -s /tmp link; git -C sub config core.worktree ../../../link/x", "core.worktree", ""),
            ("mkdir .vscode; git -C sub config core.worktree ../../../.vscode", "core.worktree", ""),
            ("rm .git/modules/sub/config", "to its state before", ""),
            ("EVIL > .git/modules/sub/config.worktree", "sub/config.worktree", ""),
            ("echo ../x > .git/modules/sub/commondir", "sub/commondir", ".git/modules/sub/commondir"),
            (
                "cd .git/modules/sub/hooks; echo x > post-checkout",
                "post-checkout",
                ".git/modules/sub/hooks/post-checkout",
            ),
            ("echo x >> .git/modules/sub/hooks/pre-push", "pre-push", ".git/modules/sub/hooks/pre-push"),
            (
                "cd .git/modules; echo x > sub/hooks/pre-push; cp -a sub a; rm -r sub; mv a sub; EVIL >> sub/config; mkdir sub/modules; cp -a sub /tmp/x; mv /tmp/x sub/modules/y",
                "modules/y/config",
                ".git/modules/sub/hooks/pre-push .git/modules/sub/modules/y/hooks/pre-push",
            ),
            (
                "mkdir -p .git/modules/a/b; cd .git/modules/a/b; cp -a ../../sub c; EVIL >> c/config; echo x > c/hooks/pre-push",
                "a/b/c/config",
                ".git/modules/a/b/c/hooks/pre-push",
            ),
            ("ln -s ../../lib/.git .git/modules/link", "modules/link`", ".git/modules/link .git/modules/link.refused"),
            (
                "cd tree && git -c protocol.file.allow=always submodule --quiet update --init && cd ../.git/worktrees/tree/modules/sub && EVIL >> config && echo x > hooks/pre-commit",
                "tree/modules/sub/config",
                ".git/worktrees/tree/modules/sub/hooks/pre-commit",
            ),
            ("mv .git/modules .git/m; ln -s m .git/modules", "modules.refused", ".git/modules"),
            (
                "EVIL > .git/worktrees/tree/config.worktree; chmod 555 .git/worktrees/tree .git/worktrees",
                "tree/config.worktree",
                "",
            ),
            ("echo ../../../lib/.git > .git/worktrees/tree/commondir", "tree/commondir", ""),
            ("rm .git/worktrees/tree/commondir; EVIL > .git/worktrees/tree/config", "tree/commondir", ""),
            (
                "cp -a .git/worktrees/tree .git/worktrees/new; echo /x > .git/worktrees/new/commondir",
                "new/commondir",
                ".git/worktrees/new/commondir",
            ),
        ] {
            let world = World::new();
            world.repository();
            let before = |name: &str| world.read(&format!(".git/worktrees/tree/{name}"));
            let known = (before("commondir"), before("gitdir"));
            let script = script.replace("EVIL", EVIL);
            let done = world.bash(&script).await;
            for name in [".git/worktrees", ".git/worktrees/tree"] {
                reopened(&world.work().join(name));
            }
            assert_eq!(done.exit, Exit::Code(0), "{script}: {}", done.stderr);
            let message = done.undone.join("\n");
            assert!(message.contains(said), "{script}: {message}");
            assert_eq!(done.left, [""; 0], "{script}");
            for name in gone.split_whitespace() {
                assert!(!world.has(name), "{script}: {name}");
            }
            assert_eq!((before("commondir"), before("gitdir")), known, "{script}");
            let search = "grep -rlE 'fsmonitor = ./x|worktree = (/etc|.*(link|vscode))' .git --include=config --include=config.worktree";
            world.git(&format!("! {search}"));
        }
    });
}

#[test]
fn ordinary_work_with_submodules_and_worktrees_is_not_undone() {
    as_both("protected_names::ordinary_work_with_submodules_and_worktrees_is_not_undone", async || {
        let world = World::new();
        let id = "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b";
        for script in [
            "git init -q lib && git -C lib commit -q --allow-empty -m one && git init -q --bare up.git && git init -q",
            "git config user.name a && git config user.email a@b && git commit -q --allow-empty -m one",
            "git remote add origin ./up.git && git push -q -u origin HEAD:main && git fetch -q",
            "git -c protocol.file.allow=always submodule --quiet add \"$PWD/lib\" deep/sub && git commit -qm two",
            "git worktree add -q tree && cd tree && git commit -q --allow-empty -m three",
            "git worktree add -q /tmp/elsewhere && git -C /tmp/elsewhere status",
            "git submodule deinit -q -f deep/sub && git -c protocol.file.allow=always submodule --quiet update --init",
            "git -C deep/sub config user.name b && git -C deep/sub commit -q --allow-empty -m four && git commit -qam five",
            "git status && git worktree remove tree && git worktree prune && git worktree list",
            "git gc -q && git config --unset user.name && git branch topic && git checkout -q topic",
        ] {
            let mut spec = world.spec(&format!("{id}; {script}"));
            spec.policy.session = Some("work".into());
            let done = world.run(spec).await;
            assert_eq!(done.exit, Exit::Code(0), "{script}: {}{}", done.stdout, done.stderr);
            assert_eq!((done.undone, done.left), (Vec::new(), Vec::new()), "{script}");
        }
        world.launcher.release_session("work".into());
        assert_eq!(world.read("deep/sub/.git"), "gitdir: ../../.git/modules/deep/sub\n");
        assert!(world.read(".git/modules/deep/sub/config").contains("worktree = ../../../../deep/sub"));
    });
}

/// Git succeeds for many of these even if it cannot write its settings, so the settings are checked as well.
#[test]
fn repository_settings_from_ordinary_git_commands_are_kept() {
    as_both("protected_names::repository_settings_from_ordinary_git_commands_are_kept", async || {
        let world = World::new();
        world.git(
            "id='-c user.name=a -c user.email=a@b'; git init -q -b main && git init -q --bare up.git && mkdir d && \
             echo x > d/x && git add d && git $id commit -qm one && git remote add origin ./up.git && \
             git push -q origin main main:topic && git fetch -q",
        );
        let merges =
            |branch: &str, other: &str| format!("test $(git config branch.{branch}.merge) = refs/heads/{other}");
        // Command, and a condition that holds afterwards.
        for (script, holds) in [
            ("git config user.email a@b && git config pull.rebase true", "git config pull.rebase".into()),
            ("git config --unset pull.rebase", "! git config pull.rebase".into()),
            ("git remote add up ./x.git", "git config remote.up.fetch".into()),
            ("git remote set-url up ./y.git", "test $(git config remote.up.url) = ./y.git".into()),
            ("git remote rename up other", "git config remote.other.url".into()),
            ("git remote remove other", "! git config remote.other.url".into()),
            ("git checkout -q topic", merges("topic", "topic")),
            ("git checkout -q -b fix --track origin/main", merges("fix", "main")),
            ("git push -q -u origin HEAD:fix", merges("fix", "fix")),
            ("git branch -q -u origin/topic", merges("fix", "topic")),
            ("git branch -m fix mend", merges("mend", "topic")),
            ("git branch --unset-upstream", "! git config branch.mend.merge".into()),
            ("git branch -q -u origin/main && git checkout -q topic", merges("mend", "main")),
            ("git branch -q -D mend", "! git config branch.mend.merge".into()),
            ("git worktree add -q -b side tree origin/topic", merges("side", "topic")),
            ("git sparse-checkout set d", "git config core.sparseCheckout".into()),
            ("git init -q", "git config extensions.worktreeConfig".into()),
        ] {
            let done = world.bash(script).await;
            assert_eq!((done.exit, done.stderr.as_str()), (Exit::Code(0), ""), "{script}");
            assert_eq!((done.undone, done.left), (Vec::new(), Vec::new()), "{script}");
            world.git(&holds);
        }
    });
}

#[test]
fn entries_planted_by_one_run_do_not_count_as_existing_for_a_concurrent_run() {
    as_both("protected_names::entries_planted_by_one_run_do_not_count_as_existing_for_a_concurrent_run", async || {
        // Planted setting, and a check that it was removed.
        for (plant, gone) in [
            ("git config core.fsmonitor ./x", "! grep -q fsmonitor .git/config"),
            ("git -C sub config core.fsmonitor ./x", "! grep -q fsmonitor .git/modules/sub/config"),
            ("echo ../../../lib/.git > .git/worktrees/tree/commondir", "grep -qx ../.. .git/worktrees/tree/commondir"),
            ("echo x > .mcp.json", "[ ! -e .mcp.json ]"),
            (
                "cd .git/modules; echo x > sub/hooks/post-merge || { cp -a sub b; echo x > b/hooks/post-merge; }; cd ../..",
                "! ls .git/modules/*/hooks/post-merge",
            ),
            ("mkdir -p objects refs; git config -f config core.fsmonitor ./x; cp lib/.git/HEAD .", "[ ! -e HEAD ]"),
        ] {
            let world = World::new();
            world.repository();
            world.git("git -C sub config alias.own '!x' && git config alias.own '!x'");
            let first = world.spec(&format!("{plant}; until [ -e begun ]; do sleep 0.01; done"));
            let first = world.launcher.launch(first).await.unwrap();
            let is_gone =
                || Command::new("bash").args(["-c", gone]).current_dir(world.work()).status().unwrap().success();
            let planted = async {
                while is_gone() {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            };
            timeout(Duration::from_secs(120), planted).await.unwrap();
            let second = format!("touch begun; until {gone}; do sleep 0.01; done; {plant}");
            let second = world.launcher.launch(world.spec(&second)).await.unwrap();
            let (first, second) = tokio::join!(ended(first), ended(second));
            assert!(
                !first.undone.is_empty() && !second.undone.is_empty(),
                "{plant}: {:?} {:?}",
                first.undone,
                second.undone
            );
            // The user's own settings stay.
            world.git(&format!("{gone} && git config alias.own && git -C sub config alias.own"));
        }
    });
}

#[test]
fn existing_settings_are_kept_when_a_concurrent_run_plants_many_settings() {
    as_both("protected_names::existing_settings_are_kept_when_a_concurrent_run_plants_many_settings", async || {
        let world = World::new();
        world.git("git init -q && git config alias.own '!x'");
        let first = world.spec("echo up; until [ -e go ]; do sleep 0.01; done; git config user.name a");
        let mut first = world.launcher.launch(first).await.unwrap();
        let mut up = [0; 2];
        first.stdout.as_mut().unwrap().read_exact(&mut up).await.unwrap();
        let many = "for i in $(seq 3000); do printf '[alias]\\n\\tx%s = !x\\n' $i; done >> .git/config";
        let second = world.bash(many).await;
        world.write("go", "");
        let first = ended(first).await;
        assert_eq!((first.exit, second.exit), (Exit::Code(0), Exit::Code(0)), "{} {}", first.stderr, second.stderr);
        world.git("git config alias.own && git config user.name && ! git config alias.x1 && ! git config alias.x3000");
    });
}

#[test]
fn a_run_keeps_concurrent_user_changes_to_files_that_the_run_does_not_touch() {
    as_both("protected_names::a_run_keeps_concurrent_user_changes_to_files_that_the_run_does_not_touch", async || {
        let world = World::new();
        world.git("git init -q");
        let mut server = world.launcher.launch(world.spec("echo up; exec sleep 999")).await.unwrap();
        let mut up = [0; 2];
        server.stdout.as_mut().unwrap().read_exact(&mut up).await.unwrap();
        world.git("git config alias.own '!x'");
        world.write(".mcp.json", "own");
        let done = world.bash("git status; touch x").await;
        assert_eq!((done.exit, done.undone, done.left), (Exit::Code(0), Vec::new(), Vec::new()), "{}", done.stderr);
        assert_eq!(world.read(".mcp.json"), "own");
        world.git("git config alias.own");
        // If a run changes a file, the user's own settings in it are stored in a copy.
        let done = world.bash("git config user.name a").await;
        let kept = done.undone[0].split('`').find(|part| part.starts_with("config.refused-")).unwrap();
        world.git(&format!("! git config alias.own && git config -f .git/{kept} alias.own"));
        // Once the other run has ended, existing settings count again.
        server.kill().await;
        world.git("git config alias.own '!x'");
        assert_eq!(world.bash("git config user.name a").await.undone, [""; 0]);
        world.git("git config alias.own");
    });
}

#[test]
fn hooks_of_a_submodule_cannot_be_changed() {
    as_both("protected_names::hooks_of_a_submodule_cannot_be_changed", async || {
        let world = World::new();
        world.repository();
        let hook = ".git/modules/sub/hooks/pre-push";
        world.write(hook, "own");
        for script in [
            "echo x > HOOKS/pre-push",
            "echo x > HOOKS/post-checkout",
            "rm HOOKS/pre-push",
            "RENAME HOOKS .git/modules/sub/x",
            "RENAME .git/modules/sub .git/modules/x",
            "RENAME .git/modules .git/x",
        ] {
            let script = script.replace("HOOKS", ".git/modules/sub/hooks").replace("RENAME", RENAME);
            let done = world.bash(&script).await;
            assert_eq!((done.exit, done.undone, done.left), (Exit::Code(1), Vec::new(), Vec::new()), "{script}");
            assert_eq!(world.read(hook), "own", "{script}");
        }
        let work = "cd sub && git config user.name a && git config user.email a@b && git commit -q --allow-empty -m two \
                    && git gc -q && cd .. && git submodule deinit -q -f sub";
        let done = world.bash(work).await;
        assert_eq!((done.exit, done.undone, done.left), (Exit::Code(0), Vec::new(), Vec::new()), "{}", done.stderr);
    });
}

#[test]
fn later_runs_keep_concurrent_user_changes_in_a_submodule() {
    as_both("protected_names::later_runs_keep_concurrent_user_changes_in_a_submodule", async || {
        let world = World::new();
        world.repository();
        let mut server = world.launcher.launch(world.spec("echo up; exec sleep 999")).await.unwrap();
        let mut up = [0; 2];
        server.stdout.as_mut().unwrap().read_exact(&mut up).await.unwrap();
        world.git("git -C sub config alias.own '!x'");
        world.write(".git/modules/sub/hooks/pre-push", "own");
        for script in ["git status --short; touch x", "! RENAME .git/modules/sub .git/modules/x"] {
            let done = world.bash(&script.replace("RENAME", RENAME)).await;
            assert_eq!((done.exit, done.undone, done.left), (Exit::Code(0), Vec::new(), Vec::new()), "{}", done.stderr);
            assert_eq!(world.read(".git/modules/sub/hooks/pre-push"), "own");
            world.git("git -C sub config alias.own");
        }
    });
}

#[test]
fn a_submodule_setting_is_undone_when_its_working_tree_becomes_a_link() {
    as_both("protected_names::a_submodule_setting_is_undone_when_its_working_tree_becomes_a_link", async || {
        let world = World::new();
        world.repository();
        let config = "git --git-dir=.git/modules/sub config core.worktree";
        let done = world.bash(&format!("mkdir a && {config} ../../../a")).await;
        assert_eq!((done.exit, done.undone), (Exit::Code(0), Vec::new()), "{}", done.stderr);
        let done = world.bash("rmdir a && ln -s /etc a").await;
        assert!(done.undone.join("\n").contains("core.worktree"), "{:?} {}", done.undone, done.stderr);
        // The user's own settings stay.
        world.git(&format!("! {config} && git config -f .git/modules/sub/config core.worktree ../../../a"));
        let done = world.bash("git status --short").await;
        assert_eq!((done.undone, done.left), (Vec::new(), Vec::new()));
    });
}

#[test]
fn a_submodule_may_be_in_a_hidden_folder_but_not_behind_a_sealed_link() {
    as_both("protected_names::a_submodule_may_be_in_a_hidden_folder_but_not_behind_a_sealed_link", async || {
        let world = World::new();
        world.repository();
        world.git("git -c protocol.file.allow=always submodule --quiet add \"$PWD/lib\" hidden/deep/sub");
        world.git("mkdir closed && ln -s /etc closed/link");
        let config = ".git/modules/hidden/deep/sub/config";
        // In a concurrent run nothing is hidden, so it treats the setting like any other.
        let mut other = world.launcher.launch(world.spec("echo up; exec sleep 999")).await.unwrap();
        let mut up = [0; 2];
        other.stdout.as_mut().unwrap().read_exact(&mut up).await.unwrap();
        let mut spec = world.spec("git status --short");
        spec.policy.hidden = vec![world.work().join("hidden")];
        let done = world.run(spec).await;
        assert_eq!((done.undone, done.left), (Vec::new(), Vec::new()), "{}", done.stderr);
        assert!(world.read(config).contains("worktree = "), "{}", world.read(config));
        drop(other);
        let mut spec = world.spec("git config -f .git/modules/sub/config core.worktree ../../../closed/link/x");
        spec.policy.sealed = vec![world.work().join("closed")];
        let done = world.run(spec).await;
        assert!(done.undone.join("\n").contains("core.worktree"), "{:?} {}", done.undone, done.stderr);
    });
}

/// Runs in a separate process, which has a mount there.
#[test]
fn a_mounted_folder_is_reported_and_not_emptied() {
    use rustix::{
        mount::{MountFlags, MountPropagationFlags, mount, mount_change},
        thread::{UnshareFlags, unshare_unsafe},
    };
    const TEST: &str = "protected_names::a_mounted_folder_is_reported_and_not_emptied";
    if !rustix::process::geteuid().is_root() {
        return;
    }
    if std::env::var_os(ROLE).is_none() {
        return again(module_path!().rsplit_once("::").unwrap().0, TEST, |command| {
            // SAFETY: the closure makes system calls alone, and its process has one thread.
            unsafe {
                command.pre_exec(|| {
                    unshare_unsafe(UnshareFlags::NEWNS)?;
                    Ok(mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?)
                })
            };
        });
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let world = World::new();
        world.git("git init -q");
        let modules = world.work().join(".git/modules");
        fs::create_dir(&modules).unwrap();
        mount("tmpfs", &modules, "tmpfs", MountFlags::empty(), c"mode=777").unwrap();
        world.write(".git/modules/own/file", "own");
        fs::set_permissions(modules.join("own"), fs::Permissions::from_mode(0o777)).unwrap();
        // Deeper than the maximum depth.
        let deep = vec!["d"; 30].join("/");
        let done = world.bash(&format!("mkdir -p .git/modules/1/{deep}")).await;
        assert_eq!((done.exit, done.undone), (Exit::Code(0), Vec::new()), "{}", done.stderr);
        assert!(done.left[0].contains("/.git/modules` may contain files of this command"), "{:?}", done.left);
        assert_eq!(world.read(".git/modules/own/file"), "own");
    });
}

#[test]
fn removing_permissions_from_a_folder_of_protected_names_is_not_reported() {
    as_both("protected_names::removing_permissions_from_a_folder_of_protected_names_is_not_reported", async || {
        let world = World::new();
        world.write(".vscode/tasks.json", "old");
        let done = world.bash("chmod 0 .vscode").await;
        assert_eq!(reopened(&world.work().join(".vscode")), 0);
        assert_eq!((done.exit, done.undone, done.left), (Exit::Code(0), Vec::new(), Vec::new()), "{}", done.stderr);
        assert_eq!(world.read(".vscode/tasks.json"), "old");
        // A file that another program replaced meanwhile is still visible.
        let child = world.launcher.launch(world.spec("until [ -e go ]; do sleep 0.01; done; chmod 0 .vscode")).await;
        world.write("new", "new");
        fs::rename(world.work().join("new"), world.work().join(".vscode/tasks.json")).unwrap();
        world.write("go", "");
        let done = ended(child.unwrap()).await;
        assert!(done.left[0].contains("/.vscode/tasks.json` was replaced"), "{:?}", done.left);
    });
}

#[test]
fn a_write_root_within_a_protected_name_is_writable() {
    as_both("protected_names::a_write_root_within_a_protected_name_is_writable", async || {
        for inner in [".claude/a/b", ".git/a", ".git/hooks/a", ".vscode/a"] {
            let world = World::new();
            world.git("git init -q");
            world.write(&format!("{inner}/.mcp.json"), "old");
            let script = format!("echo x > {inner}/.mcp.json; echo x > {inner}/../y; echo x > {inner}/new");
            let mut spec = world.spec(&script);
            spec.policy.write_roots.push(world.work().join(inner));
            let done = world.run(spec).await;
            assert_eq!((done.exit, done.undone, done.left), (Exit::Code(0), Vec::new(), Vec::new()), "{inner}");
            assert_eq!(world.read(&format!("{inner}/.mcp.json")), "old", "{inner}");
            let is_open = [".git/a", ".vscode/a"].contains(&inner);
            assert_eq!(world.has(&format!("{inner}/../y")), is_open, "{inner}: {}", done.stderr);
            assert_eq!(world.read(&format!("{inner}/new")), "x\n");
        }
    });
}

#[test]
fn a_worktree_that_the_user_adds_outside_during_a_run_is_reported_and_kept() {
    as_both("protected_names::a_worktree_that_the_user_adds_outside_during_a_run_is_reported_and_kept", async || {
        let world = World::new();
        world.repository();
        let child = world.launcher.launch(world.spec("until [ -e go ]; do sleep 0.01; done")).await.unwrap();
        let script = "cp -a .git/worktrees/tree .git/worktrees/feature; echo /dev/shm/feature/.git > ";
        world.git(&format!("{script} .git/worktrees/feature/gitdir"));
        world.write("go", "");
        let done = ended(child).await;
        assert_eq!(done.undone, [""; 0]);
        assert!(done.left[0].contains("/worktrees/feature/gitdir` names a working tree outside"), "{:?}", done.left);
        assert_eq!(world.read(".git/worktrees/feature/gitdir"), "/dev/shm/feature/.git\n");
        // The entry existed before this run.
        let done = world.bash("git status --short").await;
        assert_eq!((done.undone, done.left), (Vec::new(), Vec::new()));
    });
}

#[test]
fn a_planted_link_among_submodules_or_worktrees_does_not_block_the_next_run() {
    as_both("protected_names::a_planted_link_among_submodules_or_worktrees_does_not_block_the_next_run", async || {
        for link in [".git/modules/x", ".git/modules/a/b", ".git/worktrees/x", ".git/worktrees/tree/modules/x"] {
            let world = World::new();
            world.repository();
            let done = world.bash(&format!("mkdir -p $(dirname {link}); ln -s / {link}")).await;
            assert!(done.undone.join("\n").contains("because it led elsewhere"), "{link}: {:?}", done.undone);
            let done = world.bash("git status --short").await;
            assert_eq!((done.exit, done.undone, done.left), (Exit::Code(0), Vec::new(), Vec::new()), "{link}");
        }
    });
}

#[test]
fn a_repository_within_the_roots_that_a_git_file_points_to_is_protected() {
    as_both("protected_names::a_repository_within_the_roots_that_a_git_file_points_to_is_protected", async || {
        const PLANT: &str = "git --git-dir=$repo config core.fsmonitor ./x; echo x > $repo/hooks/pre-commit || \
                             mv ${repo%%/*} x || echo held";
        // Preparation, roots, and path of the repository.
        for (made, roots, repo) in [
            ("git init -q --bare .bare; echo gitdir: ./.bare > .git", ".", ".bare"),
            ("mkdir a; git init -q --bare a/b; echo gitdir: a/b > .git", ".", "a/b"),
            (
                "git init -q lib; git -C lib -c user.name=a -c user.email=a@b commit -q --allow-empty -m one; \
                 git clone -q --bare lib all; git -C all worktree add -q ../tree",
                ". tree",
                "all",
            ),
        ] {
            let world = World::new();
            world.git(made);
            let mut spec = world.spec(&format!("repo={repo}; {PLANT}"));
            spec.policy.write_roots =
                roots.split(' ').map(|root| world.work().join(root).components().collect()).collect();
            let done = world.run(spec).await;
            assert_eq!(done.stdout, "held\n", "{made}: {}", done.stderr);
            assert!(done.undone.join("\n").contains("core.fsmonitor"), "{made}: {:?}", done.undone);
            assert!(!world.has(&format!("{repo}/hooks/pre-commit")) && done.left.is_empty(), "{made}: {:?}", done.left);
            world.git(&format!("! grep -q fsmonitor {repo}/config"));
        }
        // The run creates the target.
        let world = World::new();
        world.write(".git", "gitdir: ./.bare\n");
        let done = world.bash("mkdir -p .bare/hooks; echo x > .bare/hooks/pre-commit").await;
        assert!(done.undone.join("\n").contains("pre-commit"), "{:?} {}", done.undone, done.stderr);
    });
}

#[test]
fn editor_settings_are_protected_individually_within_their_folder() {
    as_both("protected_names::editor_settings_are_protected_individually_within_their_folder", async || {
        let world = World::new();
        world.write(".vscode/settings.json", "old");
        let script = "mv .vscode x; echo x > .vscode/settings.json; echo x > .vscode/mcp.json; echo x > .vscode/other";
        let done = world.bash(script).await;
        assert!(done.undone.len() == 1 && done.undone[0].contains("mcp.json.refused"), "{:?}", done.undone);
        assert_eq!((world.read(".vscode/settings.json"), world.read(".vscode/other")), ("old".into(), "x\n".into()));
        assert!(!world.has("x") && done.left.is_empty());
    });
}

#[test]
fn killing_a_run_waits_until_its_protected_changes_are_undone() {
    as_both("protected_names::killing_a_run_waits_until_its_protected_changes_are_undone", async || {
        let world = World::new();
        let mut child = world.launcher.launch(world.spec("echo x > .mcp.json; echo up; exec sleep 999")).await.unwrap();
        let mut up = [0; 2];
        child.stdout.as_mut().unwrap().read_exact(&mut up).await.unwrap();
        let init = rustix::process::Pid::from_raw(child.id().cast_signed()).unwrap();
        rustix::process::kill_process(init, Signal::STOP).unwrap();
        // Longer than the launcher waits for a killed child that is not confined.
        let slow = async {
            tokio::time::sleep(Duration::from_millis(1_200)).await;
            rustix::process::kill_process(init, Signal::CONT).unwrap();
        };
        tokio::join!(child.kill(), slow);
        assert_eq!(child.left(), [""; 0]);
        assert!(child.undone()[0].contains(".mcp.json.refused"), "{:?}", child.undone());
    });
}

#[tokio::test]
async fn submodules_nested_deeper_than_the_limit_are_set_aside() {
    let world = World::new();
    world.git("git init -q");
    // Deeper than the maximum depth.
    let deep = vec!["d"; 30].join("/");
    let done = world.bash(&format!("mkdir -p .git/modules/1/{deep}")).await;
    assert!(done.undone.join("\n").contains("`modules.refused`"), "{:?} {}", done.undone, done.stderr);
    assert!(!world.has(".git/modules") && done.left.is_empty());
    // Entries that existed before stay, and cannot be changed.
    fs::rename(world.work().join(".git/modules.refused"), world.work().join(".git/modules")).unwrap();
    let done = world.bash("echo x > .git/modules/1/HEAD || git status --short").await;
    assert_eq!((done.exit, done.undone, done.left), (Exit::Code(0), Vec::new(), Vec::new()));
    assert!(world.has(".git/modules/1") && !world.has(".git/modules/1/HEAD"));
}

#[test]
fn a_run_whose_init_is_killed_is_reported_as_not_undone() {
    as_both("protected_names::a_run_whose_init_is_killed_is_reported_as_not_undone", async || {
        let world = World::new();
        let mut child = world.launcher.launch(world.spec("echo x > .mcp.json; echo up; exec sleep 999")).await.unwrap();
        let mut up = [0; 2];
        child.stdout.as_mut().unwrap().read_exact(&mut up).await.unwrap();
        let init = rustix::process::Pid::from_raw(child.id().cast_signed()).unwrap();
        rustix::process::kill_process(init, Signal::KILL).unwrap();
        assert_eq!(timeout(Duration::from_secs(120), child.exited()).await.unwrap(), Exit::Signal(9));
        assert!(child.left()[0].contains("did not finish"), "{:?}", child.left());
        assert!(child.left()[0].contains(".mcp.json") && child.undone().is_empty());
    });
}

#[test]
fn termination_signals_to_init_and_its_parent_do_not_prevent_undoing_a_run() {
    as_both("protected_names::termination_signals_to_init_and_its_parent_do_not_prevent_undoing_a_run", async || {
        let world = World::new();
        let mut child = world.launcher.launch(world.spec("echo x > .mcp.json; echo up; exec sleep 999")).await.unwrap();
        let mut up = [0; 2];
        child.stdout.as_mut().unwrap().read_exact(&mut up).await.unwrap();
        let init = child.id().cast_signed();
        for process in [parent_of(init).unwrap(), init] {
            for signal in [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM] {
                rustix::process::kill_process(rustix::process::Pid::from_raw(process).unwrap(), signal).unwrap();
            }
        }
        child.kill().await;
        assert_eq!(child.left(), [""; 0]);
        assert!(child.undone()[0].contains(".mcp.json.refused"), "{:?}", child.undone());
    });
}

#[test]
fn protected_changes_of_a_dropped_run_are_undone() {
    as_both("protected_names::protected_changes_of_a_dropped_run_are_undone", async || {
        let world = World::new();
        let script =
            "git init -q; echo x > .git/hooks/pre-commit; git config core.fsmonitor x; echo up; exec sleep 999";
        let mut child = world.launcher.launch(world.spec(script)).await.unwrap();
        let mut up = [0; 2];
        child.stdout.as_mut().unwrap().read_exact(&mut up).await.unwrap();
        drop(child);
        let put_right = async {
            while world.has(".git/hooks/pre-commit") || world.read(".git/config").contains("fsmonitor") {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        timeout(Duration::from_secs(120), put_right).await.unwrap();
    });
}

#[test]
fn a_protected_file_replaced_during_a_run_is_reported_as_untrusted() {
    as_both("protected_names::a_protected_file_replaced_during_a_run_is_reported_as_untrusted", async || {
        let world = World::new();
        world.write(".mcp.json", "old");
        world.write(".claude/settings.json", "old");
        let child = world.launcher.launch(world.spec("until [ -e go ]; do sleep 0.01; done")).await.unwrap();
        // Editors replace files in this way.
        world.write("new", "new");
        fs::rename(world.work().join("new"), world.work().join(".mcp.json")).unwrap();
        world.write(".claude/settings.json", "new");
        world.write("go", "");
        let done = ended(child).await;
        assert_eq!(done.left.len(), 1, "{:?}", done.left);
        assert!(done.left[0].contains("/.mcp.json` was replaced"), "{:?}", done.left);
        assert_eq!(world.read(".mcp.json"), "new");
    });
}

#[test]
fn hidden_git_settings_are_not_reported_as_changed() {
    as_both("protected_names::hidden_git_settings_are_not_reported_as_changed", async || {
        let world = World::new();
        world.repository();
        for hidden in [
            ".git/config",
            ".git/modules",
            ".git/modules/sub",
            ".git/modules/sub/config",
            ".git/hooks",
            ".git",
            ".mcp.json",
        ] {
            let mut spec = world.spec(&format!("ls -d .git; cat {hidden}"));
            world.write(".mcp.json", "{}");
            spec.policy.hidden = vec![world.work().join(hidden)];
            let done = world.run(spec).await;
            assert!(done.stdout == ".git\n" && done.exit == Exit::Code(1), "{hidden}: {}", done.stderr);
            assert_eq!((done.undone, done.left), (Vec::new(), Vec::new()), "{hidden}");
        }
    });
}

/// Runs in a separate process whose user has the workspace as the home, while the run has another home.
#[test]
fn start_files_in_the_users_home_are_protected_even_if_the_run_has_another_home() {
    const HOME: &str = "TOOLSTEAD_TEST_OWN_HOME";
    if std::env::var_os(HOME).is_none() {
        let name = "start_files_in_the_users_home_are_protected_even_if_the_run_has_another_home";
        let path = format!("{}::{name}", module_path!().split_once("::").unwrap().1);
        let home = tempfile::tempdir_in("/var/tmp").unwrap();
        fs::write(home.path().join(".profile"), "old").unwrap();
        let mut command = Command::new(std::env::current_exe().unwrap());
        let output = command.args(["--exact", &path]).env(HOME, "1").env("HOME", home.path()).output().unwrap();
        return assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
    let home = PathBuf::from(std::env::var_os("HOME").unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let world = World::new();
        let script = "echo x > .bashrc; mkdir -p .config/git .config/x; echo x > .config/git/config; \
                      echo x > .profile || echo closed";
        let mut spec = world.spec(script);
        spec.working_dir.clone_from(&home);
        spec.policy.write_roots = vec![home.clone()];
        let done = world.run(spec).await;
        assert_eq!(done.stdout, "closed\n", "{}", done.stderr);
        let message = done.undone.join("\n");
        assert!(message.contains(".bashrc.refused") && message.contains("`git.refused`"), "{message}");
        assert!(home.join(".config/x").exists());
        assert_eq!(fs::read_to_string(home.join(".profile")).unwrap(), "old");
    });
}
