//! Allocations and bytes of one call.

use crate::{
    Outcome,
    served::{Program, Served},
    subject::Subject,
};

/// Allocations of the server for one call. The medians leave out work that occurs once in many calls, such as a commit
/// of the audit log, so that they do not depend on the speed of the machine. The means include it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PerCall {
    pub(crate) allocations: u64,
    pub(crate) bytes: u64,
    pub(crate) mean_allocations: f64,
    pub(crate) mean_bytes: f64,
}

impl PerCall {
    /// Counts each call of a subject, except for the first few.
    pub(crate) fn of(subject: &Subject) -> Outcome<Self> {
        Self::between(subject, subject.few, subject.many)
    }

    /// Makes a few calls without counting them, and counts each call after them until there were many.
    pub(crate) fn between(subject: &Subject, few: u32, many: u32) -> Outcome<Self> {
        let served = Served::start(Program::Counted, subject)?;
        served.call(subject, few)?;
        let first = served.counted()?;
        let (mut allocations, mut bytes, mut before) = (Vec::new(), Vec::new(), first);
        for _ in few..many {
            served.call(subject, 1)?;
            let now = served.counted()?;
            allocations.push(now[0] - before[0]);
            bytes.push(now[1] - before[1]);
            before = now;
        }
        let mean = |at: usize| (before[at] - first[at]) as f64 / f64::from(many - few);
        Ok(Self {
            allocations: median(&mut allocations),
            bytes: median(&mut bytes),
            mean_allocations: mean(0),
            mean_bytes: mean(1),
        })
    }
}

fn median(numbers: &mut [u64]) -> u64 {
    numbers.sort_unstable();
    numbers[numbers.len() / 2]
}
