//! The sample's end of a client: it starts the process, gives orders, and ends it.
use super::spec::{Figures, Order, Spec};
use std::{
    io::{self, BufRead, BufReader, Write},
    process::{self, Child, ChildStdin, ChildStdout, Command, Stdio},
    time::Duration,
};

pub(crate) struct Client {
    child: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Client {
    /// Starts the process. The calling thread must be the main one, because a signal ends the
    /// client when that thread ends.
    pub(crate) fn start(spec: &Spec) -> io::Result<Self> {
        let mut command = Command::new("/proc/self/exe");
        command.args(["client", &serde_json::to_string(spec)?]);
        command.args(["--parent", &process::id().to_string()]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let (orders, answers) = child.stdin.take().zip(child.stdout.take()).expect("pipes");
        let answers = BufReader::new(answers);
        Ok(Self {
            child,
            orders,
            answers,
        })
    }

    /// Has the client connect until it has so many connections.
    pub(crate) fn connect(&mut self, count: usize) -> io::Result<()> {
        self.order(Order::Connect(count)).map(drop)
    }

    /// Has the client make requests for a time. Fails if an answer was wrong or did not come.
    pub(crate) fn run(&mut self, span: Duration) -> io::Result<Figures> {
        let figures = self.order(Order::Run(span.as_nanos() as u64))?;
        let Figures { errors, lost, .. } = figures;
        if errors + lost == 0 {
            return Ok(figures);
        }
        let message = format!("{errors} wrong answers, {lost} requests without an answer");
        Err(io::Error::other(message))
    }

    fn order(&mut self, order: Order) -> io::Result<Figures> {
        let mut line = serde_json::to_string(&order)?;
        line.push('\n');
        self.orders.write_all(line.as_bytes())?;
        line.clear();
        if self.answers.read_line(&mut line)? == 0 {
            return Err(io::Error::other("its process has ended"));
        }
        Ok(serde_json::from_str(&line)?)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // An error means that the process has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
