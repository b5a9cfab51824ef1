#!/usr/bin/env escript
%% Erlang's distribution: two nodes on the loopback, for the measurements of cluster-bench.
%% The port of the measurement is in the server's name alone. Stop the daemon by `epmd -kill`.
-mode(compile).

main(["serve", Port, Pairs]) ->
    start(server(Port)),
    [register(name(Pair), spawn(fun() -> take(0) end)) || Pair <- seq(Pairs)],
    io:format("ready~n"),
    wait_for_end();
main(["call", Port, Millis]) ->
    connect(Port),
    To = {name(0), server(Port)},
    Ends = now_ns() + list_to_integer(Millis) * 1000000,
    Warm = now_ns() + list_to_integer(Millis) * 200000,
    Taken = lists:sort(call(To, 0, Warm, Ends, [])),
    At = fun(Share) -> lists:nth(length(Taken) * Share div 100 + 1, Taken) end,
    io:format("call ~b ~b ~b~n", [At(50), At(99), length(Taken)]);
main(["flood", Port, Pairs, Messages]) ->
    connect(Port),
    Each = list_to_integer(Messages) div list_to_integer(Pairs),
    Bytes = binary:copy(<<7>>, 64),
    Own = self(),
    Begun = now_ns(),
    [spawn_link(fun() ->
        To = {name(Pair), server(Port)},
        flood(To, Bytes, Each),
        To ! {count, self()},
        receive {count, Each} -> Own ! done end
    end) || Pair <- seq(Pairs)],
    [receive done -> ok end || _ <- seq(Pairs)],
    Took = (now_ns() - Begun) / 1.0e9,
    io:format("flood ~b~n", [round(Each * list_to_integer(Pairs) / Took)]).

seq(Pairs) -> lists:seq(0, list_to_integer(Pairs) - 1).

name(Pair) -> list_to_atom("taker" ++ integer_to_list(Pair)).

now_ns() -> erlang:monotonic_time(nanosecond).

server(Port) -> list_to_atom("server" ++ Port ++ "@127.0.0.1").

start(Name) ->
    os:cmd("epmd -daemon"),
    {ok, _} = net_kernel:start(Name, #{name_domain => longnames}),
    erlang:set_cookie(bench).

connect(Port) ->
    start(list_to_atom("client" ++ Port ++ "@127.0.0.1")),
    until_connected(server(Port), 1000).

until_connected(_, 0) -> halt(1);
until_connected(Server, Left) ->
    case net_kernel:connect_node(Server) of
        true -> ok;
        _ -> timer:sleep(10), until_connected(Server, Left - 1)
    end.

take(Count) ->
    receive
        {ping, From, Number} -> From ! {pong, Number}, take(Count);
        {count, From} -> From ! {count, Count}, take(0);
        <<_/binary>> -> take(Count + 1)
    end.

call(To, Number, Warm, Ends, Taken) ->
    Begun = now_ns(),
    To ! {ping, self(), Number},
    receive {pong, Number} -> ok end,
    Now = now_ns(),
    More = if Now >= Warm -> [Now - Begun | Taken]; true -> Taken end,
    if Now < Ends -> call(To, Number + 1, Warm, Ends, More); true -> More end.

flood(_, _, 0) -> ok;
flood(To, Bytes, Left) -> To ! Bytes, flood(To, Bytes, Left - 1).

wait_for_end() ->
    case io:get_line("") of
        eof -> ok;
        _ -> wait_for_end()
    end.
