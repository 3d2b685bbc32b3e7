//! PostgreSQL frontend/backend protocol 3.0 to 3.2.
//!
//! Source of every rule: PostgreSQL documentation, chapter "Frontend/Backend Protocol", sections
//! "Message Flow" and "Message Formats". Names are the protocol's own.

mod authentication;
mod backend_key_data;
mod bind;
mod command_complete;
mod copy;
mod data_row;
mod error_response;
mod execute;
mod frame;
mod function_call;
mod negotiate;
mod notification;
mod parameter_description;
mod parameter_status;
mod parse;
mod password;
mod ready_for_query;
mod row_description;
mod startup;
mod statement_or_portal;
mod tags;

pub use authentication::{Authentication, encode_sasl_mechanisms};
pub use backend_key_data::BackendKeyData;
pub use bind::{Bind, Format, Formats, Values, encode_bind};
pub use command_complete::CommandComplete;
pub use copy::CopyResponse;
pub use data_row::DataRow;
pub use error_response::{ErrorFields, ErrorResponse, Severity, encode_error};
pub use execute::Execute;
pub use frame::{FrameHeader, HEADER_BYTES, frame};
pub use function_call::{FunctionCall, FunctionCallResponse};
pub use negotiate::NegotiateProtocolVersion;
pub use notification::NotificationResponse;
pub use parameter_description::ParameterDescription;
pub use parameter_status::ParameterStatus;
pub use parse::Parse;
pub use password::{check_scram_iterations, encode_password, encode_sasl_initial, encode_sasl_response};
pub use ready_for_query::{TransactionStatus, encode_ready_for_query};
pub use row_description::{Column, RowDescription};
pub use startup::{
    CancelRequest, PROTOCOL_3_0, ProtocolVersion, STARTUP_LENGTH_MAX, Startup, StartupMessage,
    StartupParameters, encode_cancel_request, encode_ssl_request, encode_startup,
};
pub use statement_or_portal::StatementOrPortal;
pub use tags::{backend, frontend};

/// An object identifier, such as that of a type.
pub type Oid = u32;
