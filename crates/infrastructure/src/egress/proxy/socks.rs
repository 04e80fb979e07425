//! SOCKS5 (RFC 1928): no authentication, `CONNECT`, names and addresses.

use crate::egress::{
    connector::ConnectError,
    host::Host,
    proxy::{
        TargetConnector,
        client_stream::TrafficMeterStream,
        refusal::{Refusal, RefusalClass},
    },
};
use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional},
    time::timeout,
};

/// Version number, the first byte of every message of a client.
pub(super) const VERSION: u8 = 5;

const NO_AUTHENTICATION: u8 = 0;
const NO_METHOD: u8 = 0xff;
const CONNECT: u8 = 1;
const IPV4: u8 = 1;
const NAME: u8 = 3;
const IPV6: u8 = 4;

/// Second byte of a reply.
#[derive(Clone, Copy)]
enum Reply {
    Succeeded = 0,
    GeneralFailure = 1,
    NotAllowed = 2,
    HostUnreachable = 4,
    ConnectionRefused = 5,
    CommandNotSupported = 7,
    AddressTypeNotSupported = 8,
}

/// Serves one client until the connection ends.
pub(super) async fn serve(mut client: TrafficMeterStream, gate: &TargetConnector) {
    let target = match timeout(gate.policy.limits.head_time, read_target(&mut client)).await {
        Ok(Ok(Ok(target))) => target,
        Ok(Ok(Err((reply, refusal)))) => {
            gate.refused(&refusal);
            return end(client, reply).await;
        }
        // The client closed the connection, or sent an invalid message that has no reply.
        Ok(Err(_)) | Err(_) => return,
    };
    match gate.open(&target.0, target.1).await {
        Ok(mut upstream) => {
            if answer(&mut client, Reply::Succeeded).await.is_ok() {
                // Either side may close the connection. The error is not reported to either.
                let _ = copy_bidirectional(&mut client, &mut upstream).await;
            }
        }
        Err(refusal) => {
            gate.refused(&refusal);
            end(client, reply_to(&refusal)).await;
        }
    }
}

/// Negotiates with the client and returns the target that it names, or the reply and the refusal for an invalid target
/// or command. An error means that there is no reply.
async fn read_target(client: &mut TrafficMeterStream) -> io::Result<Result<(Host, u16), (Reply, Refusal)>> {
    let nonsense = || io::Error::from(io::ErrorKind::InvalidData);
    let [VERSION, count] = read(client).await? else { return Err(nonsense()) };
    let mut methods = vec![0; count.into()];
    client.read_exact(&mut methods).await?;
    if !methods.contains(&NO_AUTHENTICATION) {
        client.write_all(&[VERSION, NO_METHOD]).await?;
        return Err(nonsense());
    }
    client.write_all(&[VERSION, NO_AUTHENTICATION]).await?;
    let [VERSION, command, _, kind] = read(client).await? else { return Err(nonsense()) };
    let host = match kind {
        IPV4 => Ok(Host::Address(Ipv4Addr::from(read::<4>(client).await?).into())),
        IPV6 => Ok(Host::Address(IpAddr::V6(Ipv6Addr::from(read::<16>(client).await?)))),
        NAME => {
            let [length] = read(client).await?;
            let mut name = vec![0; length.into()];
            client.read_exact(&mut name).await?;
            // Bytes that are not UTF-8 become a text that is not a valid host.
            Host::parse(&String::from_utf8_lossy(&name)).map_err(|invalid| (Reply::NotAllowed, invalid.into()))
        }
        _ => {
            let refusal = Refusal::Request("a SOCKS address must be IPv4, IPv6 or a name");
            return Ok(Err((Reply::AddressTypeNotSupported, refusal)));
        }
    };
    let port = u16::from_be_bytes(read(client).await?);
    if command != CONNECT {
        return Ok(Err((Reply::CommandNotSupported, Refusal::Request("the only supported SOCKS command is CONNECT"))));
    }
    Ok(host.map(|host| (host, port)))
}

async fn read<const N: usize>(client: &mut TrafficMeterStream) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    client.read_exact(&mut bytes).await?;
    Ok(bytes)
}

fn reply_to(refusal: &Refusal) -> Reply {
    match refusal {
        Refusal::Connect(_, ConnectError::Connect { source, .. })
            if source.kind() == io::ErrorKind::ConnectionRefused =>
        {
            Reply::ConnectionRefused
        }
        refusal => match refusal.class() {
            RefusalClass::Forbidden => Reply::NotAllowed,
            RefusalClass::Unreachable => Reply::HostUnreachable,
            RefusalClass::Malformed => Reply::GeneralFailure,
        },
    }
}

async fn answer(client: &mut TrafficMeterStream, reply: Reply) -> io::Result<()> {
    // The address in the reply would be the local one of the proxy, which the client must not learn.
    client.write_all(&[VERSION, reply as u8, 0, IPV4, 0, 0, 0, 0, 0, 0]).await
}

async fn end(mut client: TrafficMeterStream, reply: Reply) {
    // The client reads the reply, or has closed the connection.
    let _ = answer(&mut client, reply).await;
    let _ = client.shutdown().await;
}
