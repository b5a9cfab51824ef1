%% The rows of `processes` in Erlang: `erl -noshell -run processes main ROW NUMBER...`.
%%
%% Prints the nanoseconds of the whole row, or the bytes of all idle processes.
-module(processes).
-export([main/1]).

main([Row | Numbers]) ->
    io:format("~B~n", [row(Row, [list_to_integer(N) || N <- Numbers])]),
    halt(0).

row("ring", [Processes, Tokens, Hops]) -> ring(Processes, Tokens, Hops);
row("pingpong", [Pairs, Trips]) -> pingpong(Pairs, Trips);
row("spawn", [Processes]) -> spawn_row(Processes);
row("fanin", [Senders, Each]) -> fanin(Senders, Each);
row("call", [Calls]) -> call(Calls);
row("idle", [Processes]) -> idle(Processes).

now_ns() -> erlang:monotonic_time(nanosecond).

await(0) -> ok;
await(N) -> receive done -> await(N - 1) end.

%% A ring: each process passes the tokens on.
ring(Processes, Tokens, Hops) ->
    Main = self(),
    Ring = [spawn(fun() -> receive {next, Next} -> pass(Main, Next) end end)
            || _ <- lists:seq(1, Processes)],
    [First | Rest] = Ring,
    lists:zipwith(fun(Pid, Next) -> Pid ! {next, Next} end, Ring, Rest ++ [First]),
    Start = now_ns(),
    [lists:nth(I * Processes div Tokens + 1, Ring) ! Hops || I <- lists:seq(0, Tokens - 1)],
    await(Tokens),
    now_ns() - Start.

pass(Main, Next) ->
    receive
        0 -> Main ! done, pass(Main, Next);
        Left -> Next ! Left - 1, pass(Main, Next)
    end.

pingpong(Pairs, Trips) ->
    Main = self(),
    Players = [begin
        A = spawn(fun() -> receive {next, Next} -> pass(Main, Next) end end),
        B = spawn(fun() -> pass(Main, A) end),
        A ! {next, B},
        A
    end || _ <- lists:seq(1, Pairs)],
    Start = now_ns(),
    [A ! 2 * Trips || A <- Players],
    await(Pairs),
    now_ns() - Start.

%% Processes that get one message and end.
spawn_row(Processes) ->
    Main = self(),
    Start = now_ns(),
    spawn(fun() ->
        [spawn(fun() -> receive stop -> Main ! done end end) ! stop
         || _ <- lists:seq(1, Processes)]
    end),
    await(Processes),
    now_ns() - Start.

fanin(Senders, Each) ->
    Main = self(),
    Sink = spawn(fun() -> sink(Main, Senders * Each) end),
    All = [spawn(fun() -> receive N -> send(Sink, N) end end) || _ <- lists:seq(1, Senders)],
    Start = now_ns(),
    [Sender ! Each || Sender <- All],
    await(1),
    now_ns() - Start.

send(_, 0) -> ok;
send(Sink, N) -> Sink ! N, send(Sink, N - 1).

sink(Main, 0) -> Main ! done;
sink(Main, N) -> receive _ -> sink(Main, N - 1) end.

call(Calls) ->
    Server = spawn(fun server/0),
    Start = now_ns(),
    ask(Server, Calls),
    now_ns() - Start.

server() -> receive {From, Ref, N} -> From ! {Ref, N + 1}, server() end.

ask(_, 0) -> ok;
ask(Server, N) ->
    Ref = monitor(process, Server),
    Server ! {self(), Ref, N},
    receive {Ref, _} -> demonitor(Ref, [flush]) after 60000 -> exit(late) end,
    ask(Server, N - 1).

%% The bytes of idle processes, as the system counts the memory of processes.
idle(Processes) ->
    Before = erlang:memory(processes),
    Idle = [spawn(fun() -> receive stop -> ok end end) || _ <- lists:seq(1, Processes)],
    timer:sleep(100),
    Bytes = erlang:memory(processes) - Before,
    [Pid ! stop || Pid <- Idle],
    Bytes.
