//! What remedies and services do alike: run statements of the session's own, and answer a unit in the server's place.

use onetrip_wire::pg::{
    Bind, Execute, Parse, StatementOrPortal, TransactionStatus, Values, backend, encode_ready_for_query,
    frame, frontend,
};

use super::arrived::Arrived;
use crate::facts::Facts;
use crate::own_names::OwnNames;
use crate::reply_queue::{Due, Expect, Taker};
use crate::session::core::Core;

/// Last of all, so that the end is not ended by the limit of the questions; an error takes that back as well.
pub(crate) const NO_LIMIT: &str = "SET LOCAL statement_timeout TO 0";

/// Runs a statement of the session's own by its private name, without a Sync.
pub(crate) fn put_own_statement(core: &mut Core, own_names: &OwnNames, taker: impl Into<Taker>, text: &[u8]) {
    let due = Due::own(taker, Expect::Execute);
    put_own(core, own_names, due, text, Values::default());
    put_close(core, due, StatementOrPortal::Portal(own_names.name()));
}

/// The same, with parameters as text, and leaves its portal. Each message is owed a reply as `due` says, of its own kind.
pub(crate) fn put_own(core: &mut Core, own_names: &OwnNames, due: Due, text: &[u8], parameters: Values<'_>) {
    let name = own_names.name();
    let (statement, portal) = (StatementOrPortal::Statement(name), StatementOrPortal::Portal(name));
    // An error may have left them, and a Parse or Bind that fails for that would end the program's transaction.
    put_close(core, due, portal);
    put_close(core, due, statement);
    Parse::untyped(name, text).encode(core.server_outbox());
    core.owe_own(Due { expect: Expect::Parse, ..due });
    Bind { parameters, ..Bind::without_parameters(name, name) }.encode(core.server_outbox());
    core.owe_own(Due { expect: Expect::Bind, ..due });
    // Now: what is behind an Execute that fails is skipped, and the program would find the statement among its own.
    put_close(core, due, statement);
    Execute { portal: name, row_limit: None }.encode(core.server_outbox());
    core.owe_own(Due { expect: Expect::Execute, ..due });
}

/// Closes an object of the session's own, whether it is there or not.
pub(crate) fn put_close(core: &mut Core, due: Due, object: StatementOrPortal<'_>) {
    object.encode(frontend::CLOSE, core.server_outbox());
    core.owe_own(Due { expect: Expect::Close, ..due });
}

/// What `read` makes of the text of the statement, or of the simple query, that a unit runs and does nothing else:
/// unnamed portal, no parameters, a statement that is surely there or surely accepted.
pub(crate) fn read_only_text<T>(
    (core, facts): (&Core, &mut Facts),
    unit: Arrived<'_>,
    read: impl FnOnce(&[u8]) -> Option<T>,
) -> Option<T> {
    let mut bound = None;
    let mut parsed = None;
    for (message, body) in unit.messages() {
        match message {
            frontend::QUERY => return body.strip_suffix(b"\0").and_then(read),
            frontend::PARSE => {
                let parse = Parse::decode(body).ok()?;
                facts.is_free(core, parse.statement).then_some(())?;
                parsed = Some(parse);
            }
            frontend::BIND => {
                let bind = Bind::decode(body).ok()?;
                let is_plain = bind.portal.is_empty()
                    && bind.parameters.is_empty()
                    && bind.result_formats.codes().len() <= 2
                    && bind.parameter_formats.codes().is_empty();
                let new = parsed.filter(|parse| parse.statement == bind.statement);
                bound = Some((bind.statement, new)).filter(|_| is_plain && bound.is_none());
                bound?;
            }
            frontend::DESCRIBE | frontend::CLOSE => {
                let object = StatementOrPortal::decode(body).ok()?;
                (object == StatementOrPortal::Portal(b"") && bound.is_some()).then_some(())?;
            }
            frontend::EXECUTE => {
                let execute = Execute::decode(body).ok()?;
                (execute.portal.is_empty() && bound.is_some()).then_some(())?;
            }
            _ => {}
        }
    }
    let count = |wanted: u8| unit.messages().filter(|(message, _)| *message == wanted).count();
    let bound = bound.filter(|_| count(frontend::EXECUTE) == 1 && count(frontend::PARSE) <= 1);
    match bound? {
        (_, Some(parse)) => read(parse.text),
        (statement, None) => read(facts.surely_prepared(core, statement)?),
    }
}

/// Puts what the server would say to a unit: `described` to a Describe, `result` to an Execute or a simple query.
pub(crate) fn put_answer(
    out: &mut Vec<u8>,
    unit: Arrived<'_>,
    described: &[u8],
    result: &[u8],
    status: TransactionStatus,
) {
    for (tag, _) in unit.messages() {
        match tag {
            frontend::PARSE => frame(out, backend::PARSE_COMPLETE, |_| ()),
            frontend::BIND => frame(out, backend::BIND_COMPLETE, |_| ()),
            frontend::DESCRIBE => out.extend_from_slice(described),
            frontend::EXECUTE | frontend::QUERY => out.extend_from_slice(result),
            frontend::CLOSE => frame(out, backend::CLOSE_COMPLETE, |_| ()),
            _ => {}
        }
    }
    encode_ready_for_query(out, status);
}
