//! Network interfaces.
#![expect(unsafe_code, reason = "getifaddrs is the C library's, and nothing safe tells addresses by interface")]

use crate::host::system_file;
use std::{
    collections::BTreeMap,
    ffi::CStr,
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    ptr,
};

/// A network interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkInterface {
    /// Name, such as `eth0`.
    pub name: String,
    /// Type: `Ethernet`, `Wireless`, `Loopback`, `Tunnel` or `Other`.
    pub kind: &'static str,
    /// `true` if the interface is switched on and connected.
    pub is_up: bool,
    /// `true` for the loopback interface.
    pub is_loopback: bool,
    /// Speed in megabits per second, if the driver reports it.
    pub speed_mbps: Option<u64>,
    /// Addresses, sorted.
    pub addresses: Vec<IpAddr>,
}

/// Returns all interfaces, sorted by name. Blocks briefly.
///
/// # Errors
/// The error of the system.
pub fn interfaces() -> io::Result<Vec<NetworkInterface>> {
    let mut all: BTreeMap<String, NetworkInterface> = BTreeMap::new();
    let mut first: *mut libc::ifaddrs = ptr::null_mut();
    // SAFETY: the pointer is written once, and only on success.
    if unsafe { libc::getifaddrs(&raw mut first) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let mut next = first;
    while !next.is_null() {
        // SAFETY: the entry is in the list that getifaddrs created, which lives until freeifaddrs below.
        let entry = unsafe { &*next };
        // SAFETY: the name is a C string that lives as long as the list.
        let name = unsafe { CStr::from_ptr(entry.ifa_name) }.to_string_lossy().into_owned();
        let interface = all.entry(name).or_insert_with_key(|name| interface(name, entry.ifa_flags));
        // SAFETY: null, or an address that lives as long as the list and is as large as its family says.
        interface.addresses.extend(unsafe { address(entry.ifa_addr) });
        next = entry.ifa_next;
    }
    // SAFETY: the list came from getifaddrs and is not used any more.
    unsafe { libc::freeifaddrs(first) };
    for interface in all.values_mut() {
        interface.addresses.sort();
        interface.addresses.dedup();
    }
    Ok(all.into_values().collect())
}

fn interface(name: &str, flags: libc::c_uint) -> NetworkInterface {
    let is = |flag: libc::c_int| flags & flag.unsigned_abs() != 0;
    let read = |what: &str| {
        // A name must not act as a path. The kernel permits no slash in it, but this code does not rely on that.
        let name = (!name.contains('/') && name != "..").then_some(name)?;
        Some(system_file(&format!("/sys/class/net/{name}/{what}"))?.trim().to_owned())
    };
    let is_loopback = is(libc::IFF_LOOPBACK);
    NetworkInterface {
        name: name.into(),
        kind: kind(read("type").as_deref(), read("uevent").is_some_and(|event| event.contains("DEVTYPE=wlan"))),
        is_up: is(libc::IFF_UP) && is(libc::IFF_RUNNING),
        is_loopback,
        // Drivers report -1 if the speed is unknown.
        speed_mbps: read("speed").and_then(|speed| speed.parse().ok()).filter(|_| !is_loopback),
        addresses: Vec::new(),
    }
}

/// Returns the type for the number of the hardware (`linux/if_arp.h`).
fn kind(hardware: Option<&str>, is_wireless: bool) -> &'static str {
    match hardware {
        Some("1") if is_wireless => "Wireless",
        Some("1") => "Ethernet",
        Some("772") => "Loopback",
        Some("768" | "769" | "776" | "778" | "65534") => "Tunnel",
        _ => "Other",
    }
}

/// Returns the internet address in a socket address; `None` for a null pointer and for any other family.
///
/// # Safety
/// The pointer must be null, or point to an address whose size matches its family.
unsafe fn address(pointer: *const libc::sockaddr) -> Option<IpAddr> {
    if pointer.is_null() {
        return None;
    }
    // SAFETY: not null; every address begins with its family.
    match i32::from(unsafe { (*pointer).sa_family }) {
        libc::AF_INET => {
            // SAFETY: the family determines the type; the address may be unaligned.
            let address = unsafe { ptr::read_unaligned(pointer.cast::<libc::sockaddr_in>()) };
            Some(Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr)).into())
        }
        libc::AF_INET6 => {
            // SAFETY: the family determines the type; the address may be unaligned.
            let address = unsafe { ptr::read_unaligned(pointer.cast::<libc::sockaddr_in6>()) };
            Some(Ipv6Addr::from(address.sin6_addr.s6_addr).into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_interface_is_listed_with_its_kind_and_address() {
        let all = interfaces().unwrap();
        let loopback = all.iter().find(|interface| interface.is_loopback).unwrap();
        assert_eq!(loopback.kind, "Loopback");
        assert!(!loopback.is_up || loopback.addresses.contains(&Ipv4Addr::LOCALHOST.into()), "{loopback:?}");
    }

    #[test]
    fn interface_hardware_types_have_display_names() {
        assert_eq!(kind(Some("1"), false), "Ethernet");
        assert_eq!(kind(Some("1"), true), "Wireless");
        assert_eq!(kind(None, false), "Other");
    }
}
