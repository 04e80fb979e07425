//! Describes this machine: `cargo run -p toolstead-infrastructure --example host`.
#![expect(clippy::print_stdout, reason = "an example shows what it got")]

use std::io;
use toolstead_infrastructure::host::{disks::mounts, interfaces::interfaces, machine::Machine};

fn main() -> io::Result<()> {
    println!("{:#?}", Machine::read());
    for mount in mounts(false) {
        println!("{}: {:?}", mount.mount_point.display(), mount.space()?);
    }
    for interface in interfaces()? {
        println!("{interface:?}");
    }
    Ok(())
}
