//! A store of texts that keeps them in a file, written for tokio: `journal ADDRESS FOLDER`.
//!
//! A line `put KEY TEXT` is answered by `ok` when the text is on the disk, and a line `get KEY` by
//! the text, or an empty line. The file is replaced as a whole: a new file is written and synced,
//! gets the name of the old one, and the folder is synced.
use std::{
    collections::BTreeMap,
    env, io,
    path::{Path, PathBuf},
    sync::Arc,
};
use tokio::{
    fs::{self, File},
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    sync::Mutex,
};

type Texts = BTreeMap<String, String>;

struct Store {
    folder: PathBuf,
    texts: Mutex<Texts>,
}

async fn load(folder: &Path) -> io::Result<Texts> {
    let text = match fs::read_to_string(folder.join("texts")).await {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Texts::new()),
        text => text?,
    };
    let line = |line: &str| {
        let (key, text) = line.split_once(' ')?;
        Some((key.to_owned(), text.to_owned()))
    };
    let texts = text.lines().map(line).collect::<Option<_>>();
    texts.ok_or_else(|| io::Error::other("the file has a wrong line"))
}

impl Store {
    async fn put(&self, key: &str, text: &str) -> io::Result<()> {
        let mut texts = self.texts.lock().await;
        texts.insert(key.to_owned(), text.to_owned());
        let new = self.folder.join("texts.new");
        let mut file = File::create(&new).await?;
        for (key, text) in texts.iter() {
            file.write_all(format!("{key} {text}\n").as_bytes()).await?;
        }
        file.sync_all().await?;
        fs::rename(&new, self.folder.join("texts")).await?;
        File::open(&self.folder).await?.sync_all().await
    }

    async fn serve(&self, stream: TcpStream) -> io::Result<()> {
        let mut stream = BufReader::new(stream);
        let mut line = String::new();
        while stream.read_line(&mut line).await? > 0 {
            let mut words = line.trim_end().splitn(3, ' ');
            let answer = match (words.next(), words.next(), words.next()) {
                (Some("put"), Some(key), Some(text)) => {
                    self.put(key, text).await?;
                    "ok".to_owned()
                }
                (Some("get"), Some(key), None) => {
                    let texts = self.texts.lock().await;
                    texts.get(key).cloned().unwrap_or_default()
                }
                _ => "what?".to_owned(),
            };
            stream.write_all(format!("{answer}\n").as_bytes()).await?;
            line.clear();
        }
        Ok(())
    }
}

#[tokio::main]
async fn main() -> io::Result<()> {
    let mut args = env::args().skip(1);
    let (Some(address), Some(folder)) = (args.next(), args.next()) else {
        return Err(io::Error::other("usage: journal ADDRESS FOLDER"));
    };
    let folder = PathBuf::from(folder);
    let texts = Mutex::new(load(&folder).await?);
    let store = Arc::new(Store { folder, texts });
    let listener = TcpListener::bind(address).await?;
    println!("listens on {}", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        let store = store.clone();
        tokio::spawn(async move {
            if let Err(error) = store.serve(stream).await {
                eprintln!("a connection ends: {error}");
            }
        });
    }
}
