//! The TCP connections that a program and its children have at a moment, as `/proc` tells them.

use std::collections::BTreeSet;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Processes that are looked at.
const PROCESSES_MAX: usize = 1000;

/// Where connections of this process and its descendants lead; empty where the system does not tell.
pub fn connections_of(process: u32) -> BTreeSet<SocketAddr> {
    let mut found = BTreeSet::new();
    let mut processes = vec![process];
    let mut next = 0;
    while let Some(process) = processes.get(next).copied() {
        next += 1;
        if processes.len() < PROCESSES_MAX {
            processes.extend(children(process));
        }
        let sockets = sockets(process);
        for table in ["tcp", "tcp6"] {
            let table = fs::read_to_string(format!("/proc/{process}/net/{table}")).unwrap_or_default();
            found.extend(
                table
                    .lines()
                    .filter_map(connection)
                    .filter_map(|(remote, socket)| sockets.contains(&socket).then_some(remote)),
            );
        }
    }
    found
}

fn children(process: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<_>>())
        .collect()
}

/// The inodes of a process's sockets.
fn sockets(process: u32) -> BTreeSet<u64> {
    let files = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
    let names = files.filter_map(|file| fs::read_link(file.path()).ok());
    names
        .filter_map(|name| name.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok())
        .collect()
}

/// A line of `/proc/net/tcp`: the remote end and the socket's inode, of a connection that is there or being made.
fn connection(line: &str) -> Option<(SocketAddr, u64)> {
    let mut fields = line.split_whitespace();
    let remote = address(fields.nth(2)?)?;
    let is_alive = matches!(fields.next()?, "01" | "02");
    let socket = fields.nth(5)?.parse().ok()?;
    is_alive.then_some((remote, socket))
}

/// `0100007F:1538`: words in the machine's order, the port in plain hexadecimal.
fn address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let word = |at: usize| Some(u32::from_str_radix(ip.get(at..at + 8)?, 16).ok()?.to_ne_bytes());
    let ip = match ip.len() {
        8 => IpAddr::from(Ipv4Addr::from(word(0)?)),
        32 => {
            let words = [word(0)?, word(8)?, word(16)?, word(24)?];
            IpAddr::from(Ipv6Addr::from(<[u8; 16]>::try_from(words.concat()).ok()?)).to_canonical()
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn connections_of_both_families_are_found() {
        for listening in ["127.0.0.1:0", "[::1]:0"] {
            let listener = TcpListener::bind(listening).unwrap();
            let address = listener.local_addr().unwrap();
            let connected = TcpStream::connect(address).unwrap();
            assert!(connections_of(std::process::id()).contains(&address));
            drop(connected);
        }
    }
}
