use super::*;

/// Sends and receives around `middle`, where a count of fewer bits, or a signed one, would wrap.
fn pass(middle: u64) {
    const MESSAGES: u64 = 20 * SLOTS as u64;
    let start = middle.wrapping_sub(MESSAGES / 2 * ONE);
    let (mut chain, mut head) = Chain::starting_at(start);
    for n in 0..MESSAGES {
        assert_eq!(chain.push(n, CLOSED), Ok(false));
        assert_eq!(head.len(chain.tail().0), n as usize + 1);
    }
    let (tail, _) = chain.mark(CLOSED);
    assert!(chain.push(MESSAGES, CLOSED).is_err());
    for n in 0..MESSAGES {
        assert_eq!(head.pop(&chain), Some(n));
    }
    assert_eq!((head.pop(&chain), head.position()), (None, tail));
    // SAFETY: this call owns both sides.
    unsafe { head.free_all(&mut chain) };
}

#[test]
fn positions_pass_each_power_of_two() {
    for bits in [31, 32, 33, 63, 64] {
        pass(1_u64.checked_shl(bits).unwrap_or(0));
    }
}

/// Blocks are freed late enough, however many messages are in the channel: as many as 32 bits could
/// not count.
#[test]
fn block_before_far_positions_is_not_freed() {
    let (mut chain, mut head) = Chain::starting_at(0);
    for n in 0..2 * SLOTS {
        chain.push(n, CLOSED).unwrap();
    }
    // As if so many messages had come before the release of the first block.
    let far = (1_u64 << 31) * ONE;
    // SAFETY: the first block is live.
    let first = unsafe { head.oldest.as_ref() };
    first.free_at.with_mut(|at| {
        // SAFETY: there is one thread.
        unsafe { *at = far };
    });
    for n in 0..2 * SLOTS {
        assert_eq!(head.pop(&chain), Some(n));
    }
    assert!(head.oldest != head.block, "the first block is kept");
    assert!(chain.spare.load(Relaxed).is_null());
    // SAFETY: this call owns both sides.
    unsafe { head.free_all(&mut chain) };
}
