use super::{LARGE, MOST_LARGE, Pipe};

// Fails if a pipe that was dropped still counts.
#[test]
fn large_pipes_are_few() {
    for _ in 0..3 {
        let small = Pipe::new(1).unwrap();
        assert!(!small.is_large && small.room <= 64 * 1024);
        let pipes: Vec<_> = (0..MOST_LARGE + 8)
            .map(|_| Pipe::new(u64::MAX).unwrap())
            .collect();
        let large = pipes.iter().filter(|pipe| pipe.is_large);
        assert_eq!(large.count(), MOST_LARGE);
        // The user may have other programs with pipes, so not each of these has its room.
        assert!(pipes.iter().all(|pipe| pipe.room as u64 <= LARGE));
    }
}
