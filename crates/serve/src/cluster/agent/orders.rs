//! Orders that were carried out: none is carried out twice.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::super::protocol::{Answer, Order};

/// Times of the latest orders of each director, in a file, so that a copy of an old order is refused
/// after a restart too.
#[derive(Debug)]
pub(super) struct OrderBook {
    file: Option<BookFile>,
    latest: Latest,
}

/// File of a book. Each text is at least as long as the one before it: directors are added, and times
/// get later. So it is written in place, which costs less than a new file for each order.
#[derive(Debug)]
struct BookFile {
    path: PathBuf,
    file: File,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Latest {
    /// Time of the latest order in ns since the Unix epoch, by the key of the director.
    issued_unix_ns: BTreeMap<String, u64>,
}

impl OrderBook {
    /// Opens a file, and reads what it has.
    ///
    /// # Errors
    /// The file cannot be opened or read.
    pub(super) fn open(path: Option<PathBuf>) -> Result<Self, String> {
        let Some(path) = path else {
            return Ok(Self { file: None, latest: Latest::default() });
        };
        let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let open = || {
            let mut file = OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .open(&path)?;
            let mut text = String::new();
            file.read_to_string(&mut text)?;
            Ok::<_, std::io::Error>((file, text))
        };
        let (file, text) = open().map_err(|error| failed(&error))?;
        let latest = match text.is_empty() {
            true => Latest::default(),
            false => serde_json::from_str(&text).map_err(|error| failed(&error))?,
        };
        Ok(Self { file: Some(BookFile { path, file }), latest })
    }

    /// Notes an order of the director with this key.
    ///
    /// # Errors
    /// The order is not later than all others of this director, or the file cannot be written.
    pub(super) fn enter(&mut self, order: &Order, key: &str) -> Result<(), String> {
        let latest = self.latest.issued_unix_ns.get(key).copied().unwrap_or(0);
        if order.issued_unix_ns <= latest {
            return Err(format!(
                "the order is {} ns older than the latest one of director {}: it is a copy of an \
                 old order, or the director's clock was set back",
                latest - order.issued_unix_ns,
                order.director
            ));
        }
        self.latest.issued_unix_ns.insert(key.to_owned(), order.issued_unix_ns);
        let Some(BookFile { path, file }) = &self.file else { return Ok(()) };
        let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let text = serde_json::to_string(&self.latest).map_err(|error| failed(&error))?;
        file.write_all_at(text.as_bytes(), 0).map_err(|error| failed(&error))
    }
}

/// Answers to the orders of a test, by number.
#[derive(Debug, Default)]
pub(super) struct Answers(BTreeMap<u64, (Order, Answer)>);

impl Answers {
    /// Orders of a test whose answers are kept; the director waits for each, so few are repeated.
    const MAX: usize = 64;

    /// Returns the answer to an order that was carried out before.
    ///
    /// # Errors
    /// Another order had this number.
    pub(super) fn of(&self, order: &Order) -> Result<Option<Answer>, String> {
        match self.0.get(&order.number) {
            None => Ok(None),
            Some((before, answer)) if before == order => Ok(Some(answer.clone())),
            Some(_) => Err(format!("order {} of this test was another one", order.number)),
        }
    }

    pub(super) fn add(&mut self, order: Order, answer: Answer) {
        self.0.insert(order.number, (order, answer));
        if self.0.len() > Self::MAX {
            self.0.pop_first();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::protocol::Command;
    use super::*;

    fn order(issued_unix_ns: u64) -> Order {
        Order {
            agent: "a".into(),
            director: "desk".into(),
            test: "t".into(),
            fence: 1,
            number: issued_unix_ns,
            issued_unix_ns,
            command: Command::Stop,
        }
    }

    #[test]
    fn copies_of_old_orders_are_refused_after_a_restart_too() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("orders.json");
        let mut book = OrderBook::open(Some(path.clone())).unwrap();
        book.enter(&order(5), "UA").unwrap();
        assert!(book.enter(&order(5), "UA").unwrap_err().contains("copy of an old order"));
        book.enter(&order(5), "UB").unwrap();
        let mut book = OrderBook::open(Some(path.clone())).unwrap();
        assert!(book.enter(&order(5), "UA").is_err());
        assert!(book.enter(&order(4), "UB").is_err());
        book.enter(&order(6), "UA").unwrap();
        std::fs::write(&path, "{").unwrap();
        assert!(OrderBook::open(Some(path)).is_err());
    }

    #[test]
    fn repeated_order_has_the_same_answer() {
        let mut answers = Answers::default();
        let answer = Answer::Refused { reason: "no".into() };
        assert_eq!(answers.of(&order(1)), Ok(None));
        answers.add(order(1), answer.clone());
        assert_eq!(answers.of(&order(1)), Ok(Some(answer.clone())));
        let other = Order { command: Command::Release, ..order(1) };
        assert!(answers.of(&other).is_err());
        (2..=1 + Answers::MAX as u64).for_each(|number| answers.add(order(number), answer.clone()));
        assert_eq!(answers.of(&order(1)), Ok(None));
    }
}
