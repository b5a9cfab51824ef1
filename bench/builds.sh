#!/usr/bin/env bash
# For each runtime: the packages that a small program compiles, and the processor time of a clean
# build of it. docs/compared.md has the figures. Needs Linux on x86-64.
#
#   bench/builds.sh [NAME...]    selvedge, tokio, smol, async-executor, glommio, monoio; or all
#
# The program binds a listener, spawns a task that sleeps, and awaits it. Processor time is user
# and system time of cargo and its children, so another load on the machine hardly changes it.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
scratch=$root/target/builds
# Crates from the registry have no incremental build. So those by path get none either.
export CARGO_INCREMENTAL=0
unset CARGO_TARGET_DIR RUSTFLAGS

program() { # NAME: writes the dependencies to standard output, and the program to src/main.rs
    case $1 in
    selvedge)
        echo "selvedge = { path = \"$root/selvedge\" }"
        cat >src/main.rs <<'RUST'
use selvedge::{net::TcpListener, time};

#[selvedge::main]
async fn main() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let task = selvedge::spawn(time::sleep(time::Duration::from_millis(1)));
    task.await.unwrap();
    println!("{}", listener.local_addr().unwrap());
}
RUST
        ;;
    tokio)
        echo 'tokio = { version = "1", features = ["fs", "macros", "net", "rt-multi-thread", "time"] }'
        cat >src/main.rs <<'RUST'
use tokio::{net::TcpListener, time};

#[tokio::main]
async fn main() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let task = tokio::spawn(time::sleep(time::Duration::from_millis(1)));
    task.await.unwrap();
    println!("{}", listener.local_addr().unwrap());
}
RUST
        ;;
    smol)
        echo 'smol = "2"'
        cat >src/main.rs <<'RUST'
use smol::{Timer, net::TcpListener};

fn main() {
    smol::block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let task = smol::spawn(async { Timer::after(std::time::Duration::from_millis(1)).await });
        task.await;
        println!("{}", listener.local_addr().unwrap());
    });
}
RUST
        ;;
    async-executor)
        printf '%s\n' 'async-executor = "1"' 'async-io = "2"'
        cat >src/main.rs <<'RUST'
use async_executor::Executor;
use async_io::{Async, Timer};
use std::net::TcpListener;

fn main() {
    let executor = Executor::new();
    async_io::block_on(executor.run(async {
        let listener = Async::<TcpListener>::bind(([127, 0, 0, 1], 0)).unwrap();
        let sleep = async { Timer::after(std::time::Duration::from_millis(1)).await };
        executor.spawn(sleep).await;
        println!("{}", listener.get_ref().local_addr().unwrap());
    }));
}
RUST
        ;;
    glommio)
        echo 'glommio = "0.9"'
        cat >src/main.rs <<'RUST'
use glommio::{LocalExecutor, net::TcpListener, timer};

fn main() {
    LocalExecutor::default().run(async {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        glommio::spawn_local(timer::sleep(std::time::Duration::from_millis(1))).await;
        println!("{}", listener.local_addr().unwrap());
    });
}
RUST
        ;;
    monoio)
        echo 'monoio = "0.2"'
        cat >src/main.rs <<'RUST'
use monoio::{net::TcpListener, time};

#[monoio::main(enable_timer = true)]
async fn main() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    monoio::spawn(time::sleep(time::Duration::from_millis(1))).await;
    println!("{}", listener.local_addr().unwrap());
}
RUST
        ;;
    *)
        echo "no runtime $1" >&2
        exit 2
        ;;
    esac
}

packages() { # The packages that a build on Linux compiles, the program left out.
    cargo tree --quiet --target x86_64-unknown-linux-gnu --edges normal,build --prefix none \
        --no-dedupe | cut -d' ' -f1,2 | sort -u | grep -v "^try-" | grep -vc '^$'
}

seconds() { # COMMAND: the user and system time of a command and its children, in seconds
    local TIMEFORMAT='%U %S' taken
    taken=$({ time "$@" >/dev/null 2>build.log; } 2>&1) || { tail -20 build.log >&2; return 1; }
    awk '{ printf "%.1f", $1 + $2 }' <<<"$taken"
}

names=("$@")
[[ ${#names[@]} -gt 0 ]] || names=(selvedge tokio smol async-executor glommio monoio)
echo "$(rustc --version); processor time of a clean build, in seconds"
printf '%-16s %-10s %9s %8s %8s\n' runtime version packages debug release
for name in "${names[@]}"; do
    rm -rf "${scratch:?}/$name"
    mkdir -p "$scratch/$name/src"
    cd "$scratch/$name"
    dependencies=$(program "$name")
    cat >Cargo.toml <<TOML
[package]
name = "try-$name"
version = "0.0.0"
edition = "2024"

[workspace]

[dependencies]
$dependencies
TOML
    cargo fetch --quiet
    version=$(cargo tree --quiet --depth 1 --edges normal --prefix none |
        awk -v name="$name" '$1 == name { print substr($2, 2); exit }')
    count=$(packages)
    debug=$(seconds cargo build) || debug=fails
    release=$(seconds cargo build --release) || release=fails
    printf '%-16s %-10s %9s %8s %8s\n' "$name" "$version" "$count" "$debug" "$release"
done
