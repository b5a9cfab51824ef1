//! Runs the examples, which check themselves.
#![allow(clippy::duplicate_mod, reason = "each example has the command line")]
use std::error::Error;

#[allow(dead_code, reason = "the command line does not run here")]
#[path = "../examples/bank.rs"]
mod bank;
#[allow(dead_code, reason = "as above")]
#[path = "../examples/philosophers.rs"]
mod philosophers;

#[test]
fn bank_keeps_its_sum() -> Result<(), Box<dyn Error>> {
    assert!(bank::run(1_000, 5_000)? > 0);
    Ok(())
}

#[test]
fn philosophers_dine() -> Result<(), Box<dyn Error>> {
    philosophers::run(2)
}
