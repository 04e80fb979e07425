//! What calls cost the process that serves them. Unlike a rate, it hardly depends on what else the machine does.

use crate::Outcome;
use std::{fs, ops::Sub};

/// What one call costs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    /// Microseconds of processor time, the kernel's included.
    pub(crate) micros: f64,
    /// How often a thread of the process gave its processor up or lost it.
    pub(crate) switches: f64,
}

/// What a process has used since its start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Used {
    ticks: u64,
    switches: u64,
}

impl Used {
    pub(crate) fn by(process: u32) -> Outcome<Self> {
        let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
        // After the name, which may hold anything, the third field is the next.
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let field = |number: usize| fields.get(number - 3).and_then(|text| text.parse::<u64>().ok());
        let ticks = field(14).zip(field(15)).map(|(user, system)| user + system).ok_or("no processor time")?;
        let mut switches = 0;
        for thread in fs::read_dir(format!("/proc/{process}/task"))? {
            let status = fs::read_to_string(thread?.path().join("status"))?;
            let counts = status.lines().filter_map(|line| line.split_once("voluntary_ctxt_switches:"));
            switches += counts.filter_map(|(_, count)| count.trim().parse::<u64>().ok()).sum::<u64>();
        }
        Ok(Self { ticks, switches })
    }

    /// What each of so many calls has used.
    pub(crate) fn each(self, calls: f64) -> Cost {
        // Linux counts a hundred ticks a second, whatever the kernel does inside.
        Cost { micros: self.ticks as f64 * 1e4 / calls, switches: self.switches as f64 / calls }
    }
}

impl Sub for Used {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self { ticks: self.ticks - before.ticks, switches: self.switches.saturating_sub(before.switches) }
    }
}
