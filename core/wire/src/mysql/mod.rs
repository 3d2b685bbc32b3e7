//! MySQL's client/server protocol from 4.1 on, with what MariaDB adds to it.
//!
//! Source of every rule: "MySQL Internals: Client/Server Protocol" (today "MySQL Server Doxygen: Client/Server Protocol")
//! and the MariaDB Knowledge Base, "Client/Server Protocol"; each item names its page. Names are the protocol's own. What
//! MariaDB 10.11 and MySQL 5.6 do not speak is built from the pages and marked "not verified on 8.x".
//!
//! A message is a payload in one or more packets ([`packet`], [`Payloads`]). Which message a payload is depends on what
//! came before, and so do its fields: decoders take the capabilities that hold for the connection.

mod auth_more_data;
mod auth_next_factor;
mod auth_switch;
mod binary_row;
mod binlog_dump;
mod binlog_dump_gtid;
mod bulk_execute;
mod capabilities;
mod change_user;
mod column_count;
mod column_definition;
#[cfg(feature = "compression")]
mod compressed;
mod connect_attributes;
pub mod dialogue;
mod eof;
mod err;
mod execute;
mod fetch;
mod field_list;
mod handshake;
mod handshake_response;
mod long_data;
mod ok;
mod packet;
mod parameters;
mod prepare_ok;
mod primitives;
mod process_kill;
mod progress;
mod query;
mod register_replica;
mod session_state;
mod set_option;
mod statement_id;
mod status;
mod tags;
mod text_command;
mod text_row;
mod value;

pub use auth_more_data::{AuthMoreData, CachingSha2};
pub use auth_next_factor::AuthNextFactor;
pub use auth_switch::AuthSwitch;
pub use binary_row::BinaryRow;
pub use binlog_dump::BinlogDump;
pub use binlog_dump_gtid::BinlogDumpGtid;
pub use bulk_execute::{BulkExecute, BulkValue};
pub use capabilities::Capabilities;
pub use change_user::{ChangeUser, ChangeUserMore};
pub use column_count::ColumnCount;
pub use column_definition::ColumnDefinition;
#[cfg(feature = "compression")]
pub use compressed::{
    COMPRESSED_HEADER_BYTES, CompressedHeader, Compression, CompressionError, Unpacker, pack,
};
pub use connect_attributes::ConnectAttributes;
pub use eof::EofPacket;
pub use err::ErrPacket;
pub use execute::{Execute, LAST_STATEMENT};
pub use fetch::Fetch;
pub use field_list::FieldList;
pub use handshake::Handshake;
pub use handshake_response::{ClientHello, HandshakeResponse, SslRequest};
pub use long_data::LongData;
pub use ok::{Info, OkPacket};
pub use packet::{HEADER_BYTES, OutOfSequence, PAYLOAD_MAX, PacketHeader, Payload, Payloads, packet};
pub use parameters::{ParameterType, Parameters};
pub use prepare_ok::PrepareOk;
pub use primitives::{put_lenenc, put_lenenc_bytes, put_lenenc_value};
pub use process_kill::ProcessKill;
pub use progress::Progress;
pub use query::Query;
pub use register_replica::RegisterReplica;
pub use session_state::{SessionState, SessionStates};
pub use set_option::SetOption;
pub use statement_id::StatementId;
pub use status::Status;
pub use tags::{command, server};
pub use text_command::TextCommand;
pub use text_row::TextRow;
pub use value::ColumnType;
