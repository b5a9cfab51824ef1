#!/usr/bin/env bash
# Programs that are written for tokio, by the façade and on tokio. docs/compared.md has the figures.
# Needs Linux and wrk.
#
#   bench/facade.sh hello [ROUNDS]    a server of hyper-util under wrk, beside selvedge-hyper's
#   bench/facade.sh builds            packages and processor time of a clean build of the program
#                                     ecosystem/facade/src/bin/service.rs
#
# The façade's copy of a package has the two lines in its manifest, and tokio's has none of them.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
scratch=$root/target/facade
export CARGO_INCREMENTAL=0
unset CARGO_TARGET_DIR RUSTFLAGS

with_tokio() { # turns a manifest on standard input into one without the façade
    sed -e 's/version = "1\.9999"/version = "1"/' -e '/^\[patch/,/^$/d'
}

hello() { # NAME: the package of the server
    mkdir -p "$scratch/hello/$1/src"
    cd "$scratch/hello/$1"
    sed "s|ROOT|$root|" >Cargo.toml.facade <<'TOML'
[package]
name = "hello"
edition = "2024"

[workspace]

[dependencies]
bytes = "1"
http-body-util = "0.1"
hyper = { version = "1", features = ["http1", "server"] }
hyper-util = { version = "0.1", features = ["tokio"] }
tokio = { version = "1.9999", features = ["macros", "net", "rt-multi-thread", "time"] }

[profile.release]
lto = "thin"

[patch.crates-io]
tokio = { path = "ROOT/tokio-facade" }
TOML
    case $1 in
    facade) cat Cargo.toml.facade ;;
    tokio) with_tokio <Cargo.toml.facade ;;
    esac >Cargo.toml
    cat >src/main.rs <<'RUST'
use bytes::Bytes;
use http_body_util::Full;
use hyper::{Request, Response, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::{convert::Infallible, env, io, time::Duration};
use tokio::net::TcpListener;

async fn hello(_: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    Ok(Response::new(Full::new(Bytes::from_static(b"hello\n"))))
}

#[tokio::main]
async fn main() -> io::Result<()> {
    let address = env::args().nth(1).unwrap();
    let listener = TcpListener::bind(address).await?;
    println!("listens");
    loop {
        let (stream, _) = listener.accept().await?;
        tokio::spawn(async move {
            let mut server = http1::Builder::new();
            let server = server
                .timer(TokioTimer::new())
                .header_read_timeout(Duration::from_secs(10));
            let _ = server
                .serve_connection(TokioIo::new(stream), service_fn(hello))
                .await;
        });
    }
}
RUST
    cargo build --release --quiet
}

ticks() { # PID: the processor time of a process, in ticks of 10 ms
    local stat
    stat=$(cat "/proc/$1/stat")
    # The name, which may have spaces, ends at the last bracket.
    set -- ${stat##*) }
    echo $((${12} + ${13}))
}

# Prints the nanoseconds of a request, and those of the processor, of a server under wrk.
sample() { # PROGRAM
    local address=127.0.0.1:$((10000 + RANDOM % 20000)) server before after rate requests
    "$1" "$address" >/dev/null &
    server=$!
    until curl -s "http://$address/" >/dev/null; do sleep 0.05; done
    wrk -t1 -c50 -d1s "http://$address/" >/dev/null
    before=$(ticks "$server")
    wrk -t1 -c50 -d4s "http://$address/" >"$scratch/wrk"
    after=$(ticks "$server")
    kill "$server"
    wait "$server" 2>/dev/null || true
    rate=$(awk '/^Requests\/sec/ {print $2}' "$scratch/wrk")
    requests=$(awk '/ requests in / {print $1}' "$scratch/wrk")
    awk -v rate="$rate" -v n="$requests" -v ticks=$((after - before)) \
        'BEGIN {printf "%.0f %.0f\n", 1e9 / rate, ticks * 1e7 / n}'
}

# Prints the median of the numbers on standard input.
median() {
    sort -n | awk '{all[NR] = $1} END {print NR % 2 ? all[(NR + 1) / 2] : (all[NR / 2] + all[NR / 2 + 1]) / 2}'
}

case ${1:-} in
hello)
    rounds=${2:-5}
    hello facade
    hello tokio
    cd "$root"
    CARGO_PROFILE_RELEASE_LTO=thin cargo build --release --quiet --target-dir "$scratch/hello/own" \
        --package selvedge-hyper --example http_hello
    declare -A programs=(
        [facade]=$scratch/hello/facade/target/release/hello
        [tokio]=$scratch/hello/tokio/target/release/hello
        [selvedge-hyper]=$scratch/hello/own/release/examples/http_hello
    )
    names=(facade tokio selvedge-hyper)
    rm -f "$scratch"/*.samples
    for ((round = 0; round < rounds; round++)); do
        # The order rotates from round to round.
        for ((at = 0; at < 3; at++)); do
            name=${names[(round + at) % 3]}
            sample "${programs[$name]}" >>"$scratch/$name.samples"
        done
    done
    printf '%-16s %10s %10s\n' server ns/request cpu-ns
    for name in "${names[@]}"; do
        printf '%-16s %10s %10s\n' "$name" "$(cut -d' ' -f1 "$scratch/$name.samples" | median)" \
            "$(cut -d' ' -f2 "$scratch/$name.samples" | median)"
    done
    # A ratio is the median of the rounds' ratios.
    for peer in tokio selvedge-hyper; do
        paste -d' ' "$scratch/facade.samples" "$scratch/$peer.samples" >"$scratch/pairs"
        echo "facade / $peer: time $(awk '{print $1 / $3}' "$scratch/pairs" | median)," \
            "processor time $(awk '{print $2 / $4}' "$scratch/pairs" | median)"
    done
    ;;
builds)
    printf '%-8s %8s %10s\n' "" packages cpu-seconds
    for name in facade tokio; do
        package=$scratch/builds/$name
        rm -rf "$package"
        mkdir -p "$package"
        cp -r "$root/ecosystem/facade/src" "$package"
        sed -e "s|\.\./\.\./tokio-facade|$root/tokio-facade|" -e '/^members = /d' \
            "$root/ecosystem/facade/Cargo.toml" >"$package/facade.toml"
        case $name in
        facade) cat "$package/facade.toml" ;;
        tokio) with_tokio <"$package/facade.toml" ;;
        esac >"$package/Cargo.toml"
        cd "$package"
        cargo fetch --quiet
        packages=$(cargo tree --prefix none --edges normal,build | sed 's/ (\*)//' | sort -u | wc -l)
        before=$(awk '{print $16 + $17}' /proc/$$/stat)
        cargo build --quiet --bin service
        after=$(awk '{print $16 + $17}' /proc/$$/stat)
        printf '%-8s %8d %10.1f\n' "$name" "$packages" "$(awk "BEGIN {print ($after - $before) / 100}")"
    done
    ;;
*)
    sed -n '2,10s/^# \?//p' "$0"
    exit 2
    ;;
esac
