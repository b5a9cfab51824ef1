//! A replicated store on three simulated hosts, and a mistake that a crash between two writes shows
//! (`--two-files`). The guide's chapter "Simulate several hosts" is about it.
//!
//! ```sh
//! RUSTFLAGS="--cfg selvedge_sim" cargo run -p selvedge-sim --example kv_replicated \
//!     --target-dir target/sim -- --two-files
//! ```
mod store;

/// Each run has up to two crashes, which leak the stacks of a host's threads.
const SEEDS: u64 = 500;

fn main() {
    if cfg!(not(selvedge_sim)) {
        eprintln!("kv_replicated: build with RUSTFLAGS=\"--cfg selvedge_sim\"");
        std::process::exit(2);
    }
    let two_files = std::env::args().any(|option| option == "--two-files");
    selvedge_sim::check(0..SEEDS, |sim| store::scenario(sim, two_files));
    println!("{SEEDS} seeds have passed");
}
