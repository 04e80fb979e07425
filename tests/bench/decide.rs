//! What it costs to take a command line apart and to decide on it.

use crate::Outcome;
use serde_json::Map;
use std::{hint::black_box, path::Path, sync::Arc, time::Instant};
use toolstead_domain::{
    Access, AccessPath, Decision, Effect, PatternContext, PermissionPolicy, PermissionRule, WorkspaceRoots,
    permission::rule::RuleOrigin, testing::samples,
};
use toolstead_infrastructure::shell_analysis::analyse;

const ROUNDS: usize = 1_001;
const SIMPLE: &str = "git status";
/// Ten commands.
const COMPOUND: &str = "cd src && git status --short | grep -v 'target dir' | sort -u > ../changed.txt; \
    cargo test --quiet 2>&1 | tail -n 20; git add -A && git commit -m \"with 'quotes'\" || echo 'nothing to commit'; \
    wc -l < ../changed.txt";

/// The median time of analysis and decision under fifty rules.
pub(crate) fn run() -> Outcome<()> {
    let policy = policy()?;
    for (row, line) in [("decide, simple command", SIMPLE), ("decide, ten commands", COMPOUND)] {
        let mut times = Vec::with_capacity(ROUNDS);
        for _ in 0..ROUNDS {
            let begun = Instant::now();
            black_box(decide(&policy, black_box(line)));
            times.push(begun.elapsed());
        }
        times.sort();
        let parts = analyse(line, Path::new("/w")).commands.len();
        println!(
            "{row:<34} {:>10.1}us {:>12} {:>8} {:>8}  {parts} parts, {} rules, verdict {}",
            times[times.len() / 2].as_secs_f64() * 1e6,
            "",
            "",
            "",
            policy.rules.len(),
            decide(&policy, line).verdict.as_str()
        );
    }
    Ok(())
}

fn decide(policy: &PermissionPolicy, line: &str) -> Decision {
    let analysis = analyse(line, Path::new("/w"));
    let commands = analysis.commands.into_iter().map(Access::RunCommand);
    let file_accesses = analysis.file_accesses.into_iter().map(|file_access| {
        match (file_access.writes, AccessPath::plain(file_access.path)) {
            (true, path) => Access::WritePath(path),
            (false, path) => Access::ReadPath(path),
        }
    });
    let accesses: Vec<Access> = commands.chain(file_accesses).collect();
    policy.decide(&samples::tool("bash"), &Map::new(), &accesses)
}

/// Fifty rules, the last of which allow the commands above.
fn policy() -> Outcome<PermissionPolicy> {
    let others = (0..40).map(|number| match number % 4 {
        0 => (Effect::Deny, format!("Bash(denied-{number} * --force)")),
        1 => (Effect::Ask, format!("Bash(asked-{number} push *)")),
        2 => (Effect::Deny, format!("Read(secret-{number}/**)")),
        _ => (Effect::Allow, format!("Bash(allowed-{number} *)")),
    });
    let known = ["cd *", "git *", "grep *", "sort *", "cargo *", "tail *", "echo *", "wc *", "ls *"];
    let known = known.map(|pattern| (Effect::Allow, format!("Bash({pattern})")));
    let rules = others.chain(known).chain([(Effect::Allow, "Write(**)".to_owned())]);
    let parse = |(effect, text): (Effect, String)| {
        PermissionRule::parse(effect, &text, RuleOrigin::Program, &PatternContext::default()).map(Arc::new)
    };
    let rules: Vec<_> = rules.map(parse).collect::<Result<_, _>>()?;
    let roots = WorkspaceRoots { write: vec!["/w".into()], ..Default::default() };
    Ok(PermissionPolicy { rules, roots, ..Default::default() })
}
