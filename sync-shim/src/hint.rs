//! Hints to the processor, which are yields to the model.
pub use crate::backend::imp::hint::spin_loop;
