//! Counts what one call costs: system calls, switches of threads, allocations (`make count`).
//!
//! Unlike times, counts hardly depend on what else the machine does. Each is taken after a few calls and after many, and
//! the difference is divided by the calls between: what the start of the server takes falls out.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the table is what the program is for")]

#[path = "../bench/cost.rs"]
#[expect(dead_code, reason = "times are not told")]
mod cost;
mod counting;
mod served;

use cost::Used;
use served::{Program, Served};
use std::{collections::BTreeMap, error::Error, process::ExitCode};
use toolstead_infrastructure::helper::enter_if_helper;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// What is called: the tool, its arguments, and after how many calls is counted.
struct Subject {
    tool: &'static str,
    arguments: &'static str,
    few: u32,
    many: u32,
}

const SUBJECTS: [Subject; 2] = [
    Subject { tool: "echo", arguments: r#"{"message":"hello"}"#, few: 500, many: 2500 },
    Subject { tool: "bash", arguments: r#"{"command":"true"}"#, few: 20, many: 70 },
];
/// So many names of system calls are told.
const TOLD_NAMES: usize = 14;

fn main() -> ExitCode {
    enter_if_helper();
    if counting::is_counted_server() {
        return counting::serve();
    }
    match SUBJECTS.iter().try_for_each(tell) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("count: {error}");
            ExitCode::FAILURE
        }
    }
}

fn tell(subject: &Subject) -> Outcome<()> {
    println!("{} {}, one connection, per call:", subject.tool, subject.arguments);
    let [allocations, bytes] = subject.between(|calls| {
        let served = Served::start(Program::Counted)?;
        served.call(subject.tool, subject.arguments, calls)?;
        served.counted()
    })?;
    println!("  allocations of the server {allocations:>10.1}\n  bytes allocated           {bytes:>10.0}");
    let served = Served::start(Program::Plain)?;
    served.call(subject.tool, subject.arguments, subject.few)?;
    let before = Used::by(served.process())?;
    served.call(subject.tool, subject.arguments, subject.many)?;
    let used = Used::by(served.process())? - before;
    println!("  switches of its threads   {:>10.2}", used.each(subject.many.into()).switches);
    let Some(calls) = system_calls(subject)? else {
        println!("  strace is not on the PATH: system calls were not counted");
        return Ok(());
    };
    println!("  system calls, children's  {:>10.1}", calls.iter().map(|(_, count)| count).sum::<f64>());
    let told: Vec<_> = calls.iter().take(TOLD_NAMES).map(|(name, count)| format!("{name} {count:.2}")).collect();
    println!("    {}", told.join(", "));
    Ok(())
}

/// The system calls of the server and all its children, by name, the most frequent first.
fn system_calls(subject: &Subject) -> Outcome<Option<Vec<(String, f64)>>> {
    let counted = |calls| -> Outcome<Option<BTreeMap<String, f64>>> {
        let Some(served) = Served::traced()? else { return Ok(None) };
        served.call(subject.tool, subject.arguments, calls)?;
        served.system_calls().map(Some)
    };
    let (Some(few), Some(many)) = (counted(subject.few)?, counted(subject.many)?) else { return Ok(None) };
    let each = |(name, count): (String, f64)| {
        let before = few.get(&name).copied().unwrap_or(0.0);
        let each = (count - before) / f64::from(subject.many - subject.few);
        (each > 0.005).then_some((name, each))
    };
    let mut calls: Vec<_> = many.into_iter().filter_map(each).collect();
    calls.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    Ok(Some(calls))
}

impl Subject {
    /// What is counted between few and many calls, for each of them.
    fn between<const N: usize>(&self, count: impl Fn(u32) -> Outcome<[f64; N]>) -> Outcome<[f64; N]> {
        let (few, many) = (count(self.few)?, count(self.many)?);
        Ok(std::array::from_fn(|at| (many[at] - few[at]) / f64::from(self.many - self.few)))
    }
}
