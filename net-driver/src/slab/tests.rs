use super::*;

#[cfg(not(selvedge_loom))]
const FD: Fd = 3;

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
fn id_survives_its_bits_and_is_never_that_of_the_wake() {
    let id = SourceId {
        index: 7,
        generation: 9,
    };
    assert_eq!(SourceId::from_bits(id.to_bits()), id);
    assert!(place(u32::MAX).0 >= CHUNKS, "the index of the wake's id");
}

#[cfg(not(selvedge_loom))]
#[test]
fn released_slot_returns_with_another_generation() {
    let slab = Slab::new();
    let first = slab.lock().insert(Ready::EMPTY).unwrap();
    slab.remove(first, FD);
    let second = slab.lock().insert(Ready::EMPTY).unwrap();
    assert_eq!(first.index, second.index);
    assert_ne!(first.generation, second.generation);
    let ids: Vec<_> = (0..1_000)
        .map(|_| slab.lock().insert(Ready::EMPTY).unwrap())
        .collect();
    assert_eq!(slab.registered(), 1_001);
    ids.into_iter().for_each(|id| slab.remove(id, FD));
    assert_eq!(slab.registered(), 1);
}

#[cfg(not(selvedge_loom))]
#[test]
fn closed_slab_refuses_and_shuts_its_slots_down() {
    let slab = Slab::new();
    let id = slab.lock().insert(Ready::EMPTY).unwrap();
    slab.shut_down(&mut VecDeque::new());
    assert!(slab.get(id.index).load().is_shutdown());
    assert_eq!(slab.lock().insert(Ready::EMPTY), Err(Refused::Closed));
    slab.remove(id, FD);
    assert_eq!(slab.lock().insert(Ready::EMPTY), Err(Refused::Closed));
}
