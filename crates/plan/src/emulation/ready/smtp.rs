//! SMTP: RFC 5321, a client that submits messages.

use wirestorm_wire::conversation::Side;

use super::dialogue::Line;
use super::words::{Content, wait, word};
use crate::document::error::PlanError;
use crate::document::place::Place;

pub(in crate::emulation) const SMTP: [&str; 7] =
    ["host", "client_host", "from", "to", "message", "messages", "delay"];

pub(super) fn read(place: &Place<'_>) -> Result<Vec<Line>, PlanError> {
    let fields = place.fields(&SMTP)?;
    let host = word(fields.get("host"), "mail.example.net")?;
    let client_host = word(fields.get("client_host"), "client.example.net")?;
    let from = word(fields.get("from"), "sender@example.net")?;
    let to = word(fields.get("to"), "reader@example.net")?;
    let messages = fields.get("messages").map_or(Ok(1), |it| it.integer(1, 1 << 30))?;
    let wait = wait(fields.get("delay"), Side::Server)?;
    let message = match fields.get("message") {
        None => letter(&from, &to, &text_of(500)),
        // So many bytes of text.
        Some(size) if size.value().is_number() => {
            letter(&from, &to, &text_of(size.integer(0, 64 << 20)? as usize))
        }
        Some(message) => Content::read(&message)?.written(&message)?,
    };
    let answer = |text: String| wait.clone().into_iter().chain([Line::server(text)]);

    let mut lines: Vec<Line> = answer(format!("220 {host} ESMTP ready\r\n")).collect();
    lines.push(Line::client(format!("EHLO {client_host}\r\n")));
    lines.extend(answer(format!("250-{host} greets {client_host}\r\n250 8BITMIME\r\n")));
    let mut submitted = vec![Line::client(format!("MAIL FROM:<{from}>\r\n"))];
    submitted.extend(answer("250 OK\r\n".to_owned()));
    submitted.push(Line::client(format!("RCPT TO:<{to}>\r\n")));
    submitted.extend(answer("250 OK\r\n".to_owned()));
    submitted.push(Line::client("DATA\r\n"));
    submitted.extend(answer("354 End with a line that is a dot\r\n".to_owned()));
    submitted.push(Line::client(transparent(&message)));
    submitted.extend(answer("250 OK, queued\r\n".to_owned()));
    match messages {
        1 => lines.extend(submitted),
        _ => lines.push(Line::Repeat { times: Some(messages), lines: submitted }),
    }
    lines.push(Line::client("QUIT\r\n"));
    lines.extend(answer(format!("221 {host} closes\r\n")));
    lines.push(Line::Closes(Side::Server));
    Ok(lines)
}

/// A message of RFC 5322 with this text.
fn letter(from: &str, to: &str, text: &[u8]) -> Vec<u8> {
    let header = format!(
        "Date: Mon, 1 Jan 2024 12:00:00 +0000\r\nFrom: <{from}>\r\nTo: <{to}>\r\n\
         Subject: Test\r\n\r\n"
    );
    [header.as_bytes(), text].concat()
}

/// So many bytes of text, in lines.
fn text_of(size: usize) -> Vec<u8> {
    const LINE: &[u8] =
        b"This is a line of a message that was made for a test, and means nothing.\r\n";
    LINE.iter().cycle().take(size).copied().collect()
}

/// What stands for a message on the wire, its end included: RFC 5321 section 4.5.2.
fn transparent(message: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(message.len() + 8);
    for line in message.split_inclusive(|byte| *byte == b'\n') {
        if line.first() == Some(&b'.') {
            text.push(b'.');
        }
        // A line ends in both.
        match line.strip_suffix(b"\n") {
            Some(rest) if !rest.ends_with(b"\r") => {
                text.extend_from_slice(rest);
                text.extend_from_slice(b"\r\n");
            }
            _ => text.extend_from_slice(line),
        }
    }
    if !text.is_empty() && !text.ends_with(b"\n") {
        text.extend_from_slice(if text.ends_with(b"\r") { b"\n" } else { b"\r\n" });
    }
    text.extend_from_slice(b".\r\n");
    text
}
