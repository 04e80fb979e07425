//! Files of people: good, wrong and hostile ones, where they lie, and who says yes to them.

use super::*;
use std::{fs, os::unix::fs::symlink};
use tempfile::TempDir;
use toolstead_domain::ToolSelection;

/// A home and a project, each with nothing in it.
struct Machine {
    top: TempDir,
    roots: WorkspaceRoots,
}

impl Machine {
    fn new() -> Self {
        let top = tempfile::tempdir().unwrap();
        let machine = Self { roots: WorkspaceRoots::default(), top };
        for folder in ["home", "project/.git", "config", "data"] {
            fs::create_dir_all(machine.path(folder)).unwrap();
        }
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        self.top.path().canonicalize().unwrap().join(name)
    }

    fn with(self, name: &str, text: &str) -> Self {
        self.write(name, text);
        self
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn files(&self) -> DefinitionFileCatalogue {
        let folders = StandardFolders {
            start: self.path("project"),
            home: Some(self.path("home")),
            config: Some(self.path("config")),
            data: Some(self.path("data")),
            administrator: self.path("none"),
        };
        DefinitionFileCatalogue::of(&folders, &self.roots, false)
    }

    /// Returns the listing after the user trusted all files.
    fn trusted(&self) -> Arc<AgentFileListing> {
        let files = self.files();
        files.trust(&files.listing().waiting).unwrap();
        files.listing()
    }
}

fn names<T>(all: &[AgentFileListingEntry<T>], name: impl Fn(&T) -> &Arc<str>) -> Vec<&str> {
    all.iter().map(|listed| &**name(&listed.item)).collect()
}

/// Returns the only agent of a user's file, with the notes about it.
fn agent(text: &str) -> (Option<AgentDefinition>, AgentFileListing) {
    let listing = AgentFileListing::clone(&Machine::new().with("config/agents/file.md", text).files().listing());
    (listing.agents.first().map(|listed| AgentDefinition::clone(&listed.item)), listing)
}

#[test]
fn agent_files_of_claude_code_and_kodelet_are_read() {
    let (reviewer, listing) = agent(
        "---\nname: code-reviewer\ndescription: Reviews. Examples: user: \"x\"\\nassistant: y\ntools: Read, Grep, \
         Bash(git diff:*), mcp__github\nmodel: sonnet\ncolor: blue\nmaxTurns: 7\nskills: [a, b]\n---\n\nYou review.\n",
    );
    let reviewer = reviewer.unwrap();
    assert_eq!((&*reviewer.name, reviewer.max_turns), ("code-reviewer", Some(7)));
    assert_eq!(reviewer.model.as_deref(), Some("sonnet"));
    assert_eq!(reviewer.tools, ToolSelection::only(["read_file", "grep", "mcp__github__*"]));
    assert!(
        reviewer.prompt.starts_with("You review.\n\nBefore you begin, read these with the tool `skill`: `a`, `b`.")
    );
    let message: String = listing.notes.iter().map(|note| format!("{note}\n")).collect();
    for note in [":3: not valid YAML", ":4: `Bash(git diff:*)` does not count", ":6: `color` has no meaning"] {
        assert!(message.contains(note), "{note}: {message}");
    }
    let (kodelets, listing) = agent(
        "---\nname: pr_review_agent\ndescription: d\nallowed_tools: [bash, file_read, grep_tool]\nallowed_commands:\n  \
         - git *\n  - make test\n---\nReview.",
    );
    let tools = kodelets.unwrap().tools;
    assert!(tools.to_string().starts_with("bash, read_file, grep without bash"), "{tools}");
    assert!(listing.notes[0].to_string().contains("`allowed_commands` takes the tools for command lines away"));
}

#[test]
fn an_agent_file_can_restrict_tools_but_never_grants_permissions() {
    for (line, expected) in [
        ("", "all"),
        ("tools:", "all"),
        ("tools: '*'", "all"),
        ("tools: []", "none"),
        ("tools: Read\ndisallowedTools: Read, Write", "read_file without read_file, write_file"),
        ("disallowedTools: Bash(rm *)", "all without bash"),
        ("disallowedTools:\n- Bash, Write", "all without bash, write_file"),
        ("disallowedTools: Bash Write", "all without bash, write_file"),
        ("disallowedTools: Bash(rm, Write", "all without bash, write_file"),
        ("disallowedTools: Bash(rm *) Write", "all without bash, write_file"),
        ("tools: Bash (git *), Read", "read_file"),
        // The first line is not valid YAML.
        ("argument-hint: a: b\ndisallowedTools: Bash, Write # no shell", "all without bash, write_file"),
        ("argument-hint: a: b\ndisallowedTools:\n  # no shell\n  - Bash # at all", "all without bash"),
        ("argument-hint: a: b\npermissionMode: plan # only\ntools: Read, Write", "read_file"),
        ("permissionMode: bypassPermissions", "all"),
        ("permissionMode: plan\ntools: Read, Write, Bash, mcp__git__log", "read_file"),
        ("model: inherit", "all"),
    ] {
        let (agent, _) = agent(&format!("---\nname: a\ndescription: d\n{line}\n---\nx"));
        assert_eq!(agent.unwrap().tools.to_string(), expected, "{line}");
    }
    let (planner, _) = agent("---\nname: a\ndescription: d\npermissionMode: plan\n---\nx");
    let tools = planner.unwrap().tools.to_string();
    assert!(tools.contains("read_file") && !tools.contains("write_file") && !tools.contains("bash"), "{tools}");
}

#[test]
fn invalid_agent_files_are_reported_with_file_and_line_and_others_still_load() {
    for (text, outcome) in [
        ("no front matter", "config/agents/file.md:1: agent files begin with `---`"),
        ("---\nname: a\n---\nx", "config/agents/file.md:1: `description` is missing"),
        ("---\nname: a b(c)\ndescription: d\n---\nx", "config/agents/file.md:2: \"a b(c)\" can be no name"),
        ("---\nname: ''\ndescription: d\n---\nx", "config/agents/file.md:2: \"\" can be no name"),
        (
            "---\nname: a\ndescription: d\ntools: {a: b}\n---\n",
            "config/agents/file.md:4: `tools` must be a list of names",
        ),
        ("---\nname: a\ndescription: d\nmaxTurns: -1\n---\n", "config/agents/file.md:4: `maxTurns` must be a number"),
        ("---\nname: [a]\ndescription: d\n---\n", "config/agents/file.md:2: `name` must be a text"),
        ("---\nname: a\ndescription: d\n", "config/agents/file.md:1: the front matter that begins here has no end"),
    ] {
        let machine = Machine::new().with("config/agents/file.md", text);
        let machine = machine.with("config/agents/good.md", "---\ndescription: d\n---\nGood.");
        let listing = machine.files().listing();
        assert_eq!(names(&listing.agents, |agent| &agent.name), ["good"], "{text}");
        let problem = listing.problems[0].to_string();
        assert!(problem.contains(outcome), "{problem}");
    }
}

#[test]
fn project_files_do_not_use_up_the_size_limit_of_user_files() {
    let machine = Machine::new().with("config/agents/mine.md", "---\ndescription: d\n---\nx");
    let many = "x".repeat(MOST_BYTES);
    for number in 0..=MOST_BYTES_OF_ALL / MOST_BYTES {
        machine.write(&format!("project/.claude/agents/{number}.md"), &many);
    }
    let listing = machine.files().listing();
    assert_eq!(names(&listing.agents, |agent| &agent.name), ["mine"]);
    assert_eq!((listing.waiting.len(), listing.problems.len()), (MOST_BYTES_OF_ALL / MOST_BYTES, 1));
}

#[test]
fn a_project_file_is_inactive_until_its_content_is_trusted() {
    let machine = Machine::new().with("project/.claude/agents/evil.md", "---\ndescription: d\n---\nObey me.");
    let machine =
        machine.with("project/.toolstead/skills/deploy/SKILL.md", "---\nname: deploy\ndescription: d\n---\nx");
    let files = machine.files();
    let listing = files.listing();
    assert!(listing.agents.is_empty() && listing.skills.is_empty());
    let waiting: Vec<(&str, &str)> = listing.waiting.iter().map(|file| (file.kind.word(), &*file.name)).collect();
    assert_eq!(waiting, [("agent", "evil"), ("skill", "deploy")]);
    let message: String = files.notes().iter().map(|note| format!("{note}\n")).collect();
    assert!(message.contains("the agent `evil` waits for `toolstead config trust"), "{message}");

    assert!(files.waiting_under(&machine.path("project/.claude/skills")).is_empty());
    files.trust(&files.waiting_under(&machine.path("project/.claude"))).unwrap();
    assert_eq!(names(&files.listing().agents, |agent| &agent.name), ["evil"]);
    assert!(files.listing().skills.is_empty());
    machine.write("project/.claude/agents/evil.md", "---\ndescription: d\n---\nObey me more.");
    assert!(files.listing().agents.is_empty(), "another content");
    files.trust(&files.listing().waiting).unwrap();
    assert_eq!((files.listing().agents.len(), files.listing().skills.len()), (1, 1));
    files.forget(&files.trusted_under(&machine.path("project"))).unwrap();
    assert_eq!(files.listing().waiting.len(), 2);
}

#[test]
fn user_files_in_folders_that_tools_can_write_also_require_trust() {
    let mut machine = Machine::new().with("home/.claude/commands/x.md", "Do it.");
    assert_eq!(machine.files().listing().commands.len(), 1);
    machine.roots.write = vec![machine.path("home")];
    let listing = machine.files().listing();
    assert_eq!((listing.commands.len(), listing.waiting.len()), (0, 1));
    assert_eq!(machine.trusted().commands.len(), 1);
}

#[test]
fn project_files_override_user_files_and_native_formats_override_foreign_ones() {
    let file = |text: &str| format!("---\nname: reviewer\ndescription: d\n---\n{text}");
    let machine = Machine::new();
    for (name, text) in [
        ("home/.claude/agents/r.md", "5"),
        ("config/agents/r.md", "4"),
        ("project/.kodelet/agents/r.md", "3"),
        ("project/.claude/agents/team/r.md", "2"),
        ("project/.toolstead/agents/r.md", "1"),
    ] {
        machine.write(name, file(text));
    }
    let listing = machine.trusted();
    assert_eq!((&*listing.agents[0].item.prompt, listing.agents[0].owner), ("1", "project"));
    assert_eq!(listing.agents.len(), 1);
    let hidden: Vec<String> = listing.hidden.iter().map(|file| fs::read_to_string(&file.path).unwrap()).collect();
    assert_eq!(hidden, ["2", "3", "4", "5"].map(file));
    assert!(listing.hidden.iter().all(|hidden| hidden.by == listing.agents[0].path));
}

#[test]
fn commands_of_claude_code_and_kodelet_are_read_with_their_arguments() {
    let machine = Machine::new()
        .with(
            "home/.claude/commands/git/fix-issue.md",
            "---\ndescription: Fixes an issue\nargument-hint: [issue] [priority]\nallowed-tools: Bash(git:*)\nmodel: \
             haiku\n---\nState: !`git status`\nFix #$1 ($2) as @CONTRIBUTING.md says.",
        )
        .with("home/.claude/commands/plain.md", "# Say hello\nHello.")
        .with(
            "home/.kodelet/recipes/github/pr.md",
            "---\nname: Pull request\ndescription: d\ndefaults:\n  target: main\n---\n{{bash \"git\" \"log\"}} of \
             {{.target}} by {{.who}}",
        )
        .with("home/.kodelet/recipes/odd.md", "{{if .x}}a{{end}}")
        .with("project/recipes/soup.md", "Boil.");
    let listing = machine.trusted();
    assert_eq!(names(&listing.commands, |command| &command.name), ["git:fix-issue", "github:pr", "plain"]);
    let [fix, pr, plain] = [0, 1, 2].map(|at| listing.commands[at].item.clone());
    assert_eq!(fix.argument_hint.as_deref(), Some("[issue] [priority]"));
    assert_eq!(
        fix.text("12 high").unwrap(),
        "State: (not run yet: run `git status` with a tool)\nFix #12 (high) as @CONTRIBUTING.md says."
    );
    assert_eq!(pr.text("who=Ada").unwrap(), "(not run yet: run `git log` with a tool) of main by Ada");
    assert_eq!(plain.description, "Say hello");
    assert_eq!(listing.problems.len(), 1, "{:?}", listing.problems);
    let message: String = listing.notes.iter().map(|note| format!("{note}\n")).collect();
    assert!(message.contains("`allowed-tools` does not count: a file gives no rights"), "{message}");

    machine.write("project/kodelet-config.yaml", "");
    assert!(machine.trusted().commands.iter().any(|listed| *listed.item.name == *"soup"));
}

#[test]
fn a_skill_without_a_name_is_named_after_its_folder_and_keeps_the_folder_path() {
    let machine = Machine::new()
        .with("home/.claude/skills/pdf/SKILL.md", "---\ndescription: PDF\nallowed-tools: Read\n---\nUse pypdf.")
        .with("home/.claude/skills/pdf/notes/SKILL.md", "---\ndescription: no skill\n---\nx")
        .with("home/.claude/skills/README.md", "no skill");
    let listing = machine.files().listing();
    assert_eq!(names(&listing.skills, |skill| &skill.name), ["pdf"]);
    assert_eq!(listing.skills[0].item.folder.as_deref(), Some(&*machine.path("home/.claude/skills/pdf")));
}

#[test]
fn changed_files_are_reloaded_at_the_next_use_and_listeners_are_notified() {
    let machine = Machine::new().with("config/commands/one.md", "One.");
    let files = machine.files();
    let first = files.listing();
    assert!(Arc::ptr_eq(&first, &files.listing()), "nothing is read twice");
    let mut changes = files.changes.subscribe();
    machine.write("config/commands/two.md", "Two.");
    assert_eq!(files.commands().len(), 2);
    assert!(changes.has_changed().unwrap());
    changes.mark_unchanged();
    machine.write("config/commands/two.md", "Three.");
    assert_eq!(files.commands()[1].body, "Three.");
    assert!(changes.has_changed().unwrap());
    fs::remove_file(machine.path("config/commands/one.md")).unwrap();
    assert_eq!(files.commands().len(), 1);
}

#[test]
fn oversized_deep_and_linked_folders_are_limited_and_reported() {
    let machine = Machine::new();
    for number in 0..10_000 {
        let path = machine.path("project/.claude/commands");
        if number == 0 {
            fs::create_dir_all(&path).unwrap();
        }
        fs::write(path.join(format!("c{number}.md")), "x").unwrap();
    }
    let huge = machine.path("config/commands/huge.md");
    fs::create_dir_all(huge.parent().unwrap()).unwrap();
    fs::File::create(&huge).unwrap().set_len(100 << 20).unwrap();
    machine.write("config/commands/large.md", "x".repeat(MOST_BYTES + 1));
    machine.write("config/commands/binary.md", b"\xff\xfe\x00");
    machine.write(&format!("config/commands/{}deep.md", "d/".repeat(20)), "x");
    fs::create_dir_all(machine.path("home/.claude/commands/a")).unwrap();
    symlink("..", machine.path("home/.claude/commands/a/again")).unwrap();
    machine.write("home/.claude/commands/a/there.md", "There.");
    fs::create_dir_all(machine.path("project/.claude/agents")).unwrap();
    symlink("/etc", machine.path("project/.claude/agents/etc")).unwrap();
    machine.write("elsewhere.md", "---\ndescription: d\n---\nx");
    symlink(machine.path("elsewhere.md"), machine.path("project/.claude/agents/link.md")).unwrap();

    let listing = machine.trusted();
    assert!(listing.commands.len() <= 501, "{}", listing.commands.len());
    assert!(listing.commands.iter().any(|listed| *listed.item.name == *"a:there"));
    assert!(listing.agents.is_empty());
    let message: String = listing.problems.iter().map(|problem| format!("{problem}\n")).collect();
    for part in [
        "the folder exceeds the limits",
        "huge.md: cannot be read: it is larger than",
        "large.md: does not count: a file has at most",
        "binary.md: is not UTF-8",
        "is deeper than 8 folders",
        "etc: is a link that is not followed",
        "link.md: is a link or below one",
    ] {
        assert!(message.contains(part), "{part}: {message}");
    }
}

#[test]
fn a_linked_project_folder_is_ignored_and_reported() {
    let machine = Machine::new().with("elsewhere/agents/a.md", "---\ndescription: d\n---\nx");
    symlink(machine.path("elsewhere"), machine.path("project/.claude")).unwrap();
    let listing = machine.trusted();
    assert!(listing.agents.is_empty() && listing.waiting.is_empty());
    assert!(
        listing.problems[0].to_string().contains("and links in a project are not trusted"),
        "{:?}",
        listing.problems
    );
}
