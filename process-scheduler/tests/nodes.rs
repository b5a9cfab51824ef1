//! The parts for relays: nodes, replies with a function, credit, pids as numbers.
use process_scheduler::{
    CallError, ExitReason, Inbox, Loopback, Parcel, Pid, Relay, Reply, Scheduler, SendError, Signal,
};
use std::{
    pin::pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
        mpsc,
    },
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

const LONG: Duration = Duration::from_secs(600);

#[test]
fn pid_is_a_number_and_back() {
    let scheduler = Scheduler::builder().workers(1).node(u32::MAX).build();
    let pid = scheduler.spawn_fn(|(): (), _| ()).unwrap().pid();
    for pid in [pid, pid.with_node(3), Pid::of_node(0), Pid::of_node(7)] {
        assert_eq!(Pid::from_bits(pid.to_bits()), Some(pid));
        assert_eq!(Pid::from_bits(pid.to_bits() | 1 << 96), None);
    }
    assert_eq!(Pid::from_bits(pid.to_bits() & !(0xFFFF_FFFF << 32)), None);
    assert_eq!((pid.node(), pid.with_node(3).node()), (u32::MAX, 3));
    assert!(Pid::of_node(7).is_of_node() && !pid.is_of_node());
}

#[cfg(feature = "serde")]
#[test]
fn pid_is_serialized_as_three_numbers() {
    let scheduler = Scheduler::builder().workers(1).node(4).build();
    let pid = scheduler.spawn_fn(|(): (), _| ()).unwrap().pid();
    let text = serde_json::to_string(&pid).unwrap();
    assert_eq!(serde_json::from_str::<Pid>(&text).unwrap(), pid);
    assert!(text.starts_with("[4,"), "{text}");
    assert!(serde_json::from_str::<Pid>("[4,1,0]").is_err());
}

#[test]
fn reply_with_a_function_calls_it_once() {
    let answers = Arc::new(Mutex::new(Vec::new()));
    let reply = || {
        let answers = answers.clone();
        Reply::from_fn(move |answer: Result<String, CallError>| {
            answers.lock().unwrap().push(answer);
        })
    };
    assert!(!reply().is_abandoned());
    reply().send("seven".to_owned()).unwrap();
    reply().node_down();
    let at_once = reply();
    std::thread::spawn(move || at_once.send("eight".to_owned()))
        .join()
        .unwrap()
        .unwrap();
    let answers = std::mem::take(&mut *answers.lock().unwrap());
    assert_eq!(
        answers,
        [
            Err(CallError::Dropped),
            Ok("seven".to_owned()),
            Err(CallError::NodeDown),
            Ok("eight".to_owned()),
        ]
    );
}

#[test]
fn reply_drops_the_panic_of_its_function() {
    let reply = Reply::from_fn(|_: Result<u8, CallError>| panic!("the taker panics"));
    assert_eq!(reply.send(7), Ok(()));
    drop(Reply::from_fn(|_: Result<u8, CallError>| panic!("again")));
}

#[test]
fn reply_frees_its_function_and_answer() {
    let held = Arc::new(());
    let (taken, answer) = (held.clone(), held.clone());
    let reply = Reply::from_fn(move |answer| drop((taken, answer)));
    reply.send(answer).unwrap();
    assert_eq!(Arc::strong_count(&held), 1);
    let taken = held.clone();
    drop(Reply::from_fn(move |_: Result<(), CallError>| drop(taken)));
    assert_eq!(Arc::strong_count(&held), 1);
}

#[test]
fn call_ends_if_its_node_is_down() {
    let scheduler = Scheduler::builder().workers(1).build();
    let relays = scheduler
        .spawn_fn(|reply: Reply<u8>, _| reply.node_down())
        .unwrap();
    assert_eq!(
        relays.call(|reply| reply, LONG).wait(),
        Err(CallError::NodeDown)
    );
}

#[test]
fn nodes_are_those_of_the_relay() {
    let loopback = Loopback::new();
    let nodes = [1, 2, 3].map(|node| {
        let builder = Scheduler::builder().workers(1).node(node);
        let scheduler = builder.relay(loopback.clone()).build();
        loopback.connect(&scheduler);
        scheduler
    });
    let numbers = |at: usize| nodes[at].nodes().into_iter().map(|node| node.number);
    assert!(numbers(0).eq([2, 3]) && numbers(1).eq([1, 3]) && numbers(2).eq([1, 2]));
    assert_eq!(nodes[0].nodes()[0].name, "node 2");
    loopback.disconnect(2);
    assert!(numbers(0).eq([3]) && numbers(2).eq([1]));
    [1, 3].iter().for_each(|&node| loopback.disconnect(node));
}

/// Spawns a process that tells of each exit.
fn guard(scheduler: &Scheduler) -> (Pid, mpsc::Receiver<(Pid, ExitReason)>) {
    let (sender, exits) = mpsc::channel();
    let guard = scheduler.spawn_async(move |mut inbox: Inbox<()>| async move {
        loop {
            inbox.event().await;
            while let Some(exit) = inbox.next_exit() {
                sender.send(exit).unwrap();
            }
            if inbox.cancelled().is_some() {
                return;
            }
        }
    });
    (guard.unwrap().pid(), exits)
}

#[test]
fn monitor_of_a_node_reports_each_loss_once() {
    let scheduler = Scheduler::builder().workers(2).build();
    let (guard, exits) = guard(&scheduler);
    let down = (Pid::of_node(7), ExitReason::NodeDown);
    // It is not reached yet.
    scheduler.monitor_node(guard, 7);
    assert_eq!(exits.recv_timeout(LONG), Ok(down.clone()));
    scheduler.node_up(7, "far");
    scheduler.monitor_node(guard, 7);
    scheduler.monitor_node(guard, 7);
    scheduler.node_down(7);
    scheduler.node_down(7);
    let both = [(); 2].map(|()| exits.recv_timeout(LONG).unwrap());
    assert_eq!(both, [down.clone(), down]);
    scheduler.node_up(7, "far");
    scheduler.monitor_node(guard, 7);
    scheduler.demonitor_node(guard, 7);
    scheduler.monitor_node(guard, scheduler.node());
    scheduler.node_down(7);
    scheduler.cancel(guard);
    scheduler.wait(guard);
    assert!(exits.recv().is_err(), "an exit more");
}

/// A relay with some places, which says what came.
#[derive(Clone, Default)]
struct Places(Arc<Mutex<PlacesState>>);

#[derive(Default)]
struct PlacesState {
    free: usize,
    sent: Vec<u32>,
    signals: Vec<Signal>,
    wakers: Vec<Waker>,
}

impl Places {
    fn free(&self, places: usize) {
        let mut state = self.0.lock().unwrap();
        state.free += places;
        let wakers = std::mem::take(&mut state.wakers);
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }
}

impl Relay for Places {
    fn deliver(&self, _: Pid, parcel: Parcel) -> Result<(), SendError<Parcel>> {
        let mut state = self.0.lock().unwrap();
        match parcel {
            Parcel::Message(message) if state.free > 0 => {
                state.free -= 1;
                state.sent.push(*message.downcast().unwrap());
                Ok(())
            }
            Parcel::Signal(signal) => {
                state.signals.push(signal);
                Ok(())
            }
            parcel => Err(SendError::Full(parcel)),
        }
    }

    fn poll_ready(&self, _: u32, waker: &Waker) -> Poll<()> {
        let mut state = self.0.lock().unwrap();
        if state.free > 0 {
            return Poll::Ready(());
        }
        state.wakers.push(waker.clone());
        Poll::Pending
    }
}

struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

#[test]
fn send_to_another_node_waits_for_room() {
    let places = Places::default();
    let scheduler = Scheduler::builder().workers(1).build();
    assert!(scheduler.set_relay(places.clone()).is_ok());
    assert!(scheduler.set_relay(Places::default()).is_err());
    let own = scheduler.spawn_fn(|_: u32, _| ()).unwrap().pid();
    let far = scheduler.address::<u32>(own.with_node(9)).unwrap();
    assert_eq!(far.try_send(1), Err(SendError::Full(1)));
    let woken = Arc::new(Woken(AtomicUsize::new(0)));
    let waker = Waker::from(woken.clone());
    let mut cx = Context::from_waker(&waker);
    let (mut two, mut three) = (pin!(far.send(2)), pin!(far.send(3)));
    assert!(two.as_mut().poll(&mut cx).is_pending());
    assert!(three.as_mut().poll(&mut cx).is_pending());
    drop(far.send(4));
    places.free(1);
    assert_eq!(woken.0.load(SeqCst), 2);
    assert_eq!(three.as_mut().poll(&mut cx), Poll::Ready(Ok(())));
    assert!(two.as_mut().poll(&mut cx).is_pending());
    places.free(2);
    assert_eq!(two.as_mut().poll(&mut cx), Poll::Ready(Ok(())));
    assert_eq!(far.try_send(5), Ok(()));
    assert_eq!(places.0.lock().unwrap().sent, [3, 2, 5]);
}

/// The end of a process that monitors a node tells the relay nothing.
#[test]
fn relay_gets_no_signal_for_a_node() {
    let places = Places::default();
    let scheduler = Scheduler::builder()
        .workers(1)
        .relay(places.clone())
        .build();
    scheduler.node_up(7, "far");
    let (guard, _exits) = guard(&scheduler);
    scheduler.monitor_node(guard, 7);
    scheduler.cancel(guard);
    scheduler.wait(guard);
    assert_eq!(places.0.lock().unwrap().signals, []);
}
