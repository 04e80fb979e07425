//! The limits of allocations and bytes, as a test of the debug build.

use crate::{Outcome, per_call::PerCall, subject::SUBJECTS};

const TEST: &str = "a_call_allocates_exactly_what_its_limits_say";

/// Options of the test harness that take the next argument.
const OPTIONS_WITH_VALUES: [&str; 4] = ["--color", "--format", "--logfile", "--test-threads"];
/// Calls before the first one that is counted.
const WARM_UP: u32 = 200;
/// Calls that are counted in one attempt.
const CALLS: u32 = 800;
/// Maximum number of attempts to meet a limit.
const ATTEMPTS: u32 = 5;
/// Part of the bytes by which a count may differ from its limit, as a fraction: lengths of numbers and paths vary.
const BYTES_BAND: (u64, u64) = (1, 200);

/// The medians of one call.
#[derive(Debug, Clone, Copy)]
struct Counts {
    allocations: u64,
    bytes: u64,
}

/// The counts of one call in the debug build.
struct Limit {
    subject: &'static str,
    counts: Counts,
}

const LIMITS: [Limit; 3] = [
    Limit { subject: "echo", counts: Counts { allocations: 28, bytes: 8_137 } },
    Limit { subject: "proxied over HTTP", counts: Counts { allocations: 52, bytes: 26_015 } },
    Limit { subject: "proxied over stdio", counts: Counts { allocations: 44, bytes: 14_644 } },
];

/// Runs the test unless the arguments select others.
///
/// # Errors
/// A message with every count that is not its limit.
pub(crate) fn check(arguments: &[String]) -> Outcome<()> {
    if !is_selected(arguments) {
        return Ok(());
    }
    reports_a_rise_and_a_fall()?;
    let mut faults = Vec::new();
    for limit in LIMITS {
        let each = limit.measure()?;
        println!("{}: {} allocations, {} bytes", limit.subject, each.allocations, each.bytes);
        faults.extend(limit.faults(each));
    }
    if !faults.is_empty() {
        return Err(format!("test {TEST} ... FAILED\n{}", faults.join("\n")).into());
    }
    println!("test {TEST} ... ok");
    Ok(())
}

/// Returns `true` if the arguments of the test harness include this test.
fn is_selected(arguments: &[String]) -> bool {
    let (mut has_filter, mut arguments) = (false, arguments.iter());
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--list" | "--ignored" => return false,
            "--skip" if arguments.next().is_some_and(|skipped| TEST.contains(skipped.as_str())) => return false,
            "--skip" => {}
            option if OPTIONS_WITH_VALUES.contains(&option) => _ = arguments.next(),
            option if option.starts_with('-') => {}
            filter if TEST.contains(filter) => return true,
            _ => has_filter = true,
        }
    }
    !has_filter
}

impl Limit {
    /// Counts until the limit is met, at most `ATTEMPTS` times, and otherwise returns the lowest counts. Other work of
    /// the machine can only add to a count: commits of the audit log then fall into most of the calls.
    fn measure(&self) -> Outcome<Counts> {
        let subject =
            SUBJECTS.iter().find(|subject| subject.name == self.subject).ok_or("a limit without a subject")?;
        let mut lowest = Counts { allocations: u64::MAX, bytes: u64::MAX };
        for _ in 0..ATTEMPTS {
            let each = PerCall::between(subject, WARM_UP, WARM_UP + CALLS)?;
            let counts = Counts { allocations: each.allocations, bytes: each.bytes };
            if self.faults(counts).is_empty() {
                return Ok(counts);
            }
            lowest.allocations = lowest.allocations.min(counts.allocations);
            lowest.bytes = lowest.bytes.min(counts.bytes);
        }
        Ok(lowest)
    }

    fn faults(&self, counts: Counts) -> Vec<String> {
        let allowed = self.counts.bytes * BYTES_BAND.0 / BYTES_BAND.1;
        let numbers = [
            ("allocations", counts.allocations, self.counts.allocations, 0),
            ("bytes", counts.bytes, self.counts.bytes, allowed),
        ];
        let fault = |(what, count, limit, band): (&str, u64, u64, u64)| {
            let advice = match count {
                _ if count.abs_diff(limit) <= band => return None,
                _ if count < limit => {
                    "lower the limit in tests/counts/limits.rs and the number in docs/reference/performance.md"
                }
                _ => "a call must not cost more than before",
            };
            Some(format!("{}: {count} {what}, and the limit is {limit}: {advice}", self.subject))
        };
        numbers.into_iter().filter_map(fault).collect()
    }
}

/// Checks the comparison itself, because this program has no test harness.
fn reports_a_rise_and_a_fall() -> Outcome<()> {
    let limit = Limit { subject: "echo", counts: Counts { allocations: 100, bytes: 20_000 } };
    for (allocations, bytes, expected) in [
        (100, 20_000, &[][..]),
        (100, 20_100, &[]),
        (101, 20_000, &["101 allocations, and the limit is 100: a call"]),
        (99, 19_000, &["99 allocations, and the limit is 100: lower", "19000 bytes, and the limit is 20000: lower"]),
        (100, 20_101, &["20101 bytes, and the limit is 20000: a call"]),
    ] {
        let faults = limit.faults(Counts { allocations, bytes });
        let is_right = faults.len() == expected.len()
            && faults.iter().zip(expected).all(|(fault, expected)| fault.contains(expected));
        if !is_right {
            return Err(format!("{allocations} allocations and {bytes} bytes are reported as {faults:?}").into());
        }
    }
    Ok(())
}
