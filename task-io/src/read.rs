//! The futures that read.
mod buf;
mod exact;
mod fill_buf;
mod line;
mod number;
mod once;
mod text;
mod to_end;
mod to_string;
mod until;

pub use buf::ReadBuf;
pub use exact::ReadExact;
pub use fill_buf::FillBuf;
pub use line::ReadLine;
pub use number::ReadNumber;
pub use once::Read;
pub use to_end::ReadToEnd;
pub use to_string::ReadToString;
pub(crate) use until::{ReadUntil, poll_read_until};
