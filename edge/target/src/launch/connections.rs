//! The TCP connections that a program and its children have at a moment, and those that were closed while it ran, as
//! `/proc` tells them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Processes that are looked at.
const PROCESSES_MAX: usize = 1000;
/// States of a connection that one end has closed: FIN-WAIT-1 and 2, TIME-WAIT, LAST-ACK, CLOSING.
const CLOSED: [&str; 5] = ["04", "05", "06", "09", "0B"];

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
            let rows = table.lines().filter_map(Row::read);
            let own = rows.filter(|row| row.is_alive() && sockets.contains(&row.socket));
            found.extend(own.map(|row| row.remote));
        }
    }
    found
}

/// Connections from this machine to some ports that are closed after a moment.
///
/// The end that closes first stays in the kernel's table for a minute (TIME-WAIT), without its owner. So this sees the
/// shortest connection, and does not tell whose it was.
#[derive(Debug)]
pub struct ClosedSince {
    ports: BTreeSet<u16>,
    /// Those that were open or closed before.
    before: BTreeSet<Ends>,
    closed: BTreeSet<Ends>,
}

/// Both ends of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Ends {
    server: SocketAddr,
    client: SocketAddr,
}

/// The connections to one server that were closed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClosedThere {
    /// How many.
    pub count: u64,
    /// There were others before the moment, open or closed, so somebody else connects there, too.
    pub has_earlier: bool,
}

impl ClosedSince {
    /// From now on; `None` where the system does not tell.
    pub fn now(ports: impl IntoIterator<Item = u16>) -> Option<Self> {
        let mut since =
            Self { ports: ports.into_iter().collect(), before: BTreeSet::new(), closed: BTreeSet::new() };
        since.before = since.rows()?.into_iter().map(|(ends, _)| ends).collect();
        Some(since)
    }

    /// Takes in those that the kernel still knows.
    pub fn look(&mut self) {
        let rows = self.rows().unwrap_or_default();
        let closed = rows.into_iter().filter(|(ends, is_closed)| *is_closed && !self.before.contains(ends));
        self.closed.extend(closed.map(|(ends, _)| ends));
    }

    /// The servers, with what was closed there.
    pub fn servers(&self) -> BTreeMap<SocketAddr, ClosedThere> {
        let mut servers: BTreeMap<SocketAddr, ClosedThere> = BTreeMap::new();
        for ends in &self.closed {
            servers.entry(ends.server).or_default().count += 1;
        }
        for ends in &self.before {
            if let Some(there) = servers.get_mut(&ends.server) {
                there.has_earlier = true;
            }
        }
        servers
    }

    /// All connections to these ports, and whether they are closed.
    fn rows(&self) -> Option<Vec<(Ends, bool)>> {
        let mut tables = fs::read_to_string("/proc/self/net/tcp").ok()?;
        // Without IPv6 there is none.
        tables.push_str(&fs::read_to_string("/proc/self/net/tcp6").unwrap_or_default());
        let rows = tables.lines().filter_map(Row::read);
        Some(rows.filter_map(|row| Some((self.ends(&row)?, row.is_closed()))).collect())
    }

    /// The ends of a connection that this machine made to one of the ports.
    fn ends(&self, row: &Row) -> Option<Ends> {
        let Row { local, remote, .. } = *row;
        if self.ports.contains(&remote.port()) {
            return Some(Ends { server: remote, client: local });
        }
        // A server on this machine that closed first has the only end that is left.
        let is_from_here = remote.ip() == local.ip();
        (is_from_here && self.ports.contains(&local.port())).then_some(Ends { server: local, client: remote })
    }
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

/// A line of `/proc/net/tcp`.
struct Row<'t> {
    local: SocketAddr,
    remote: SocketAddr,
    state: &'t str,
    /// The socket's inode; zero where no process has the socket any more.
    socket: u64,
}

impl<'t> Row<'t> {
    fn read(line: &'t str) -> Option<Self> {
        let mut fields = line.split_whitespace().skip(1);
        let (local, remote) = (address(fields.next()?)?, address(fields.next()?)?);
        let state = fields.next()?;
        Some(Self { local, remote, state, socket: fields.nth(5)?.parse().ok()? })
    }

    /// Whether it is there or being made.
    fn is_alive(&self) -> bool {
        matches!(self.state, "01" | "02")
    }

    fn is_closed(&self) -> bool {
        self.socket == 0 && CLOSED.contains(&self.state)
    }
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

    #[test]
    fn connections_that_were_closed_are_found_whichever_end_closed_first() {
        for listening in ["127.0.0.1:0", "[::1]:0"] {
            for client_is_first in [true, false] {
                let listener = TcpListener::bind(listening).unwrap();
                let address = listener.local_addr().unwrap();
                let connect = || (TcpStream::connect(address).unwrap(), listener.accept().unwrap().0);
                let earlier = connect();
                let mut since = ClosedSince::now([address.port()]).unwrap();
                let (client, server) = connect();
                since.look();
                assert_eq!(since.servers().len(), 0, "both are open");
                let (first, second) = if client_is_first { (client, server) } else { (server, client) };
                drop(first);
                drop(second);
                drop(earlier);
                since.look();
                let there = ClosedThere { count: 1, has_earlier: true };
                assert_eq!(since.servers().into_iter().collect::<Vec<_>>(), [(address, there)]);
            }
        }
    }
}
