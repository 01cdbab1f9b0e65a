//! A page in your browser, served by the program itself: ask a trained model, watch every head,
//! change the mechanism and see what changes. Also the prediction alone, for other programs.
//!
//! | file | holds |
//! |---|---|
//! | `server.rs` | an address and what answers there: [`Server::explore`], [`Server::serve`] |
//! | `connections.rs`, `body.rs` | how many connect, how long they take, what all of them send |
//! | `guard.rs`, `token.rs`, `limits.rs` | who may ask, and how much |
//! | `page.rs` | the files of the page |
//! | `runs.rs`, `shelf.rs` | the runs that were given, and no others; the models in memory |
//! | `worker.rs` | the thread that computes; what was overtaken is not computed |
//! | `ask.rs`, `changes.rs`, `answer.rs` | an input, what is changed, and what comes of it |
//! | `matters.rs` | what the answer depends on: every head off, every word forbidden |
//! | `background.rs`, `studies.rs` | the thread for whole parts, and what is found of them |
//! | `cache.rs` | what was answered before |
//! | `errors.rs`, `versus.rs` | the examples of a part by what went wrong, and by which of two models is right |
//! | `evidence.rs` | the picture, the sound and the words behind errors |
//! | `events.rs` | a training while it runs |
//! | `save.rs`, `numbers.rs` | a view as a file: a picture, an animation, its weights |
//! | `predict.rs`, `openapi.json` | the prediction alone |
//!
//! ```no_run
//! use regard_explorer::{Server, Setup};
//! let server = Server::explore(&Setup { runs: vec!["runs/translate".into()], ..Setup::default() })?;
//! println!("{}", server.url());
//! server.wait();
//! # Ok::<(), regard_tasks::Error>(())
//! ```

mod answer;
mod ask;
mod background;
mod body;
mod cache;
mod changes;
mod connections;
mod difference;
mod errors;
mod events;
mod evidence;
mod form;
mod guard;
mod input;
mod limits;
mod matters;
mod measures;
mod numbers;
mod page;
mod predict;
mod refusal;
mod rollout;
mod routes;
mod runs;
mod save;
mod server;
mod shelf;
mod studies;
mod token;
mod versus;
mod worker;

pub use limits::Limits;
pub use server::{Server, Setup};
