//! Operating system, processor and memory of the machine.

use crate::host::system_file;
use rustix::{
    process::geteuid,
    system::{sysinfo, uname},
};
use std::{thread::available_parallelism, time::Duration};

/// Properties of the machine at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// Name of the kernel, such as `Linux`.
    pub kernel: String,
    /// Release of the kernel, such as `6.8.0-31-generic`.
    pub release: String,
    /// Version of the kernel, which describes its build.
    pub version: String,
    /// Architecture of the processor, such as `x86_64`.
    pub architecture: String,
    /// Name of the machine.
    pub host_name: String,
    /// Display name of the system, such as `Ubuntu 24.04 LTS`, or else the name of the kernel.
    pub system: String,
    /// User of this process: the name if the machine knows it, otherwise the number.
    pub user: String,
    /// Model of the processor, if the kernel reports it.
    pub processor: Option<String>,
    /// Number of processors that this process may use.
    pub processors: usize,
    /// Total memory, in bytes.
    pub total_memory_bytes: u64,
    /// Time since the machine started.
    pub uptime: Duration,
}

impl Machine {
    /// Reads the properties from the system. Blocks briefly.
    pub fn read() -> Self {
        let (kernel, memory) = (uname(), sysinfo());
        let text = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
        let os_release = system_file("/etc/os-release").unwrap_or_default();
        let cpu_info = system_file("/proc/cpuinfo").unwrap_or_default();
        let passwd = system_file("/etc/passwd").unwrap_or_default();
        let user = geteuid().as_raw();
        Self {
            system: value_of(&os_release, "PRETTY_NAME", '=').unwrap_or_else(|| text(kernel.sysname())),
            kernel: text(kernel.sysname()),
            release: text(kernel.release()),
            version: text(kernel.version()),
            architecture: text(kernel.machine()),
            host_name: text(kernel.nodename()),
            user: user_name(&passwd, user).unwrap_or_else(|| user.to_string()),
            processor: value_of(&cpu_info, "model name", ':'),
            processors: available_parallelism().map_or(1, usize::from),
            total_memory_bytes: bytes_of(memory.totalram, memory.mem_unit),
            uptime: Duration::from_secs(u64::try_from(memory.uptime).unwrap_or(0)),
        }
    }
}

#[expect(clippy::unnecessary_cast, reason = "the width differs by processor")]
fn bytes_of(units: rustix::ffi::c_ulong, unit: rustix::ffi::c_uint) -> u64 {
    (units as u64).saturating_mul(u64::from(unit))
}

/// Returns the value of the first matching key, without quotes. Returns `None` if there is none or it is empty.
fn value_of(text: &str, key: &str, separator: char) -> Option<String> {
    let value = text.lines().find_map(|line| {
        let (name, value) = line.split_once(separator)?;
        (name.trim() == key).then(|| value.trim().trim_matches('"').to_owned())
    });
    value.filter(|value| !value.is_empty())
}

fn user_name(passwd: &str, user: u32) -> Option<String> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(user)).then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_kernel_memory_processors_and_user_of_this_machine() {
        let machine = Machine::read();
        assert_eq!(machine.kernel, "Linux");
        assert!(machine.total_memory_bytes > 1 << 20 && machine.processors > 0 && !machine.user.is_empty());
    }

    #[test]
    fn system_files_are_parsed_with_tolerance_for_missing_or_broken_lines() {
        let cpu_info = "processor\t: 0\nmodel name\t: Fast One\nprocessor\t: 1\nmodel name\t: Fast Two\n";
        assert_eq!(value_of(cpu_info, "model name", ':').as_deref(), Some("Fast One"));
        assert_eq!(
            value_of("NAME=x\nPRETTY_NAME=\"Some System 1\"", "PRETTY_NAME", '=').as_deref(),
            Some("Some System 1")
        );
        assert_eq!(value_of("PRETTY_NAME=", "PRETTY_NAME", '='), None);
        let passwd = "root:x:0:0:root:/root:/bin/sh\nbroken\nme:x:1000:1000::/home/me:/bin/sh\n";
        assert_eq!(user_name(passwd, 1000).as_deref(), Some("me"));
        assert_eq!(user_name(passwd, 7), None);
    }
}
