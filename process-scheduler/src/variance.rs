//! The invariant public types. `tests/variance.rs` has the covariant ones.
sync_shim::invariant! {
    // These put messages into a mailbox, or take them out.
    address: "process_scheduler::Address<P>",
    sending: "process_scheduler::Sending<'static, P>",
    inbox: "process_scheduler::Inbox<P>",
    receiving: "process_scheduler::Receiving<'static, P>",
    events: "process_scheduler::Events<'static, P, (), ()>",
    events_output: "process_scheduler::Events<'static, (), P, ()>",
    events_error: "process_scheduler::Events<'static, (), (), P>",
    context: "process_scheduler::Context<'static, P>",
    from_async: "process_scheduler::AsyncProcess<P, (), ()>",
    // Answers and completions go in at one end and come out at the other.
    reply: "process_scheduler::Reply<P>",
    call: "process_scheduler::Call<P>",
    completer: "process_scheduler::Completer<P, ()>",
    completer_error: "process_scheduler::Completer<(), P>",
    // An upgrade holds a process of these types.
    step: "process_scheduler::Step<P, (), (), ()>",
    step_command: "process_scheduler::Step<(), P, (), ()>",
    step_output: "process_scheduler::Step<(), (), P, ()>",
    step_error: "process_scheduler::Step<(), (), (), P>",
}
