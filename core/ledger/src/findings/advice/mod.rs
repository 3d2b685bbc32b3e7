//! What to change, named for the driver or ORM.
//!
//! Every call and setting that is named here is in the documentation or source of that driver.

mod reads;
mod sessions;
mod writes;

use super::Code;
use crate::Driver;

/// What to change, named for the driver or ORM.
pub fn advice(code: Code, driver: Driver) -> &'static str {
    match code {
        Code::Loop => reads::row_loop(driver),
        Code::RowByRow => writes::batch(driver),
        Code::CommitPerRow => writes::commit(driver),
        Code::TinyFetch => reads::fetch(driver),
        Code::Repeated => reads::repeat(driver),
        Code::TransactionAlone => sessions::transaction(driver),
        Code::PreparePerRun => sessions::prepare(driver),
        Code::ConnectionPerQuery => sessions::connection(driver),
        Code::OnePerValue => reads::one_per_value(driver),
        Code::LobChatter => reads::large_object(driver),
        Code::SessionChatter => sessions::chatter(driver),
        Code::Sequence => reads::sequence(driver),
        Code::ReadBeforeWrite => writes::read_before_write(driver),
        Code::SequenceTrip => writes::sequence_trip(driver),
        Code::ExistsThenInsert => writes::exists_then_insert(driver),
        Code::RollbackOfRead => sessions::rollback_of_read(driver),
    }
}
