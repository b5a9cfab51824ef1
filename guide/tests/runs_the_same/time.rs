//! Sleeps, timeouts and intervals, on a paused clock.

macro_rules! program {
    ($module:ident, $rt:ident) => {
        mod $module {
            use std::{
                future::{pending, poll_fn, ready},
                pin::pin,
            };

            type Log = Vec<String>;

            fn instants(log: &mut Log) {
                let second: $rt::time::Duration = $rt::time::Duration::from_secs(1);
                let now: $rt::time::Instant = $rt::time::Instant::now();
                let later = $rt::time::Instant::checked_add(&now, second).unwrap();
                let std = $rt::time::Instant::into_std(now);
                log.push(format!(
                    "{:?} {:?} {:?} {:?} {} {:?} {}",
                    $rt::time::Instant::duration_since(&later, now),
                    $rt::time::Instant::checked_duration_since(&now, later),
                    $rt::time::Instant::saturating_duration_since(&now, later),
                    $rt::time::Instant::checked_sub(&later, second) == Some(now),
                    $rt::time::Instant::from_std(std) == now,
                    $rt::time::Instant::elapsed(&now),
                    later > now,
                ));
            }

            async fn sleeps(log: &mut Log) {
                let hour = $rt::time::Duration::from_secs(3_600);
                let begun = $rt::time::Instant::now();
                $rt::time::sleep(hour).await;
                log.push(format!("{}", begun.elapsed() >= hour));
                $rt::time::sleep_until(begun + 2 * hour).await;
                log.push(format!("{}", begun.elapsed() >= 2 * hour));

                let sleep: $rt::time::Sleep = $rt::time::sleep(hour);
                let mut sleep = pin!(sleep);
                let at = $rt::time::Sleep::deadline(&sleep);
                log.push(format!("{}", $rt::time::Sleep::is_elapsed(&sleep)));
                $rt::time::Sleep::reset(sleep.as_mut(), at + hour);
                log.push(format!("{}", sleep.deadline() == at + hour));
                sleep.as_mut().await;
                log.push(format!("{}", sleep.is_elapsed()));
            }

            async fn timeouts(log: &mut Log) {
                let hour = $rt::time::Duration::from_secs(3_600);
                log.push(format!(
                    "{:?}",
                    $rt::time::timeout(hour, ready(7)).await.ok()
                ));
                let late: $rt::time::error::Elapsed =
                    $rt::time::timeout(hour, pending::<()>()).await.unwrap_err();
                log.push(format!("{}", std::io::Error::from(late).kind()));
                let errors: [$rt::time::error::Error; 3] = [
                    $rt::time::error::Error::shutdown(),
                    $rt::time::error::Error::at_capacity(),
                    $rt::time::error::Error::invalid(),
                ];
                for error in errors {
                    log.push(format!(
                        "{} {} {}",
                        $rt::time::error::Error::is_shutdown(&error),
                        $rt::time::error::Error::is_at_capacity(&error),
                        $rt::time::error::Error::is_invalid(&error),
                    ));
                }
                let at = $rt::time::Instant::now() + hour;
                log.push(format!(
                    "{}",
                    $rt::time::timeout_at(at, pending::<()>()).await.is_err()
                ));
                let mut timeout: $rt::time::Timeout<_> = $rt::time::timeout(hour, ready(7));
                let _: &std::future::Ready<i32> = $rt::time::Timeout::get_ref(&timeout);
                *$rt::time::Timeout::get_mut(&mut timeout) = ready(8);
                log.push(format!("{}", $rt::time::Timeout::into_inner(timeout).await));
            }

            async fn intervals(log: &mut Log) {
                let second = $rt::time::Duration::from_secs(1);
                let begun = $rt::time::Instant::now();
                let mut interval: $rt::time::Interval = $rt::time::interval(second);
                log.push(format!("{:?}", $rt::time::Interval::period(&interval)));
                let missed = $rt::time::Interval::missed_tick_behavior(&interval);
                log.push(format!("{missed:?}"));
                log.push(format!(
                    "{:?}",
                    $rt::time::Interval::tick(&mut interval).await - begun
                ));
                let polled = poll_fn(|cx| $rt::time::Interval::poll_tick(&mut interval, cx));
                log.push(format!("{}", (polled.await - begun).as_secs()));

                let behaviors: [$rt::time::MissedTickBehavior; 3] = [
                    $rt::time::MissedTickBehavior::Burst,
                    $rt::time::MissedTickBehavior::Delay,
                    $rt::time::MissedTickBehavior::Skip,
                ];
                for behavior in behaviors {
                    let first = $rt::time::Instant::now() + second;
                    let mut interval = $rt::time::interval_at(first, second);
                    $rt::time::Interval::set_missed_tick_behavior(&mut interval, behavior);
                    interval.tick().await;
                    $rt::time::advance(second * 7 / 2).await;
                    for _ in 0..4 {
                        let tick = interval.tick().await - first;
                        // In units of 100 ms, as tokio rounds each sleep up to whole milliseconds.
                        log.push(format!("{behavior:?} {}", tick.as_millis() / 100));
                    }
                }
                let since = |at: $rt::time::Instant| (at - begun).as_secs();
                interval.reset();
                log.push(format!("{}", since(interval.tick().await)));
                $rt::time::Interval::reset(&mut interval);
                $rt::time::Interval::reset_immediately(&mut interval);
                log.push(format!("{}", since(interval.tick().await)));
                $rt::time::Interval::reset_after(&mut interval, second * 5);
                log.push(format!("{}", since(interval.tick().await)));
                let at = $rt::time::Instant::now() + second * 3;
                $rt::time::Interval::reset_at(&mut interval, at);
                log.push(format!("{}", since(interval.tick().await)));
            }

            pub fn run() -> Vec<String> {
                let mut builder = $rt::runtime::Builder::new_current_thread();
                let runtime = builder.enable_all().build().unwrap();
                let mut log = Vec::new();
                runtime.block_on(async {
                    $rt::time::pause();
                    instants(&mut log);
                    sleeps(&mut log).await;
                    timeouts(&mut log).await;
                    intervals(&mut log).await;
                    let begun = $rt::time::Instant::now();
                    $rt::time::advance($rt::time::Duration::from_secs(9)).await;
                    log.push(format!("{}", begun.elapsed().as_secs()));
                    $rt::time::resume();
                    log.push(format!("{}", begun.elapsed().as_secs() >= 9));
                });
                log
            }
        }
    };
}

program!(theirs, tokio);
program!(ours, selvedge);

#[test]
fn time_runs_the_same() {
    super::assert_same(&theirs::run(), &ours::run());
}
