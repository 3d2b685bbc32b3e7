use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::mpsc::{Receiver, Sender, channel};

use super::*;
use crate::blocking;

/// How long a test waits for what has to come.
const PATIENCE: Duration = Duration::from_secs(20);

/// What a member does with a byte.
type Act = fn(u8, &Receiver<()>);

/// Does something with each byte, and then sends it back.
struct Echo {
    stream: Arc<TcpStream>,
    act: Act,
    gate: Receiver<()>,
}

impl Member for Echo {
    fn advance(self: Box<Self>, _waits: bool) -> Option<Box<dyn Member>> {
        let mut byte = [0];
        if (&*self.stream).read(&mut byte).unwrap() == 0 {
            return None;
        }
        (self.act)(byte[0], &self.gate);
        (&*self.stream).write_all(&byte).unwrap();
        Some(self)
    }
}

pub(super) struct Client {
    stream: TcpStream,
    gate: Sender<()>,
}

impl Client {
    pub(super) fn send(&mut self, byte: u8) {
        self.stream.write_all(&[byte]).unwrap();
    }

    /// The byte that comes back; `None` at the end.
    pub(super) fn receive(&mut self) -> Option<u8> {
        let mut byte = [0];
        (self.stream.read(&mut byte).unwrap() > 0).then_some(byte[0])
    }
}

pub(super) fn connect<const COUNT: usize>(crew: &Arc<Crew>, act: Act) -> [Client; COUNT] {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    std::array::from_fn(|number| join(crew, &listener, number as u32, act))
}

fn join(crew: &Arc<Crew>, listener: &TcpListener, token: u32, act: Act) -> Client {
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    let stream = Arc::new(listener.accept().unwrap().0);
    let (gate, waits) = channel();
    let member = Box::new(Echo { stream: Arc::clone(&stream), act, gate: waits });
    crew.add(token, stream, member).unwrap();
    Client { stream: client, gate }
}

fn changes(hand_overs: u64, take_overs: u64) -> Changes {
    Changes { hand_overs, take_overs }
}

/// `w` waits and says so first, `s` waits silently, `p` panics.
fn act(byte: u8, gate: &Receiver<()>) {
    match byte {
        b'w' => {
            blocking::announce();
            gate.recv().unwrap();
        }
        b's' => gate.recv().unwrap(),
        b'p' => std::panic::resume_unwind(Box::new("a member panics")), // without the hook's report
        _ => {}
    }
}

#[test]
fn a_leader_that_waits_hands_over_and_its_member_comes_back() {
    let crew = Crew::without_lookout().unwrap();
    let [mut waiting, mut other] = connect(&crew, act);
    for round in 1..=3 {
        waiting.send(b'w');
        for byte in *b"abc" {
            other.send(byte);
            assert_eq!(other.receive(), Some(byte));
        }
        waiting.gate.send(()).unwrap();
        assert_eq!(waiting.receive(), Some(b'w'));
        waiting.send(b'd');
        assert_eq!(waiting.receive(), Some(b'd'));
        assert_eq!(crew.changes(), changes(round, 0));
    }
    crew.stop(PATIENCE);
    assert_eq!(crew.threads.count(), 0);
}

#[test]
fn members_that_do_not_wait_have_one_thread() {
    let crew = Crew::without_lookout().unwrap();
    let mut clients: [Client; 8] = connect(&crew, act);
    for byte in 0..100 {
        clients.iter_mut().for_each(|client| client.send(byte));
        assert!(clients.iter_mut().all(|client| client.receive() == Some(byte)));
    }
    assert_eq!((crew.changes(), crew.threads.count()), (changes(0, 0), 1));
    crew.stop(PATIENCE);
}

#[test]
fn a_leader_that_is_kept_up_is_relieved() {
    let crew = Crew::new().unwrap();
    let [mut slow, mut other] = connect(&crew, act);
    slow.send(b's');
    other.send(b'a');
    assert_eq!(other.receive(), Some(b'a'));
    assert!(crew.changes().take_overs >= 1);
    slow.gate.send(()).unwrap();
    assert_eq!(slow.receive(), Some(b's'));
    // Asleep or not, the lookout sees the next one, too.
    for pause_ms in [0, 100] {
        std::thread::sleep(Duration::from_millis(pause_ms));
        slow.send(b's');
        other.send(b'b');
        assert_eq!(other.receive(), Some(b'b'));
        slow.gate.send(()).unwrap();
        assert_eq!(slow.receive(), Some(b's'));
    }
    crew.stop(PATIENCE);
    assert_eq!(crew.threads.count(), 0);
}

#[test]
fn a_panic_ends_the_connection_that_it_is_of() {
    let crew = Crew::without_lookout().unwrap();
    let [mut panicking, mut other] = connect(&crew, act);
    panicking.send(b'p');
    assert_eq!(panicking.receive(), None);
    other.send(b'a');
    assert_eq!(other.receive(), Some(b'a'));
    assert_eq!(crew.sets()[0].len(), 1);
    drop(other);
    crew.stop(PATIENCE);
}

/// Members of the next test that have come to what may wait.
static WAITS: AtomicU64 = AtomicU64::new(0);

fn act_and_tell(byte: u8, gate: &Receiver<()>) {
    WAITS.fetch_add(u64::from(byte == b'w'), Ordering::SeqCst);
    act(byte, gate);
}

#[test]
fn the_only_member_keeps_its_thread_until_another_one_comes() {
    let crew = Crew::without_lookout().unwrap();
    let [mut first] = connect(&crew, act_and_tell);
    for byte in 0..10 {
        first.send(byte);
        assert_eq!(first.receive(), Some(byte));
    }
    assert_eq!(crew.threads.count(), 1);
    // The first may wait now: the second has a leader.
    first.send(b'w');
    while WAITS.load(Ordering::SeqCst) == 0 {
        std::thread::yield_now();
    }
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let mut second = join(&crew, &listener, 1, act);
    second.send(b'a');
    assert_eq!(second.receive(), Some(b'a'));
    // Nobody has handed anything over for it.
    assert_eq!((crew.threads.count(), crew.changes()), (2, changes(0, 0)));
    first.gate.send(()).unwrap();
    assert_eq!(first.receive(), Some(b'w'));
    // And now it rests with the other one: the leader hands over for it.
    first.send(b'c');
    assert_eq!(first.receive(), Some(b'c'));
    let before = crew.changes().hand_overs;
    first.send(b'w');
    second.send(b'b');
    assert_eq!((second.receive(), crew.changes()), (Some(b'b'), changes(before + 1, 0)));
    first.gate.send(()).unwrap();
    assert_eq!(first.receive(), Some(b'w'));
    drop((first, second));
    crew.stop(PATIENCE);
    assert_eq!(crew.threads.count(), 0);
}

#[test]
fn half_of_a_set_moves_to_another_leader_and_lives_on() {
    let crew = Crew::without_lookout().unwrap();
    let mut clients: [Client; 8] = connect(&crew, act);
    let second = crew.add_set().unwrap();
    // One is away.
    clients[0].send(b'w');
    clients[1].send(b'a');
    assert_eq!(clients[1].receive(), Some(b'a'));
    let first = Arc::clone(&crew.sets()[0]);
    first.move_half(&second, |turn| crew.start_leader(&second, turn));
    assert_eq!((first.len(), second.len()), (4, 4));
    clients[0].gate.send(()).unwrap();
    assert_eq!(clients[0].receive(), Some(b'w'));
    for byte in 0..10 {
        clients.iter_mut().for_each(|client| client.send(byte));
        assert!(clients.iter_mut().all(|client| client.receive() == Some(byte)));
    }
    crew.stop(PATIENCE);
    assert_eq!(crew.threads.count(), 0);
}
