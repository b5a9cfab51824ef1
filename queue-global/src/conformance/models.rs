//! Models of the conformance checks: of this crate's own node, and of the injector as an overflow.
use super::{Subject, Token, linked};
use crate::Boxed;
use alloc::boxed::Box;

struct Boxes;

impl Subject for Boxes {
    type Node = Boxed<Token>;

    fn node(token: Token) -> Box<Boxed<Token>> {
        Box::new(Boxed::new(token))
    }

    fn token(node: Box<Boxed<Token>>) -> Token {
        node.value
    }
}

#[test]
fn a_boxed_value_is_a_node() {
    linked::<Boxes>();
}

#[cfg(feature = "queue-spmc")]
mod behind_a_ring {
    use super::*;
    use crate::Injector;
    use queue_spmc::conformance::{self, Order};

    impl conformance::Subject for Injector<Boxed<Token>> {
        type Item = Box<Boxed<Token>>;
        const ORDER: Order = Order::Fifo;

        fn new() -> Self {
            Injector::new()
        }

        fn item(token: Token) -> Box<Boxed<Token>> {
            Box::new(Boxed::new(token))
        }

        fn token(item: Box<Boxed<Token>>) -> Token {
            item.value
        }

        fn take(&self) -> Option<Box<Boxed<Token>>> {
            self.pop()
        }
    }

    #[test]
    fn an_injector_is_an_overflow() {
        conformance::overflow::<Injector<Boxed<Token>>>();
    }
}
