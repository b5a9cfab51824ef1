//! Rendezvous hashing: which of some nodes a key belongs to.
//!
//! Each node has a weight for a key, and the largest one wins. So a node that comes or goes moves
//! the keys of that node alone.

/// Returns the weight of a node for a key. It is the same on each machine and in each version.
pub(crate) fn weight(node: &str, key: &[u8]) -> u64 {
    // FNV-1a over both, then a finalizer, since the last bytes of FNV reach few bits.
    let bytes = node.as_bytes().iter().chain(&[0xFF]).chain(key);
    let hash = bytes.fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01B3)
    });
    let hash = (hash ^ hash >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let hash = (hash ^ hash >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    hash ^ hash >> 31
}

/// Returns the node to which a key belongs. Nodes of the same name are told apart by their number.
pub(crate) fn place<'a>(
    nodes: impl IntoIterator<Item = (u32, &'a str)>,
    key: &[u8],
) -> Option<u32> {
    let weighed = nodes
        .into_iter()
        .map(|(number, name)| (weight(name, key), name, number));
    weighed.max().map(|(_, _, number)| number)
}

/// Returns the node to which a key belongs among nodes of these names, reached or not. Of the same
/// names it is the same node on each machine: for values that stay on the disk of their node.
///
/// ```
/// let home = process_cluster::place_among(["a", "b", "c"], "account/7");
/// assert_eq!(home, Some("a"));
/// assert_eq!(process_cluster::place_among([], "account/7"), None);
/// ```
pub fn place_among<'a>(
    names: impl IntoIterator<Item = &'a str>,
    key: impl AsRef<[u8]>,
) -> Option<&'a str> {
    let key = key.as_ref();
    names
        .into_iter()
        .max_by_key(|name| (weight(name, key), *name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODES: [(u32, &str); 5] = [(1, "a"), (2, "b"), (3, "c"), (7, "d"), (9, "node-5")];

    fn of(nodes: &[(u32, &'static str)], key: u32) -> Option<u32> {
        place(nodes.iter().copied(), &key.to_le_bytes())
    }

    #[test]
    fn keys_are_spread_evenly() {
        for (number, _) in NODES {
            let keys = (0..10_000)
                .filter(|key| of(&NODES, *key) == Some(number))
                .count();
            assert!((1_800..2_200).contains(&keys), "{keys} keys on {number}");
        }
        assert_eq!(of(&[], 7), None);
    }

    #[test]
    fn lost_node_moves_its_keys_alone() {
        let fewer: Vec<_> = NODES.into_iter().filter(|node| node.0 != 3).collect();
        for key in 0..1_000 {
            let (before, after) = (of(&NODES, key), of(&fewer, key));
            assert!(before == after || before == Some(3));
        }
    }

    /// The figures are for other machines and later versions: they must place a key alike.
    #[test]
    fn weights_are_the_same_everywhere() {
        let weights = [weight("a", b"key"), weight("b", b"key"), weight("", b"")];
        assert_eq!(weights, WEIGHTS);
    }

    const WEIGHTS: [u64; 3] = [
        15_689_317_461_920_629_575,
        11_587_124_224_251_480_289,
        5_705_415_379_283_624_141,
    ];
}
