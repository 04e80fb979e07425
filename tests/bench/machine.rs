//! The machine that the figures are from. They depend on its processor's caches, so that no figure is published without
//! it.

use std::{collections::BTreeSet, fs, path::Path, thread};

/// Returns one line: processor, number of processors, caches, memory and kernel. Unknown facts are left out.
pub(crate) fn facts() -> String {
    let read = |path: &str| fs::read_to_string(path).ok();
    let field = |text: String, name: &str| {
        let value = |line: &str| {
            line.split_once(':').filter(|(key, _)| key.trim() == name).map(|(_, value)| value.trim().to_owned())
        };
        text.lines().find_map(value)
    };
    let model = read("/proc/cpuinfo").and_then(|text| field(text, "model name"));
    let processors = thread::available_parallelism().ok().map(|count| format!("{count} processors"));
    let caches = caches(Path::new("/sys/devices/system/cpu/cpu0/cache"));
    let memory =
        read("/proc/meminfo").and_then(|text| field(text, "MemTotal")).map(|memory| format!("memory {memory}"));
    let kernel = read("/proc/sys/kernel/osrelease").map(|release| format!("Linux {}", release.trim()));
    let facts: Vec<String> = [model, processors, caches, memory, kernel].into_iter().flatten().collect();
    format!("machine: {}", facts.join(", "))
}

/// Returns the caches of one processor, such as `L1i 32K, L1d 32K, L2 512K`.
fn caches(folder: &Path) -> Option<String> {
    let read = |path: &Path, name: &str| Some(fs::read_to_string(path.join(name)).ok()?.trim().to_owned());
    let cache = |path: &Path| {
        let letter = match read(path, "type")?.as_str() {
            "Instruction" => "i",
            "Data" => "d",
            _ => "",
        };
        Some(format!("L{}{letter} {}", read(path, "level")?, read(path, "size")?))
    };
    let all: BTreeSet<String> = fs::read_dir(folder).ok()?.flatten().filter_map(|entry| cache(&entry.path())).collect();
    (!all.is_empty()).then(|| Vec::from_iter(all).join(", "))
}
