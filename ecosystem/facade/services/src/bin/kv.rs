//! A store of strings and lists that speaks the protocol of Redis.
//!
//! ```sh
//! cargo run --manifest-path ecosystem/facade/Cargo.toml -p services --bin kv -- 127.0.0.1:6380
//! redis-benchmark -p 6380 -t set,get,incr,lpush,mset -P 16
//! ```
use bytes::{Buf, Bytes, BytesMut};
use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    env, io,
    sync::{Arc, Mutex},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// The longest string that a client may send, and the most strings of one command.
const MAX_LENGTH: usize = 1 << 20;

/// The longest command. An incomplete one stays in memory.
const MAX_COMMAND: usize = 16 * MAX_LENGTH;

/// How many bytes of answers are kept for one write. After that the client must read.
const MAX_OUTPUT: usize = 64 << 10;

type Args = Vec<Bytes>;

enum Value {
    String(Bytes),
    List(VecDeque<Bytes>),
}

#[derive(Default)]
struct Store {
    values: HashMap<Bytes, Value>,
    /// How often each command was run.
    calls: BTreeMap<&'static str, u64>,
}

#[tokio::main]
async fn main() -> io::Result<()> {
    let address = env::args().nth(1).unwrap_or("127.0.0.1:6380".into());
    let store = Arc::new(Mutex::new(Store::default()));
    services::listen(&address, |stream| {
        let store = store.clone();
        tokio::spawn(async move {
            if let Err(error) = serve(stream, &store).await {
                eprintln!("a connection: {error}");
            }
        });
    })
    .await
}

/// Answers the commands of a connection. Short answers to the commands of one read leave by one
/// write.
async fn serve(mut stream: TcpStream, store: &Mutex<Store>) -> io::Result<()> {
    let mut input = BytesMut::with_capacity(16 << 10);
    let mut output = Vec::new();
    loop {
        while let Some(args) = parse(&mut input)? {
            store.lock().unwrap().run(args, &mut output);
            if output.len() >= MAX_OUTPUT {
                stream.write_all(&output).await?;
                output.clear();
            }
        }
        stream.write_all(&output).await?;
        output.clear();
        if input.len() > MAX_COMMAND {
            return Err(io::Error::other("a command is too long"));
        }
        if stream.read_buf(&mut input).await? == 0 {
            return match input.is_empty() {
                true => Ok(()),
                false => Err(io::ErrorKind::UnexpectedEof.into()),
            };
        }
    }
}

/// Takes a whole command, an array of strings, out of the input.
fn parse(input: &mut BytesMut) -> io::Result<Option<Args>> {
    let mut at = 0;
    let Some(count) = header(input, &mut at, b'*')? else {
        return Ok(None);
    };
    let mut ranges = Vec::with_capacity(count.min(32));
    for _ in 0..count {
        let Some(length) = header(input, &mut at, b'$')? else {
            return Ok(None);
        };
        if input.len() < at + length + 2 {
            return Ok(None);
        }
        ranges.push(at..at + length);
        at += length + 2;
    }
    let command = input.split_to(at).freeze();
    // A store that kept slices would keep the whole of the buffer that a client filled.
    let copy = |range| Bytes::copy_from_slice(&command[range]);
    Ok(Some(ranges.into_iter().map(copy).collect()))
}

/// Reads the line at `at`: a byte that says what follows, and a length.
fn header(input: &[u8], at: &mut usize, kind: u8) -> io::Result<Option<usize>> {
    let mut rest = &input[*at..];
    let Some(end) = rest.iter().take(32).position(|byte| *byte == b'\n') else {
        return match rest.len() < 32 {
            true => Ok(None),
            false => Err(io::Error::other("a line is too long")),
        };
    };
    *at += end + 1;
    let wrong = || io::Error::other("not a command");
    if rest.get_u8() != kind {
        return Err(wrong());
    }
    let digits = rest[..end - 1].trim_ascii_end();
    let length = str::from_utf8(digits)
        .ok()
        .and_then(|text| text.parse().ok());
    length
        .filter(|length| *length <= MAX_LENGTH)
        .map(Some)
        .ok_or_else(wrong)
}

impl Store {
    fn run(&mut self, args: Args, output: &mut Vec<u8>) {
        let name = args.first().map(|name| name.to_ascii_uppercase());
        let name = match &name {
            Some(name) => name.as_slice(),
            None => return,
        };
        let answer = match (name, &args[1..]) {
            (b"PING", []) => self.count("ping", Answer::Simple("PONG")),
            (b"SET", [key, value]) => {
                self.set(key, value);
                self.count("set", Answer::Simple("OK"))
            }
            (b"MSET", pairs) if !pairs.is_empty() && pairs.len() % 2 == 0 => {
                for pair in pairs.chunks_exact(2) {
                    self.set(&pair[0], &pair[1]);
                }
                self.count("mset", Answer::Simple("OK"))
            }
            (b"GET", [key]) => {
                let answer = match self.values.get(key) {
                    Some(Value::String(value)) => Answer::Bulk(value.clone()),
                    Some(Value::List(_)) => Answer::WRONG_TYPE,
                    None => Answer::Nil,
                };
                self.count("get", answer)
            }
            (b"INCR", [key]) => {
                let answer = self.increment(key);
                self.count("incr", answer)
            }
            (b"LPUSH", [key, items @ ..]) if !items.is_empty() => {
                let answer = self.push(key, items);
                self.count("lpush", answer)
            }
            (b"LLEN", [key]) => match self.values.get(key) {
                Some(Value::List(list)) => Answer::Integer(list.len() as i64),
                Some(Value::String(_)) => Answer::WRONG_TYPE,
                None => Answer::Integer(0),
            },
            (b"DBSIZE", []) => Answer::Integer(self.values.len() as i64),
            (b"FLUSHALL", []) => {
                self.values = HashMap::new();
                Answer::Simple("OK")
            }
            // `redis-benchmark` asks for two settings, and only prints the answers.
            (b"CONFIG", [_, setting]) => Answer::Array(vec![setting.clone(), Bytes::new()]),
            (b"INFO", _) => {
                let line = |(name, calls)| format!("cmdstat_{name}:calls={calls}\r\n");
                Answer::Bulk(self.calls.iter().map(line).collect::<String>().into())
            }
            _ => Answer::Error("ERR unknown command, or a wrong number of arguments"),
        };
        answer.write(output);
    }

    fn count(&mut self, name: &'static str, answer: Answer) -> Answer {
        *self.calls.entry(name).or_default() += 1;
        answer
    }

    fn set(&mut self, key: &Bytes, value: &Bytes) {
        self.values
            .insert(key.clone(), Value::String(value.clone()));
    }

    fn increment(&mut self, key: &Bytes) -> Answer {
        let old = match self.values.get(key) {
            Some(Value::String(value)) => {
                str::from_utf8(value).ok().and_then(|old| old.parse().ok())
            }
            Some(Value::List(_)) => return Answer::WRONG_TYPE,
            None => Some(0),
        };
        match old.and_then(|old: i64| old.checked_add(1)) {
            Some(new) => {
                self.set(key, &new.to_string().into());
                Answer::Integer(new)
            }
            None => Answer::Error("ERR value is not an integer or out of range"),
        }
    }

    fn push(&mut self, key: &Bytes, items: &[Bytes]) -> Answer {
        let empty = || Value::List(VecDeque::new());
        match self.values.entry(key.clone()).or_insert_with(empty) {
            Value::List(list) => {
                for item in items {
                    list.push_front(item.clone());
                }
                Answer::Integer(list.len() as i64)
            }
            Value::String(_) => Answer::WRONG_TYPE,
        }
    }
}

enum Answer {
    Simple(&'static str),
    Error(&'static str),
    Integer(i64),
    Bulk(Bytes),
    Nil,
    Array(Vec<Bytes>),
}

impl Answer {
    const WRONG_TYPE: Self = Self::Error("WRONGTYPE the key has a value of another type");

    fn write(self, output: &mut Vec<u8>) {
        match self {
            Self::Simple(text) => output.extend(format!("+{text}\r\n").bytes()),
            Self::Error(text) => output.extend(format!("-{text}\r\n").bytes()),
            Self::Integer(number) => output.extend(format!(":{number}\r\n").bytes()),
            Self::Bulk(value) => {
                output.extend(format!("${}\r\n", value.len()).bytes());
                output.extend_from_slice(&value);
                output.extend_from_slice(b"\r\n");
            }
            Self::Nil => output.extend_from_slice(b"$-1\r\n"),
            Self::Array(values) => {
                output.extend(format!("*{}\r\n", values.len()).bytes());
                for value in values {
                    Self::Bulk(value).write(output);
                }
            }
        }
    }
}
