//! Arrow: results as its batches, and its batches as rows of parameters and of COPY.
//!
//! Other packages export and import them by the C data interface; neither side needs to know the other. Text is in `batch`
//! and `write`, structs of C in `ffi`.

mod aligned;
mod batch;
mod columns;
mod export;
mod ffi;
mod import;
mod read;
mod write;

pub(crate) use columns::{Buffers, columns};
pub(crate) use export::{ArrowBatch, ArrowBuilder};
pub(crate) use import::{ArrowRow, ArrowRows};
