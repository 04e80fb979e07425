//! Control groups of runs. If the machine supports none, or not all limits, the rest is tested.

use super::*;
use crate::sandbox::control_group;

/// Returns the group of a process, as this process sees it.
fn group_of(process: u32) -> Option<PathBuf> {
    let groups = fs::read_to_string(format!("/proc/{process}/cgroup")).ok()?;
    groups.lines().find_map(|line| line.strip_prefix("0::")).map(PathBuf::from)
}

fn children_of(process: u32) -> Vec<u32> {
    let children = fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap_or_default();
    children.split_whitespace().filter_map(|id| id.parse().ok()).collect()
}

#[test]
fn a_run_has_its_own_control_group_which_is_removed_with_the_run() {
    as_both("groups::a_run_has_its_own_control_group_which_is_removed_with_the_run", async || {
        let world = World::new();
        let mut child = world.launcher.launch(world.spec("cat /proc/self/cgroup; sleep 999")).await.unwrap();
        let mut stdout = child.stdout.take().unwrap();
        let mut said = vec![0; 4096];
        let read = stdout.read(&mut said).await.unwrap();
        said.truncate(read);
        // The run sees itself at the root of the hierarchy.
        let said = String::from_utf8(said).unwrap();
        assert!(said.lines().all(|line| line.ends_with(":/")), "{said}");
        let init = group_of(child.id());
        let payload = children_of(child.id()).first().and_then(|id| group_of(*id)).unwrap();
        match control_group::tried() {
            Err(reason) => {
                assert!(!reason.is_empty());
                assert_eq!(Some(payload), init);
                child.kill().await;
            }
            Ok(_) => {
                // The init cleans up after the kernel has killed all processes of the group.
                let of_process = payload.parent().unwrap().file_name().unwrap().to_str().unwrap();
                assert!(of_process.starts_with("toolstead-"), "{payload:?}");
                assert_ne!(Some(&payload), init.as_ref());
                child.kill().await;
                let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
                let top = mounts.lines().find(|line| line.contains(" - cgroup2 ")).unwrap();
                let top = Path::new(top.split(' ').nth(4).unwrap());
                let path = top.join(payload.strip_prefix("/").unwrap());
                let gone = async {
                    while path.exists() {
                        tokio::time::sleep(Duration::from_millis(5)).await;
                    }
                };
                timeout(Duration::from_secs(120), gone).await.unwrap();
            }
        }
    });
}

/// Each process is within its own limit, and so are their files in `/tmp`.
#[tokio::test]
async fn a_run_out_of_memory_ends_as_a_whole_and_its_protected_changes_are_undone() {
    let world = World::new();
    let mut spec = world.spec(
        "echo {} > .mcp.json; head -c 500M /dev/zero > /tmp/large; \
         for i in $(seq 5); do (head -c 50M /dev/zero; sleep 2) | tail -c 50M > /dev/null & done; wait; echo through",
    );
    spec.policy.limits.memory_bytes = 64 << 20;
    let done = world.run(spec).await;
    // Twice the limit of one process, and the limit of its `/tmp`.
    let bound = (2 * 64 + 512) << 20;
    match control_group::tried() {
        Ok(bounds) if bounds.memory => {
            assert_eq!(done.exit, Exit::OutOfMemory(control_group::OutOfMemoryCause::OfRun(bound)), "{}", done.stderr);
        }
        _ => assert_eq!((done.stdout.as_str(), done.exit), ("through\n", Exit::Code(0)), "{}", done.stderr),
    }
    assert!(!world.work().join(".mcp.json").exists());
    assert_eq!((done.undone.len(), done.left.len()), (1, 0), "{:?}", done.undone);
}
