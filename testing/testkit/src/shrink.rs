//! A program without whatever its failure does not need.

use std::time::{Duration, Instant};

use crate::step::Program;

/// Longest time that cutting down may take.
const LIMIT: Duration = Duration::from_secs(90);

/// Takes out runs of steps, then single ones, as long as it `fails`.
pub fn cut_down(mut program: Program, fails: impl Fn(&Program) -> bool) -> Program {
    let deadline = Instant::now() + LIMIT;
    let mut size = program.steps.len() / 2;
    while size > 0 {
        let mut at = 0;
        while at < program.steps.len() && Instant::now() < deadline {
            let mut fewer = program.clone();
            fewer.steps.drain(at..(at + size).min(program.steps.len()));
            if fails(&fewer) {
                program = fewer;
            } else {
                at += size;
            }
        }
        size /= 2;
    }
    program
}
