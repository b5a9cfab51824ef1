//! Feeds what libFuzzer makes to the decoders of a node and to a session.
#![no_main]

libfuzzer_sys::fuzz_target!(|parts: &[u8]| process_cluster::Fed::default().feed_parts(parts));
