//! Counts what one call costs. `make count` prints system calls, switches of threads, allocations and bytes of a
//! release build. As a test, the program holds the allocations and bytes of a call in the debug build to their limits
//! (`limits.rs`).
//!
//! Unlike times, counts hardly depend on what else the machine does.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the table is what the program is for")]

#[path = "../bench/cost.rs"]
#[expect(dead_code, reason = "times are not told")]
mod cost;
mod counting;
#[path = "../bench/echo.rs"]
mod echo;
mod limits;
mod per_call;
mod served;
mod subject;

use cost::Used;
use per_call::PerCall;
use served::{Program, Served};
use std::{collections::BTreeMap, error::Error, process::ExitCode};
use subject::{SUBJECTS, Subject};
use toolstead_infrastructure::helper::enter_if_helper;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Number of system calls that are listed by name.
const LISTED_NAMES: usize = 14;

fn main() -> ExitCode {
    enter_if_helper();
    if counting::is_counted_server() {
        return counting::serve();
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.iter().position(|argument| argument == subject::SERVE) {
        Some(at) => subject::serve_upstream(arguments.get(at + 1).map_or("", String::as_str)),
        // Cargo passes it to benchmarks, and not to tests.
        None if arguments.iter().any(|argument| argument == "--bench") => SUBJECTS.iter().try_for_each(print),
        None => limits::check(&arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn print(subject: &Subject) -> Outcome<()> {
    println!("{} {}, one connection, per call:", subject.name, subject.arguments);
    let each = PerCall::of(subject)?;
    println!("  allocations of the server {:>10}\n  bytes allocated           {:>10}", each.allocations, each.bytes);
    println!("    with those between calls {:>9.1}, bytes {:.0}", each.mean_allocations, each.mean_bytes);
    let served = Served::start(Program::Plain, subject)?;
    served.call(subject, subject.few)?;
    let before = Used::by(served.process())?;
    served.call(subject, subject.many)?;
    let used = Used::by(served.process())? - before;
    println!("  switches of its threads   {:>10.2}", used.each(subject.many.into()).switches);
    let Some(calls) = system_calls(subject)? else {
        println!("  strace is not on the PATH: system calls were not counted");
        return Ok(());
    };
    println!("  system calls, children's  {:>10.1}", calls.iter().map(|(_, count)| count).sum::<f64>());
    let listed: Vec<_> = calls.iter().take(LISTED_NAMES).map(|(name, count)| format!("{name} {count:.2}")).collect();
    println!("    {}", listed.join(", "));
    Ok(())
}

/// Counts the system calls of the server and all its children between few and many calls. Returns them by name, the
/// most frequent first, or `None` without strace.
fn system_calls(subject: &Subject) -> Outcome<Option<Vec<(String, f64)>>> {
    let counted = |calls| -> Outcome<Option<BTreeMap<String, f64>>> {
        let Some(served) = Served::traced(subject)? else { return Ok(None) };
        served.call(subject, calls)?;
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
