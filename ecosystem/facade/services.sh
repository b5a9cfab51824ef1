#!/usr/bin/env bash
# Runs the three servers of `services` under the usual load tools. Needs Linux, and these tools: if
# one is not installed, the script names its Debian package.
#
#   services.sh [SECONDS] [NAME..]        all three at once on the façade; by default ten minutes
#   services.sh tails [SECONDS] [NAME..]  latencies on the façade and on tokio, in turn, three rounds
#
# A run fails if a client or a server reports an error, if an answer is missing, if a server keeps
# descriptors or memory after its load, or if it does not exit with 0 at SIGTERM.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
target=$(cd "$here/../.." && pwd)/target/services
export CARGO_INCREMENTAL=0 CARGO_PROFILE_RELEASE_LTO=thin LC_ALL=C
unset CARGO_TARGET_DIR RUSTFLAGS
all=(kv broker proxy)
declare -A clients=(
    [kv]="redis-benchmark redis-cli"
    [broker]="mosquitto_pub mosquitto_sub"
    [proxy]="wrk curl"
)
declare -A packages=([kv]=redis-tools [broker]=mosquitto-clients [proxy]="wrk curl")

fail() {
    echo "services: $*" >&2
    exit 1
}

build() { # VARIANT [ARGUMENT..]: facade or tokio, and cargo's arguments
    local package=$here version
    if [ "$1" = tokio ]; then
        # The same sources and locked versions without the patch.
        package=$target/tokio-package
        mkdir -p "$package"
        cp -rp "$here/services/src" "$here/Cargo.lock" "$package"
        sed 's/version = "1\.9999"/version = "1"/' "$here/services/Cargo.toml" >"$package/Cargo.toml"
        echo "[workspace]" >>"$package/Cargo.toml"
    fi
    echo "services: builds $1, which takes minutes the first time" >&2
    # One folder for both: most of the crates do not use tokio.
    (cd "$package" && cargo build --quiet --release -p services --target-dir "$target" "${@:2}")
    mkdir -p "$target/$1"
    cp "$target"/release/{kv,broker,proxy} "$target/$1"
    version=$(cd "$package" && cargo tree --quiet -p services -i tokio --depth 0)
    case $1/$version in
    facade/"tokio v1.9999."* | tokio/"tokio v1."[0-9].* | tokio/"tokio v1."[0-9][0-9].*) ;;
    *) fail "$1 was built with $version" ;;
    esac
}

# The servers. `start` sets `pid` and `port`; each server has its files in the folder `work`.
start() { # VARIANT NAME PROGRAM [ARGUMENT..]
    local program=$target/$1/$3 file=$work/$2 tries
    : >"$file.out"
    "$program" "${@:4}" 127.0.0.1:0 >"$file.out" 2>"$file.err" &
    pid=$!
    for ((tries = 0; tries < 200; tries++)); do
        port=$(sed -n 's/^listens on .*://p' "$file.out")
        if [ -n "$port" ]; then return; fi
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.1
    done
    fail "$2 does not listen: $(cat "$file.err")"
}

start_service() { # VARIANT NAME
    backend='' rounds=0
    if [ "$2" = proxy ]; then
        start "$1" backend proxy backend
        backend=$pid backend_port=$port
        start "$1" proxy proxy "127.0.0.1:$port"
    else
        start "$1" "$2" "$2"
    fi
}

end_service() { # NAME
    end "$1" "$pid"
    if [ -n "$backend" ]; then end backend "$backend"; fi
}

end() { # NAME PID
    local status=0 said
    kill -TERM "$2"
    wait "$2" || status=$?
    [ "$status" = 0 ] || fail "$1 ended with $status"
    # The façade reports long polls, which a busy machine has, too.
    said=$(grep -v -e '^selvedge: stall:' -e '^  ' "$work/$1.err" | head -n 3 || true)
    [ -z "$said" ] || fail "$1 reports: $said"
}

# Runs a client, which would wait for ever for a server that stands still. `timeout` then returns
# 124. It stays in the process group, so that it ends with this script.
limited() { # CLIENT [ARGUMENT..]
    timeout --foreground "$limit" "$@"
}

descriptors() { # PID
    find "/proc/$1/fd" -mindepth 1 | wc -l
}

resident() { # PID: in MiB
    awk '/^VmRSS/ {printf "%.1f", $2 / 1024}' "/proc/$1/status"
}

# The loads. Each takes a number of seconds, and adds what was answered to `answers`.
kv_load() { # SECONDS
    local until=$((SECONDS + $1)) n=80000 depth name calls
    while ((SECONDS < until)); do
        for depth in 1 16; do
            benchmark "$depth" "$n" >/dev/null
            answers=$((answers + 5 * n)) rounds=$((rounds + 1))
            check "$(cli get counter:__rand_int__)" "$n" "increments of one round"
            check "$(cli llen mylist)" "$n" "items of one round"
            check "$(cli flushall)" OK "flush"
        done
    done
    calls=$(cli info commandstats | tr -d '\r')
    for name in set get incr lpush mset; do
        # Each round has one more `get`, that of the check.
        if [ "$name" = get ]; then n=$((n + 1)); else n=80000; fi
        check "$(sed -n "s/^cmdstat_$name:calls=//p" <<<"$calls")" $((rounds * n)) "calls of $name"
    done
}

cli() { limited redis-cli -p "$port" "$@"; }

benchmark() { # DEPTH N
    local said
    said=$(limited redis-benchmark -p "$port" -t set,get,incr,lpush,mset -P "$1" -n "$2" 2>&1) ||
        fail "redis-benchmark failed: $(tail -n 3 <<<"$said")"
    if grep -i error <<<"$said" >&2; then fail "redis-benchmark reports an error"; fi
    echo "$said"
}

check() { # IS SHOULD-BE OF-WHAT
    [ "$1" = "$2" ] || fail "$3: $1 instead of $2"
}

# Four publishers send numbers, and each has a subscriber that must get all of them in order.
broker_load() { # SECONDS
    local pairs=() pair
    for pair in 1 2 3 4; do
        (tidy && broker_pair "$pair" "$1") &
        pairs+=($!)
    done
    end_pairs "${pairs[@]}"
    for pair in 1 2 3 4; do answers=$((answers + $(cat "$work/pair$pair"))); done
}

end_pairs() { # PID..
    local pair failed=''
    for pair; do wait "$pair" || failed=1; done
    if [ -n "$failed" ] || [ -s "$work/clients.err" ]; then
        fail "a pair of MQTT clients failed: $(head -n 3 "$work/clients.err")"
    fi
}

broker_pair() { # PAIR SECONDS
    local until=$((SECONDS + $2)) n=0 batch=5000
    subscribe "$1" %p
    while ((SECONDS < until)); do
        seq $((n + 1)) $((n + batch)) | publish "$1" -l
        n=$((n + batch))
    done
    unsubscribe "$1"
    sed '/[a-z]/d' "$work/pair$1" | cmp - <(seq "$n") >&2 ||
        fail "subscriber $1 did not get the numbers up to $n in order"
    echo "$n" >"$work/pair$1"
}

publish() { # PAIR [ARGUMENT..]
    limited mosquitto_pub -p "$port" -k 600 -q 1 -t "numbers/$1" "${@:2}" \
        2>>"$work/clients.err" || fail "mosquitto_pub ended with $?"
}

# Starts a subscriber, and waits until it gets messages.
subscribe() { # PAIR FORMAT
    mosquitto_sub -p "$port" -k 600 -q 1 -t "numbers/$1" -F "$2" \
        >"$work/pair$1" 2>>"$work/clients.err" &
    subscriber=$!
    until grep -qs ready "$work/pair$1"; do
        kill -0 "$subscriber" 2>/dev/null || fail "mosquitto_sub failed: $(cat "$work/clients.err")"
        publish "$1" -m ready
        sleep 0.1
    done
}

# Waits until the subscriber got the last message, and ends it.
unsubscribe() { # PAIR
    local tries
    publish "$1" -m end
    for ((tries = 0; tries < 6000; tries++)); do
        if [[ $(tail -n 1 "$work/pair$1") = *end ]]; then break; fi
        kill -0 "$subscriber" 2>/dev/null || fail "mosquitto_sub failed: $(cat "$work/clients.err")"
        sleep 0.1
    done
    kill "$subscriber"
    wait "$subscriber" || true
}

proxy_load() { # SECONDS
    local said before after requests
    before=$(curl -sS "http://127.0.0.1:$backend_port/count")
    said=$(load_http "$1")
    requests=${said%% *}
    after=$(curl -sS "http://127.0.0.1:$backend_port/count")
    # At the end, wrk drops its connections, some with a request under way.
    ((requests > 0 && after - before >= requests && after - before <= requests + 50)) ||
        fail "wrk has $requests answers, and the backend gave $((after - before))"
    answers=$((answers + requests))
}

# Prints the number of answers, and p50, p99 and p99.9 in microseconds.
load_http() { # SECONDS
    local said
    cat >"$work/wrk.lua" <<'LUA'
done = function(summary, latency)
    local errors = summary.errors
    local failed = errors.connect + errors.read + errors.write + errors.status + errors.timeout
    print("result", summary.requests, failed, latency:percentile(50), latency:percentile(99),
        latency:percentile(99.9))
end
LUA
    said=$(wrk -t2 -c50 "-d${1}s" --timeout 60s -s "$work/wrk.lua" "http://127.0.0.1:$port/") ||
        fail "wrk failed: $said"
    said=$(sed -n 's/^result\t//p' <<<"$said" | tr '\t' ' ')
    set -- $said
    [ "${2:-}" = 0 ] || fail "wrk counts ${2:-no} errors"
    echo "$1 ${*:3}"
}

# Waits until the server has closed its connections: the proxy keeps its own for five seconds.
settle() { # DESCRIPTORS
    local tries
    for ((tries = 0; tries < 300 && $(descriptors "$pid") > $1; tries++)); do sleep 0.1; done
}

# One service: a load to warm it up, the load, and the comparison of what the server holds.
run() { # NAME SECONDS
    local fds_before fds_after memory_before memory_after answers=0
    start_service facade "$1"
    sleep 1
    fds_before=$(descriptors "$pid")
    "$1_load" $(($2 / 10 + 10))
    settle "$fds_before"
    memory_before=$(resident "$pid")
    answers=0
    "$1_load" "$2"
    settle "$fds_before"
    fds_after=$(descriptors "$pid") memory_after=$(resident "$pid")
    end_service "$1"
    echo "| $1 | $2 | $answers | $fds_before → $fds_after | $memory_before → $memory_after |" \
        "$(grep -c '^selvedge: stall:' "$work/$1.err" || true) |"
    ((fds_after <= fds_before)) || fail "$1 has $fds_after descriptors, and had $fds_before"
    awk -v before="$memory_before" -v after="$memory_after" 'BEGIN {exit after > 1.25 * before + 8}' ||
        fail "$1 has $memory_after MiB, and had $memory_before"
}

# The samples of `tails`: each line has what was measured, and p50, p99 and p99.9 in microseconds.
kv_sample() { # SECONDS
    local depth n
    benchmark 1 10000 >/dev/null
    for depth in 1 16; do
        # On two processors this takes about the wanted time.
        n=$(($1 * 14000 * (depth == 1 ? 1 : 4)))
        benchmark "$depth" "$n" | tr '\r' '\n' | awk -v depth="$depth" '
            /^====== / { name = $2; tail = "" }
            /% <= .* milliseconds/ { if (tail == "" && $1 + 0 >= 99.9) tail = $3 * 1000 }
            summary { print name "-P" depth, $3 * 1000, $5 * 1000, tail }
            { summary = /^ *avg +min +p50 +p95 +p99 +max/ }'
        check "$(cli flushall)" OK "flush"
    done
}

# Four publishers send their time, each about 500 times a second.
broker_sample() { # SECONDS
    local pairs=() pair
    for pair in 1 2 3 4; do
        (tidy && timed_pair "$pair" "$1") &
        pairs+=($!)
    done
    end_pairs "${pairs[@]}"
    sed '/[a-z]/d' "$work"/pair[1-4] | awk '{printf "%.0f\n", ($1 - $2) * 1e6}' | sort -n | awk '
        { all[NR] = $1 }
        function at(part) { return all[int((NR - 1) * part) + 1] }
        END { print "publish", at(0.5), at(0.99), at(0.999) }'
}

timed_pair() { # PAIR SECONDS
    subscribe "$1" '%U %p'
    local until=$((SECONDS + $2))
    # Nothing is ever written to the descriptor, so that the read is a sleep.
    while ((SECONDS < until)); do
        echo "$EPOCHREALTIME"
        read -rt 0.002 -u 9 || true
    done 9<> <(:) | publish "$1" -l
    unsubscribe "$1"
}

proxy_sample() { # SECONDS
    local said
    load_http 1 >/dev/null
    said=$(load_http "$1")
    echo "GET ${said#* }"
}

tails() { # SECONDS NAME..
    local seconds=$1 name round variant
    shift
    for name; do
        for round in 1 2 3; do
            for variant in $( ((round % 2)) && echo tokio facade || echo facade tokio); do
                start_service "$variant" "$name"
                "${name}_sample" "$seconds" >"$work/sample"
                end_service "$name"
                sed "s/^/$variant $round $name /" "$work/sample" >>"$work/samples"
            done
        done
    done
    echo "| load | p50, tokio | façade | p99, tokio | façade | p99.9, tokio | façade |" \
        "p99, façade / tokio in each round |"
    echo "|---|--:|--:|--:|--:|--:|--:|--:|"
    awk '
        { load = $3 " " $4 }
        !(load in seen) { seen[load]; order[++loads] = load }
        { for (at = 1; at <= 3; at++) value[load, $1, at, $2] = $(4 + at) }
        function median(load, variant, at,    a, b, c) {
            a = value[load, variant, at, 1]; b = value[load, variant, at, 2]
            c = value[load, variant, at, 3]
            return a < b ? (b < c ? b : (a < c ? c : a)) : (a < c ? a : (b < c ? c : b))
        }
        END {
            for (n = 1; n <= loads; n++) {
                load = order[n]
                printf "| %s |", load
                for (at = 1; at <= 3; at++)
                    printf " %.0f | %.0f |", median(load, "tokio", at), median(load, "facade", at)
                for (round = 1; round <= 3; round++)
                    printf "%s%.2f", (round > 1 ? ", " : " "), \
                        value[load, "facade", 2, round] / value[load, "tokio", 2, round]
                print " |"
            }
        }' "$work/samples"
}

# Ends the servers and clients of this shell with it.
tidy() {
    trap 'kill $(jobs -p) 2>/dev/null || true' EXIT
    trap 'exit 1' INT TERM
}

# Starts a command in a process group of its own. A signal to the group also ends the clients that
# the command waits for.
launch() { # COMMAND [ARGUMENT..]
    set -m
    (tidy && "$@") &
    set +m
    launched+=($!)
}

end_launched() {
    local group failed=''
    for group in "${launched[@]}"; do wait "$group" || failed=1; done
    launched=()
    [ -z "$failed" ] || fail "$1 failed; $work has the output of the programs"
}

clean() { # STATUS
    local group
    for group in "${launched[@]}"; do kill -- "-$group" 2>/dev/null || true; done
    wait
    # A failure leaves the files, for a look at them.
    if [ "$1" != 1 ]; then rm -r "$work"; fi
}

mode=run seconds=600
if [ "${1:-}" = tails ]; then
    mode=tails seconds=20
    shift
fi
seconds=${1:-$seconds}
if [[ $seconds = *[!0-9]* ]]; then
    sed -n '2,10s/^# \?//p' "$0"
    exit 2
fi
# In `tails`, one client runs for about five windows.
limit=300
if [ "$mode" = tails ]; then limit=$((300 + 10 * seconds)); fi
if (($# > 1)); then all=("${@:2}"); fi
for name in "${all[@]}"; do
    [ -n "${clients[$name]:-}" ] || fail "there is no service $name"
    for client in ${clients[$name]}; do
        command -v "$client" >/dev/null ||
            fail "$client is not installed (apt-get install ${packages[$name]})"
    done
done

if [ "$mode" = tails ]; then build tokio; fi
build facade --locked

launched=()
work=$(mktemp -d)
trap 'clean $?' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
case $mode in
run)
    echo "| service | seconds | answers | descriptors | resident MiB | long polls |"
    echo "|---|--:|--:|--:|--:|--:|"
    for name in "${all[@]}"; do launch run "$name" "$seconds"; done
    ;;
tails)
    launch tails "$seconds" "${all[@]}"
    ;;
esac
end_launched "$mode"
