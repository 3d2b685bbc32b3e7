//! A simulation that finds nothing proves nothing: each of ten planted bugs is found.

use crate::gateway::Bug;
use crate::random::Random;
use crate::script::Limits;
use crate::world::simulate;

const SEEDS: u64 = 200;

fn found(bug: Bug) -> Option<u64> {
    let limits = Limits { acts: 6, dies: false };
    (0..SEEDS).find(|seed| simulate(Random::seeded(*seed), limits, Some(bug)).is_err())
}

#[test]
fn a_sync_that_is_not_queued_is_found() {
    assert!(found(Bug::SyncNotQueued).is_some());
}

#[test]
fn a_lost_notice_is_found() {
    assert!(found(Bug::NoticeLost).is_some());
}

#[test]
fn an_error_that_does_not_skip_to_sync_is_found() {
    assert!(found(Bug::ErrorWithoutSkip).is_some());
}

#[test]
fn an_answer_to_a_skipped_query_is_found() {
    assert!(found(Bug::SkippedQueryAnswered).is_some());
}

#[test]
fn a_flush_that_is_not_counted_is_found() {
    assert!(found(Bug::FlushNotCounted).is_some());
}

#[test]
fn a_key_that_is_not_replaced_is_found() {
    assert!(found(Bug::KeyNotReplaced).is_some());
}

#[test]
fn a_swallowed_copy_done_is_found() {
    assert!(found(Bug::CopyDoneSwallowed).is_some());
}

#[test]
fn two_replies_in_the_wrong_order_are_found() {
    assert!(found(Bug::RepliesReordered).is_some());
}

#[test]
fn a_partial_frame_that_is_lost_at_a_split_is_found() {
    assert!(found(Bug::PartialFrameLost).is_some());
}

#[test]
fn a_notice_that_counts_as_an_answer_is_found() {
    assert!(found(Bug::NoticeCountedAsAnswer).is_some());
}

#[test]
fn the_same_seeds_find_nothing_without_a_bug() {
    for seed in 0..SEEDS {
        let sound = simulate(Random::seeded(seed), Limits { acts: 6, dies: false }, None);
        assert!(sound.is_ok(), "seed {seed}: {sound:?}");
    }
}
