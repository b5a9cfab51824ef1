//! Hints to the processor; under a model they yield.
pub use crate::backend::imp::hint::spin_loop;
