//! The timer for hyper, which makes sleeps of the current runtime.
use hyper::rt;
use pin_project_lite::pin_project;
use selvedge::time;
use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::{Duration, Instant},
};

/// Makes sleeps of [`selvedge::time`] for hyper's timeouts.
///
/// Each sleep costs one allocation, because hyper asks for a boxed sleep. A reset reuses the box,
/// and costs one compare-and-swap if the new time is later. `now` reads the clock that the sleeps
/// use; a test may pause that clock.
///
/// ```
/// use hyper::rt::Timer;
/// use selvedge_hyper::SelvedgeTimer;
/// use std::time::Duration;
///
/// let runtime = selvedge::Runtime::new()?;
/// runtime.block_on(async {
///     let begun = SelvedgeTimer.now();
///     let mut sleep = SelvedgeTimer.sleep(Duration::from_secs(3_600));
///     SelvedgeTimer.reset(&mut sleep, begun + Duration::from_millis(1));
///     sleep.await;
///     assert!(SelvedgeTimer.now() >= begun + Duration::from_millis(1));
/// });
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// A span that ends beyond the range of the clock never ends. But hyper and hyper-util add some
/// spans to `now` themselves, and panic if the sum is beyond the range of [`Instant`]: give their
/// builders no `Duration::MAX`.
///
/// # Panics
/// The first poll of a sleep that has to wait panics outside a runtime, as [`selvedge::time`] says.
#[derive(Clone, Copy, Debug, Default)]
pub struct SelvedgeTimer;

impl rt::Timer for SelvedgeTimer {
    fn sleep(&self, span: Duration) -> Pin<Box<dyn rt::Sleep>> {
        let sleep = time::sleep(span);
        Box::pin(Sleep { sleep })
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn rt::Sleep>> {
        let sleep = time::sleep_until(deadline.into());
        Box::pin(Sleep { sleep })
    }

    fn now(&self) -> Instant {
        time::Instant::now().into_std()
    }

    fn reset(&self, sleep: &mut Pin<Box<dyn rt::Sleep>>, deadline: Instant) {
        match sleep.as_mut().downcast_mut_pin::<Sleep>() {
            Some(own) => own.project().sleep.reset(deadline.into()),
            // A sleep of another timer.
            None => *sleep = self.sleep_until(deadline),
        }
    }
}

pin_project! {
    struct Sleep {
        #[pin]
        sleep: time::Sleep,
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.project().sleep.poll(cx)
    }
}

impl rt::Sleep for Sleep {}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::rt::Timer;
    use std::ptr;

    fn address(sleep: &Pin<Box<dyn rt::Sleep>>) -> *const () {
        ptr::from_ref(&**sleep).cast()
    }

    #[test]
    fn reset_keeps_the_box() {
        let mut sleep = SelvedgeTimer.sleep(Duration::from_secs(3_600));
        let before = address(&sleep);
        SelvedgeTimer.reset(&mut sleep, SelvedgeTimer.now());
        assert_eq!(address(&sleep), before);
        selvedge::Runtime::new().unwrap().block_on(sleep);
    }

    #[test]
    fn reset_of_another_timers_sleep_replaces_it() {
        struct Endless;
        impl Future for Endless {
            type Output = ();
            fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
                Poll::Pending
            }
        }
        impl rt::Sleep for Endless {}

        let mut sleep: Pin<Box<dyn rt::Sleep>> = Box::pin(Endless);
        SelvedgeTimer.reset(&mut sleep, SelvedgeTimer.now());
        assert!(sleep.is::<Sleep>());
        selvedge::Runtime::new().unwrap().block_on(sleep);
    }
}
