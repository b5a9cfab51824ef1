//! Measures calls and messages between two processes of the system on the loopback.
//!
//! `cluster-bench all` runs each system in turn, several times, and prints a table. It starts
//! itself, and the programs in `--peer NAME=PROGRAM`, as servers and clients.
mod bare;
mod drive;
mod measure;
mod ours;

fn main() {
    let words: Vec<_> = std::env::args().skip(1).collect();
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    let number = |word: &str| word.parse::<u64>().expect("a number");
    let port = |word: &str| word.parse::<u16>().expect("a port");
    match &words[..] {
        ["ours", "serve", at, pairs] => ours::serve(port(at), number(pairs) as usize),
        ["ours", "call", at, millis] => ours::call(port(at), number(millis)),
        ["ours", "flood", at, pairs, messages] => {
            ours::flood(port(at), number(pairs) as usize, number(messages));
        }
        ["zenoh", "serve", at, pairs] => bare::serve(port(at), number(pairs) as usize),
        ["zenoh", "call", at, millis] => bare::call(port(at), number(millis)),
        ["zenoh", "flood", at, pairs, messages] => {
            bare::flood(port(at), number(pairs) as usize, number(messages));
        }
        ["all", rest @ ..] => drive::all(rest),
        _ => {
            eprintln!("{}", drive::HELP);
            std::process::exit(2);
        }
    }
}
