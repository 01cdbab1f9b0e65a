//! A server: one model, shared by threads with a small stack, each with a connection of its own.

use regard::prelude::*;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

type Answer<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

const STACK: usize = 1 << 20;
const CLIENTS: usize = 4;
const QUESTIONS: usize = 5;

struct Model {
    embedding: Embedding,
    encoder: TransformerEncoder,
}

impl Model {
    fn new() -> regard::Result<Self> {
        let parameters = Parameters::new(DType::F32, 1);
        let config = TransformerConfig {
            width: 16,
            heads: 2,
            feed_forward: 32,
            layers: 2,
            ..TransformerConfig::default()
        };
        Ok(Self {
            embedding: Embedding::new(&parameters.at("embedding"), 50, 16, None)?,
            encoder: TransformerEncoder::new(&parameters.at("encoder"), &config, 16)?,
        })
    }

    /// The mean of the encoder's output for a line of token ids; a sentence where it is refused.
    fn answer(&self, line: &str) -> Answer<f64> {
        let ids = line.split_whitespace().map(str::parse).collect::<Result<Vec<i64>, _>>()?;
        without_gradients(|| {
            let x = self.embedding.forward(&Tensor::from_vec(ids.clone(), &[1, ids.len()])?)?;
            let out = self.encoder.forward(&x, None, Mode::Infer)?;
            Ok(out.mean_all()?.item()?)
        })
    }
}

fn serve(model: &Model, stream: TcpStream) -> Answer<()> {
    let mut to = stream.try_clone()?;
    for line in BufReader::new(stream).lines() {
        match model.answer(&line?) {
            Ok(number) => writeln!(to, "{number:.6}")?,
            Err(error) => writeln!(to, "refused: {error}")?,
        }
    }
    Ok(())
}

fn ask(address: std::net::SocketAddr, client: usize) -> Answer<Vec<String>> {
    let mut stream = TcpStream::connect(address)?;
    let mut answers = BufReader::new(stream.try_clone()?).lines();
    let mut all = Vec::new();
    for question in 0..QUESTIONS {
        // The last one asks for a token that there is not.
        let token = if question + 1 == QUESTIONS { 50 } else { client };
        writeln!(stream, "{token} 7 {question}")?;
        all.push(answers.next().ok_or("the server hung up")??);
    }
    Ok(all)
}

fn main() -> Answer<()> {
    let model = Arc::new(Model::new()?);
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let clients: Vec<_> =
        (0..CLIENTS).map(|n| std::thread::spawn(move || ask(address, n))).collect();
    let mut servers = Vec::new();
    for stream in listener.incoming().take(CLIENTS) {
        let (model, stream) = (model.clone(), stream?);
        let thread = std::thread::Builder::new().stack_size(STACK);
        servers.push(thread.spawn(move || serve(&model, stream))?);
    }
    for (client, thread) in clients.into_iter().enumerate() {
        let answers = thread.join().expect("a client ends")?;
        for (question, answer) in answers.iter().enumerate().take(QUESTIONS - 1) {
            let alone = format!("{:.6}", model.answer(&format!("{client} 7 {question}"))?);
            assert_eq!(*answer, alone, "client {client}, question {question}");
        }
        let refusal = &answers[QUESTIONS - 1];
        assert!(refusal.starts_with("refused: ") && refusal.contains("50"), "{refusal}");
    }
    for thread in servers {
        thread.join().expect("a server ends")?;
    }
    println!("{CLIENTS} clients, {QUESTIONS} questions each, answered as alone");
    Ok(())
}
