use super::*;
use sync_shim::{model, sync::Arc, thread};

#[test]
fn place_of_an_index_fills_chunk_after_chunk() {
    let mut next = 0;
    for chunk in 0..5 {
        for at in 0..(FIRST as usize) << chunk {
            assert_eq!(place(next), (chunk, at));
            next += 1;
        }
    }
    let (chunk, at) = place(u32::MAX >> 1);
    assert!(chunk < CHUNKS && at < (FIRST as usize) << chunk);
}

#[test]
fn token_survives_its_bits_and_is_never_the_wake() {
    let token = Token {
        index: 7,
        generation: 9,
    };
    assert_eq!(Token::from_bits(token.to_bits()), token);
    assert!(place(u32::MAX).0 >= CHUNKS, "the index of the wake's token");
}

#[cfg(not(selvedge_loom))]
#[test]
fn released_slot_returns_with_another_generation() {
    let slab = Slab::new();
    let first = slab.insert(Ready::EMPTY).unwrap();
    slab.remove(first);
    let second = slab.insert(Ready::EMPTY).unwrap();
    assert_eq!(first.index, second.index);
    assert_ne!(first.generation, second.generation);
    let tokens: Vec<_> = (0..1_000)
        .map(|_| slab.insert(Ready::EMPTY).unwrap())
        .collect();
    assert_eq!(slab.registered(), 1_001);
    tokens.into_iter().for_each(|token| slab.remove(token));
    assert_eq!(slab.registered(), 1);
}

#[cfg(not(selvedge_loom))]
#[test]
fn closed_slab_refuses_and_shuts_its_slots_down() {
    let slab = Slab::new();
    let token = slab.insert(Ready::EMPTY).unwrap();
    slab.shut_down(&mut VecDeque::new());
    assert!(slab.get(token.index).load().is_shutdown());
    assert_eq!(slab.insert(Ready::EMPTY), Err(Refused::Closed));
    slab.remove(token);
    assert!(slab.is_closed());
}

/// A registration is refused, or the shutdown finds it.
#[test]
fn shutdown_racing_an_insert_refuses_or_finds_it() {
    model(|| {
        let slab = Arc::new(Slab::new());
        let closer = {
            let slab = slab.clone();
            thread::spawn(move || slab.shut_down(&mut VecDeque::new()))
        };
        let token = slab.insert(Ready::EMPTY);
        closer.join().unwrap();
        if let Ok(token) = token {
            assert!(slab.get(token.index).load().is_shutdown());
        }
    });
}

/// Two threads insert and remove: no slot is occupied twice, and a chunk is made once.
#[test]
fn inserts_of_two_threads_get_two_slots() {
    model(|| {
        let slab = Arc::new(Slab::new());
        let other = {
            let slab = slab.clone();
            thread::spawn(move || slab.insert(Ready::EMPTY).unwrap())
        };
        let mine = slab.insert(Ready::EMPTY).unwrap();
        slab.remove(mine);
        let again = slab.insert(Ready::EMPTY).unwrap();
        let other = other.join().unwrap();
        assert_ne!(again.index, other.index);
        assert_eq!(slab.registered(), 2);
    });
}
