#![cfg(not(any(selvedge_loom, selvedge_shuttle)))]
use super::*;
use std::panic::{AssertUnwindSafe, catch_unwind};

fn said(f: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(f)).expect_err("no panic");
    *panic.downcast::<String>().expect("the panic has a message")
}

/// Makes a second copy of a token.
fn twin(token: &Token) -> Token {
    // SAFETY: the caller's account outlives both copies. Of the two copies, only the first one that
    // ends drops its handle to that account.
    unsafe { std::ptr::read(token) }
}

#[test]
fn account_passes_tokens_that_come_back_once() {
    let account = Account::new("check");
    let [a, b] = [account.token(), account.token()];
    assert_eq!([account.settle(b), account.settle(a)], [1, 0]);
    account.assert_all_back();
    account.assert_order(Order::Lifo, &[1, 0]);
    account.assert_order(Order::Fifo, &[0, 1]);
    account.assert_order(Order::Any, &[1, 0]);
    drop(account.token());
    account.assert_none_left();
}

#[test]
fn account_failure_names_the_check_and_the_token() {
    let account = Account::new("check");
    let [a, b, c, d] = [(); 4].map(|()| account.token());
    assert_eq!(account.missing(), [0, 1, 2, 3]);
    let [a2, b2] = [twin(&a), twin(&b)];
    account.settle(a);
    assert!(said(|| _ = account.settle(a2)).starts_with("check: doubled: token 0"));
    drop(b);
    account.settle(c);
    let lost = said(|| account.assert_all_back());
    assert!(
        lost.starts_with("check: lost: token 1 of 4 was dropped"),
        "{lost}"
    );
    let leaked = said(|| account.assert_none_left());
    assert!(leaked.starts_with("check: leaked: tokens [3]"), "{leaked}");
    assert!(said(|| _ = account.settle(b2)).starts_with("check: doubled: token 1"));
    let other = Account::new("other");
    assert!(said(|| _ = other.settle(d)).starts_with("other: a token of another"));
    assert!(said(|| account.assert_order(Order::Fifo, &[1, 0])).starts_with("check: order"));
    assert!(said(|| account.assert_order(Order::Lifo, &[0, 1])).starts_with("check: order"));
}

#[test]
fn token_dropped_twice_panics() {
    let account = Account::new("check");
    let token = account.token();
    drop(twin(&token));
    assert!(said(|| drop(token)).starts_with("check: doubled: token 0"));
}

#[test]
fn check_that_hangs_is_given_up_and_named() {
    let hangs = || loop {
        std::thread::park();
    };
    // On a busy machine, the first check may take longer than a short limit.
    let limits = [50, 500, 5_000, 50_000].map(Duration::from_millis);
    let is_named = |limit| {
        let checks = [check("first", || ()), check("second", hangs)];
        said(|| explore(limit, 1, checks)).starts_with("second: hung")
    };
    assert!(limits.into_iter().any(is_named));
}
