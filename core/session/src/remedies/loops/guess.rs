//! What a guess at a statement is on the wire. A run of the program's own prepared statement binds that one. Any other
//! parses the text, under the session's own names.

use onetrip_ledger::{Moment, Remedy};
use onetrip_loops::Guess;
use onetrip_wire::pg::{Bind, Execute, Formats, StatementOrPortal, Values, frontend};

use super::Loops;
use super::request::{Way, encoded_values};
use crate::remedies::proposes::Proposes;
use crate::remedies::remedy::{Cx, Need};
use crate::reply_queue::{Due, Expect, Taker};
use crate::services::flights::{name_of_example, put_parse, put_sync};
use crate::services::put_close;
use crate::session::core::Core;

impl Proposes for Loops {
    fn claims_guess(&self, cx: &Cx<'_>, _: &Guess<'_>) -> Option<Need> {
        cx.may_remedy(Remedy::Loops).then_some(Need::Nothing)
    }

    fn key_of(&self, _: &Cx<'_>, guess: &Guess<'_>) -> Option<Vec<u8>> {
        self.ways.get(guess.template)?.key_of(guess)
    }

    fn put_guess(&mut self, cx: &mut Cx<'_>, _: Moment, guess: &Guess<'_>) {
        let Some(way) = self.ways.get(guess.template) else { return };
        let part = cx.flights.put_guess(guess);
        let portal = cx.own_names.name();
        match way {
            Way::Simple { .. } => {
                let text = way.text_of(guess).unwrap_or_default();
                put_parse(cx.core, part, portal, &text, &[]);
                put_run(cx.core, part, (portal, portal), (&[], &[0, 0], &[]), true);
                put_close(cx.core, Due::own(part, Expect::Close), StatementOrPortal::Statement(portal));
            }
            Way::Extended { text, types, parameter_codes, result_codes, describes, prepared: own } => {
                let statement = match own {
                    Some(own) => own.name.to_vec(),
                    None => name_of_example(cx.own_names, guess.template),
                };
                if own.is_none() && cx.flights.prepares(guess.template) {
                    let types: Vec<u8> = types.iter().flat_map(|oid| oid.to_be_bytes()).collect();
                    put_parse(cx.core, part, &statement, &text.bytes, &types);
                }
                let values = encoded_values(guess);
                let given = (parameter_codes.as_slice(), values.as_slice(), result_codes.as_slice());
                put_run(cx.core, part, (portal, &statement), given, *describes);
            }
        }
        put_sync(cx.core, part);
    }
}

/// Binds, describes, executes and closes; `given` are format codes, values and the result's format codes.
fn put_run(
    core: &mut Core,
    part: Taker,
    (portal, statement): (&[u8], &[u8]),
    given: (&[u8], &[u8], &[u8]),
    describes: bool,
) {
    let (parameter_codes, values, result_codes) = given;
    put_close(core, Due::own(part, Expect::Close), StatementOrPortal::Portal(portal));
    Bind {
        portal,
        statement,
        parameter_formats: Formats::of_codes(parameter_codes),
        parameters: Values::decode(values).unwrap_or_default(),
        result_formats: Formats::of_codes(result_codes),
    }
    .encode(core.server_outbox());
    core.owe_own(Due::own(part, Expect::Bind));
    if describes {
        StatementOrPortal::Portal(portal).encode(frontend::DESCRIBE, core.server_outbox());
        core.owe_own(Due::own(part, Expect::DescribePortal));
    }
    Execute { portal, row_limit: None }.encode(core.server_outbox());
    core.owe_own(Due::own(part, Expect::Execute));
    put_close(core, Due::own(part, Expect::Close), StatementOrPortal::Portal(portal));
}
