//! Checks which types are covariant. `src/variance.rs` checks the invariant types.
use task_io::{BufReader, BufStream, BufWriter, Chain, Join, Lines, ReadBuf, Split, Take};

type Long = for<'a> fn(&'a u8);
type Short = fn(&'static u8);

/// Asserts that a `$from` can be used as a `$to`.
macro_rules! covariant {
    ($($from:ty => $to:ty,)*) => { $(const _: for<'a> fn(&'a (), $from) -> $to = |_, x| x;)* };
}

covariant! {
    ReadBuf<'static> => ReadBuf<'a>,
    BufReader<Long> => BufReader<Short>,
    BufStream<Long> => BufStream<Short>,
    BufWriter<Long> => BufWriter<Short>,
    Chain<Long, Long> => Chain<Short, Short>,
    Join<Long, Long> => Join<Short, Short>,
    Lines<Long> => Lines<Short>,
    Split<Long> => Split<Short>,
    Take<Long> => Take<Short>,
}
