//! What breaks in the midst of a program breaks it as it would without the gateway: the server's process is ended, the
//! socket is cut at any byte, a statement is cancelled at any time, replies come in pieces or are read slowly. Never is
//! there a row that was not, a step without an answer, or a transaction that ended otherwise.
//!
//! `ONETRIP_FAULTS=500` runs more programs of each kind, `ONETRIP_SEED=N` the one that a failure names.

mod breakage;
mod common;
mod rig;

use std::time::Duration;

use breakage::oracle::{Breakage, Verdict, is_left_as, judge};
use breakage::relay::{Pace, Relay, Way};
use breakage::trial::{Fault, Site, Trial, program, run};
use common::client::{Endpoint, RawClient};
use common::server::{RunningGateway, Server, config};
use onetrip_gateway::{GatewayConfig, Remedies};
use onetrip_link::LinkSpec;
use rig::lane::Lane;
use rig::random::Random;
use rig::schema;
use rig::step::Step;

/// Programs of each kind.
const PROGRAMS: u64 = 15;
const RTT: Duration = Duration::from_millis(2);

/// A server, and a gateway before it, with a relay between the two.
struct Scene {
    server: &'static Server,
    database: &'static str,
    relay: Relay,
    gateway: RunningGateway,
}

impl Scene {
    fn set_up(database: &'static str, pace: Pace) -> Self {
        let server = Server::shared();
        server.psql("postgres", &format!("CREATE DATABASE {database}"));
        server.psql(database, &schema::create());
        let relay = Relay::start(server.direct(), pace);
        let upstream = server.upstream_by(relay.endpoint().port());
        let link = Some(LinkSpec::with_rtt(RTT));
        let gateway =
            RunningGateway::start(GatewayConfig { remedies: Remedies::exact(), link, ..config(upstream) });
        Self { server, database, relay, gateway }
    }

    fn run(&self, steps: &[Step], endpoint: &Endpoint, fault: Option<&Fault<'_>>) -> Trial {
        let direct = self.server.direct();
        run(steps, &Site { endpoint, direct: &direct, database: self.database }, fault)
    }

    fn direct(&self, steps: &[Step]) -> Trial {
        self.run(steps, &self.server.direct(), None)
    }

    /// Runs a program that breaks; panics if it does not do so as it may. True if it broke at all.
    fn try_break(&self, seed: u64, steps: &[Step], breakage: Breakage, fault: &Fault<'_>) -> bool {
        let alone = self.direct(steps);
        let broken = self.run(steps, &self.gateway.endpoint(), Some(fault));
        self.relay.mend();
        let step = match judge(&alone, &broken, breakage, fault.step) {
            Verdict::Whole if breakage == Breakage::Cancelled => {
                let same = is_left_as(&broken.left, &alone.left, &alone.left);
                assert!(
                    same,
                    "ONETRIP_SEED={seed}: nothing was cancelled at {}, yet {:?}\nagainst {:?}\n{}",
                    fault.step,
                    broken.left,
                    alone.left,
                    shown(steps)
                );
                return false;
            }
            Verdict::Whole => return false,
            Verdict::Broken(step) => step,
            Verdict::Wrong(how) => {
                panic!("ONETRIP_SEED={seed}: {breakage:?} at {}: {how}\n{}", fault.step, shown(steps))
            }
        };
        if breakage != Breakage::Cancelled {
            let (before, behind) =
                (self.direct(&steps[..step]), self.direct(&steps[..=step.min(steps.len() - 1)]));
            assert!(
                is_left_as(&broken.left, &before.left, &behind.left),
                "ONETRIP_SEED={seed}: {breakage:?} at {}, broken at {step}: {:?}\nagainst {:?}\nor {:?}\n{}",
                fault.step,
                broken.left,
                before.left,
                behind.left,
                shown(steps)
            );
        }
        true
    }
}

fn shown(steps: &[Step]) -> String {
    steps.iter().enumerate().map(|(number, step)| format!("{number}: {}\n", step.shown)).collect()
}

/// Programs, each with where it breaks and after how long.
fn programs() -> impl Iterator<Item = (u64, Random, Vec<Step>)> {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let seeds = number("ONETRIP_SEED").map(|seed| seed..seed + 1);
    let seeds = seeds.unwrap_or(0..number("ONETRIP_FAULTS").unwrap_or(PROGRAMS));
    seeds.map(|seed| {
        let mut random = Random::new(seed ^ 0xfa17);
        let steps = program(&mut random);
        (seed, random, steps)
    })
}

/// A time up to twice what an answer takes.
fn moment(random: &mut Random) -> Duration {
    RTT * random.below(1000) as u32 / 500
}

#[test]
fn a_process_that_is_ended_ends_the_program_as_it_would_directly() {
    let scene = Scene::set_up("killed", Pace::AS_IT_COMES);
    let mut broken = 0;
    for (seed, mut random, steps) in programs() {
        let strike = |lane: &Lane| {
            let text = format!("SELECT pg_terminate_backend({})", lane.process);
            RawClient::session(&scene.server.direct(), "postgres").query(&text);
        };
        let fault = Fault {
            step: random.below(steps.len()),
            delay: moment(&mut random),
            when_idle: false,
            strike: &strike,
        };
        broken += u64::from(scene.try_break(seed, &steps, Breakage::Killed, &fault));
    }
    assert!(broken > 0, "nothing broke");
}

#[test]
fn a_socket_that_is_cut_ends_the_program_as_it_would_directly() {
    let scene = Scene::set_up("cut", Pace::AS_IT_COMES);
    let mut broken = 0;
    for (seed, mut random, steps) in programs() {
        let way = random.pick(&[Way::ToServer, Way::ToClient]);
        let bytes = random.below(400) as i64;
        let strike = |_: &Lane| scene.relay.cut_after(way, bytes);
        let fault = Fault {
            step: random.below(steps.len()),
            delay: Duration::ZERO,
            when_idle: false,
            strike: &strike,
        };
        broken += u64::from(scene.try_break(seed, &steps, Breakage::Cut, &fault));
    }
    assert!(broken > 0, "nothing broke");
}

#[test]
fn a_cancel_at_any_time_cancels_a_statement_or_nothing() {
    let scene = Scene::set_up("cancelled", Pace::AS_IT_COMES);
    for (seed, mut random, steps) in programs() {
        let endpoint = scene.gateway.endpoint();
        let strike = |lane: &Lane| RawClient::connect(&endpoint).send(&lane.cancel_request());
        let fault = Fault {
            step: random.below(steps.len()),
            delay: moment(&mut random),
            when_idle: false,
            strike: &strike,
        };
        scene.try_break(seed, &steps, Breakage::Cancelled, &fault);
    }
}

#[test]
fn a_cancel_that_finds_the_program_idle_cancels_nothing() {
    let scene = Scene::set_up("idle", Pace::AS_IT_COMES);
    for (seed, mut random, steps) in programs() {
        let endpoint = scene.gateway.endpoint();
        let strike = |lane: &Lane| RawClient::connect(&endpoint).send(&lane.cancel_request());
        let delay = 8 * RTT;
        let fault = Fault { step: random.below(steps.len()), delay, when_idle: true, strike: &strike };
        let is_broken = scene.try_break(seed, &steps, Breakage::Cancelled, &fault);
        assert!(
            !is_broken,
            "ONETRIP_SEED={seed}: cancelled while idle behind {}\n{}",
            fault.step,
            shown(&steps)
        );
    }
}

/// Runs programs where nothing breaks, to a gateway's endpoint or what is before it.
fn assert_unbroken(scene: &Scene, endpoint: &Endpoint) {
    for (seed, _, steps) in programs() {
        let (alone, through) = (scene.direct(&steps), scene.run(&steps, endpoint, None));
        // Nothing may break from a step on that is not there.
        let verdict = judge(&alone, &through, Breakage::Cancelled, usize::MAX);
        assert_eq!(verdict, Verdict::Whole, "ONETRIP_SEED={seed}\n{}", shown(&steps));
        assert!(
            is_left_as(&through.left, &alone.left, &alone.left),
            "ONETRIP_SEED={seed}: {:?}",
            through.left
        );
    }
}

#[test]
fn replies_that_come_in_pieces_are_put_together() {
    let scene = Scene::set_up("pieces", Pace { piece: 3, pause: Duration::ZERO });
    assert_unbroken(&scene, &scene.gateway.endpoint());
}

#[test]
fn a_program_that_reads_slowly_reads_the_same() {
    let scene = Scene::set_up("slow", Pace::AS_IT_COMES);
    let slow = Relay::start(scene.gateway.endpoint(), Pace { piece: 200, pause: Duration::from_micros(300) });
    assert_unbroken(&scene, &slow.endpoint());
}
