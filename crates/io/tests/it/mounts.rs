//! Private replacement of `/proc/net`.

use std::process::Command;
use std::sync::Mutex;
use std::sync::mpsc::channel;

use wirestorm_io::fuse::{Answer, Connection, Files, Node};
use wirestorm_io::mounts::PrivateMounts;

/// A folder with one file that stores what is written to it. It rejects "no" with an error, and
/// answers "wait" only when "go" is written.
#[derive(Default)]
struct OneFile(Mutex<Vec<String>>, Mutex<Option<Answer>>);

impl Files for OneFile {
    fn find(&self, path: &str) -> Option<Node> {
        match path {
            "" | "folder" => Some(Node::Directory),
            "folder/file" => Some(Node::File),
            PrivateMounts::LINK => Some(Node::Link(PrivateMounts::ROOT.to_owned())),
            _ => None,
        }
    }

    fn names(&self, directory: &str) -> Vec<String> {
        let name = if directory.is_empty() { "folder" } else { "file" };
        vec![name.to_owned()]
    }

    fn read(&self, _: &str) -> Result<String, i32> {
        Ok(self.0.lock().unwrap().concat())
    }

    fn write(&self, path: &str, text: &[u8], answer: Answer) {
        assert_eq!(path, "folder/file");
        let text = String::from_utf8_lossy(text).into_owned();
        let is_fine = text != "no\n";
        if is_fine {
            self.0.lock().unwrap().push(text.clone());
        }
        match &*text {
            "wait\n" => return *self.1.lock().unwrap() = Some(answer),
            "go\n" => drop(self.1.lock().unwrap().take().map(|waiting| waiting.complete(Ok(())))),
            _ => {}
        }
        answer.complete(if is_fine { Ok(()) } else { Err(libc::ENETDOWN) });
    }

    fn interrupted(&self) {}
}

/// Returns the output of a shell whose `/proc/net` is the test's file system.
fn shell(script: &str) -> Option<String> {
    // SAFETY: the call only reads the process's own identity.
    if unsafe { libc::geteuid() } != 0 {
        println!("skipped: needs root, for mounts");
        return None;
    }
    let Ok(connection) = Connection::open() else {
        println!("skipped: the kernel has no FUSE");
        return None;
    };
    let served = connection.share();
    let (give_mounted, mounted) = channel();
    let server = std::thread::spawn(move || {
        mounted.recv().unwrap();
        served.serve(&OneFile::default())
    });
    let script = script.to_owned();
    let client = std::thread::spawn(move || {
        let mounts = PrivateMounts::mount(&connection).unwrap();
        give_mounted.send(()).unwrap();
        mounts.cover_proc_net().unwrap();
        Command::new("sh").args(["-c", &script]).output().unwrap()
    });
    let output = client.join().unwrap();
    server.join().unwrap().unwrap();
    Some(String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
}

#[test]
fn each_write_is_a_command_and_a_rejected_one_fails() {
    let script = "cd /proc/net/folder; echo one > file; printf 'two words\n' >> file
                  cat file; echo no | cat > file || echo refused; cat file; ls /proc/net/folder
                  echo x > other || [ -w file ] && [ ! -e other ] && echo end";
    let Some(text) = shell(script) else { return };
    let (output, errors): (Vec<&str>, Vec<&str>) =
        text.lines().partition(|line| !line.contains(": "));
    let both = ["one", "two words"];
    assert_eq!(output, [&both[..], &["refused"], &both, &["file", "end"]].concat(), "{text}");
    assert!(errors.iter().any(|line| line.contains("down")), "{text}");
    assert!(errors.iter().any(|line| line.contains("other")), "{text}");
}

#[test]
fn mounts_are_invisible_to_other_processes() {
    let before = std::fs::read_link("/proc/net").unwrap();
    let Some(text) = shell("readlink /proc/net; cat /proc/self/net/dev | head -c 6") else {
        return;
    };
    assert_eq!(text, format!("{}\nInter-", PrivateMounts::ROOT));
    assert_eq!(std::fs::read_link("/proc/net").unwrap(), before);
    assert!(!std::path::Path::new("/proc/net/folder").exists());
}

#[test]
fn slow_command_does_not_block_other_processes() {
    // The second command answers the first one.
    let script = "cd /proc/net/folder; (echo wait > file; echo one) &
                  until grep -q wait file; do :; done; echo go > file; wait; echo two";
    let Some(text) = shell(script) else { return };
    assert_eq!(text, "one\ntwo\n");
}
