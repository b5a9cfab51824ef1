//! Work of a known length for tasks that compute.
use std::hint::black_box;

/// Number of steps in a unit of work. A unit takes about 40 ns.
const STEPS: u32 = 24;

/// Does a number of units of work: a chain of shifts that no compiler shortens and that touches no
/// memory.
#[inline(never)]
pub(crate) fn work(units: u64) {
    let mut x = 88_172_645_463_325_252_u64;
    for _ in 0..units {
        for _ in 0..STEPS {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
        }
        x = black_box(x);
    }
}
