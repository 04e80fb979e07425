//! The tool `disk_info`.

use crate::{
    builtin::{
        text::report::{TextReport, gigabytes},
        tool_kit::{
            answer::answer, blocking::on_blocking_thread, built_in_tool::BuiltInTool, schema::output_schema,
            tool_context::ToolContext,
        },
    },
    host::disks::{FileSystemSpace, Mount, mounts},
};
use futures::{StreamExt, stream};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;
use toolstead_domain::{Category, ToolAnnotations, ToolFailure, ToolResult};

/// Timeout of measuring one disk. A disk that takes longer hangs, as one whose server is unavailable does.
const TIME_FOR_A_DISK: Duration = Duration::from_secs(2);
/// Maximum number of disks that are measured at the same time.
const AT_ONCE: usize = 8;

/// Tool that lists the disks and the space on them.
pub(crate) struct DiskInfo;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// Include file systems that are not disks: memory, kernel, images.
    #[serde(default)]
    #[schemars(extend("x-advertised" = false))]
    all: bool,
}

#[derive(Serialize, JsonSchema)]
struct Output {
    disks: Vec<Disk>,
}

#[derive(Serialize, JsonSchema)]
struct Disk {
    mount_point: String,
    /// The device, or the server's folder.
    label: String,
    /// The file system's name.
    format: String,
    /// `true` if it responded in time; otherwise there are no sizes.
    ready: bool,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    room: Option<DiskSpace>,
}

#[derive(Serialize, JsonSchema)]
struct DiskSpace {
    total_bytes: u64,
    free_bytes: u64,
    /// Space available to this user.
    available_bytes: u64,
    used_percent: f64,
    read_only: bool,
}

impl BuiltInTool for DiskInfo {
    const NAME: &str = "disk_info";
    const TITLE: &str = "Disk information";
    const DESCRIPTION: &str = "Lists the disks of the machine with their format, size, free space and use. Use it \
         when space may be short, or before large files are written.";
    const BRIEF: &str = "Lists the disks with their size and free space.";
    const CATEGORY: Category = Category::System;
    const TAGS: &[&str] = &["disk", "host"];
    const KEYWORDS: &str = "capacity drive full hard partition storage usage volume";
    const ANNOTATIONS: ToolAnnotations = ToolAnnotations::READ_ONLY;
    const EXAMPLE: &str = "{}";
    type Input = Input;

    fn output_schema(&self) -> Option<Value> {
        Some(output_schema::<Output>())
    }

    async fn run(&self, input: Input, _: &ToolContext<'_>) -> Result<ToolResult, ToolFailure> {
        let mounts = on_blocking_thread(move || Ok(mounts(input.all))).await?;
        let disks: Vec<(Mount, Option<FileSystemSpace>)> =
            stream::iter(mounts).map(measured).buffered(AT_ONCE).collect().await;
        // Unless the caller requests all, file systems without any space are left out.
        let disks = disks.into_iter().filter(|(_, space)| input.all || space.is_none_or(|space| space.total_bytes > 0));
        let mut report = TextReport::titled("Disk Information");
        let mut output = Output { disks: Vec::new() };
        for (mount, space) in disks {
            let room = space.map(DiskSpace::of);
            let mut lines = vec![("Label", mount.source.clone()), ("Format", mount.file_system.clone())];
            match &room {
                Some(room) => lines.extend([
                    ("Total Size", gigabytes(room.total_bytes)),
                    ("Free Space", gigabytes(room.available_bytes)),
                    ("Used", format!("{:.1} %", room.used_percent)),
                ]),
                None => lines.push(("State", "does not respond".into())),
            }
            let mount_point = mount.mount_point.to_string_lossy().into_owned();
            report = report.section(&mount_point, &lines);
            output.disks.push(Disk {
                mount_point,
                label: mount.source,
                format: mount.file_system,
                ready: room.is_some(),
                room,
            });
        }
        if output.disks.is_empty() {
            report = report.line("No disk was found.");
        }
        answer(report.into_text(), &output)
    }
}

/// Returns a disk with its space; `None` if it cannot be measured, or not in time.
async fn measured(mount: Mount) -> (Mount, Option<FileSystemSpace>) {
    let asked = mount.clone();
    // A thread that hangs is abandoned: the system offers no way to cancel it.
    let measuring = on_blocking_thread(move || Ok(asked.space().ok()));
    let space = tokio::time::timeout(TIME_FOR_A_DISK, measuring).await;
    (mount, space.ok().and_then(Result::ok).flatten())
}

impl DiskSpace {
    fn of(space: FileSystemSpace) -> Self {
        let used = space.total_bytes.saturating_sub(space.free_bytes);
        // Percentage of the space that users can allocate. Space reserved for the system counts as neither used nor
        // free.
        let usable = used.saturating_add(space.available_bytes).max(1);
        Self {
            total_bytes: space.total_bytes,
            free_bytes: space.free_bytes,
            available_bytes: space.available_bytes,
            used_percent: (used as f64 / usable as f64 * 1000.0).round() / 10.0,
            read_only: space.read_only,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin::tests::Bench;
    use serde_json::json;

    #[test]
    fn disk_info_lists_every_file_system_on_request() {
        let result = Bench::new().call("disk_info", json!({"all": true})).unwrap();
        assert!(result.joined_text().starts_with("Disk Information\n================\n"));
        let disks = result.structured_content().unwrap()["disks"].as_array().unwrap();
        assert!(disks.iter().any(|disk| disk["mount_point"] == "/" && disk["ready"] == true));
    }

    #[test]
    fn disk_usage_is_computed_from_the_usable_space() {
        let space = FileSystemSpace { total_bytes: 100, free_bytes: 30, available_bytes: 20, read_only: false };
        assert_eq!(DiskSpace::of(space).used_percent, 77.8);
        let nothing = FileSystemSpace { total_bytes: 0, free_bytes: 0, available_bytes: 0, read_only: true };
        assert_eq!(DiskSpace::of(nothing).used_percent, 0.0);
    }
}
