//! SMTP (RFC 5321): a client submits messages to a server.

use serde_json::{Value, json};
use wirestorm_model::program::{Condition, Label, MessageFraming, Step};
use wirestorm_wire::conversation::Side;
use wirestorm_wire::pattern::Pattern;

use super::commands::{CommandLoop, escape_values, send_line, steps};
use super::dialogue_lines::Line;
use super::values::{Content, wait, word};
use crate::document::error::PlanError;
use crate::document::value_at::ValueAt;
use crate::emulation::delay::read_delay;

pub(in crate::emulation) const SMTP: [&str; 8] =
    ["host", "client_host", "from", "to", "message", "messages", "delay", "start_tls"];

/// Transaction of a message, from MAIL until the server accepts it.
const TRANSACTION: &str = "smtp";

/// Settings of the preset.
struct SmtpSettings<'a> {
    host: String,
    client_host: String,
    from: String,
    to: String,
    /// Message as on the wire, with its end marker.
    message: Vec<u8>,
    messages: u64,
    /// Delay before each of the server's replies.
    delay: Option<ValueAt<'a>>,
}

fn read_settings<'a>(place: &ValueAt<'a>) -> Result<SmtpSettings<'a>, PlanError> {
    let fields = place.fields(&SMTP)?;
    let from = word(fields.get("from"), "sender@example.net")?;
    let to = word(fields.get("to"), "reader@example.net")?;
    let message = match fields.get("message") {
        None => letter(&from, &to, &text_of(500)),
        // A number is a size in bytes of text.
        Some(size) if size.value().is_number() => {
            letter(&from, &to, &text_of(size.integer(0, 64 << 20)? as usize))
        }
        Some(message) => Content::read(&message)?.expanded(&message)?,
    };
    Ok(SmtpSettings {
        host: word(fields.get("host"), "mail.example.net")?,
        client_host: word(fields.get("client_host"), "client.example.net")?,
        from,
        to,
        message: transparent(&message),
        messages: fields.get("messages").map_or(Ok(1), |it| it.integer(1, 1 << 30))?,
        delay: fields.get("delay"),
    })
}

/// Returns whether TLS starts with STARTTLS. `has_tls` is whether the template has TLS.
pub(super) fn starts_tls(place: &ValueAt<'_>, has_tls: bool) -> Result<bool, PlanError> {
    let Some(start) = place.fields(&SMTP)?.get("start_tls") else { return Ok(false) };
    match start.boolean()? {
        true if !has_tls => {
            Err(start.error("no `tls` in the template", "it as well, such as `tls: true`"))
        }
        starts => Ok(starts),
    }
}

pub(super) fn read(place: &ValueAt<'_>) -> Result<Vec<Line>, PlanError> {
    let settings = read_settings(place)?;
    let SmtpSettings { host, client_host, from, to, .. } = &settings;
    let wait = wait(settings.delay.clone(), Side::Server)?;
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
    submitted.push(Line::client(settings.message.as_slice()));
    submitted.extend(answer("250 OK, queued\r\n".to_owned()));
    let submitted = Line::timed(TRANSACTION, submitted);
    match settings.messages {
        1 => lines.extend(submitted),
        messages => lines.push(Line::Repeat { times: Some(messages), lines: submitted }),
    }
    lines.push(Line::client("QUIT\r\n"));
    lines.extend(answer(format!("221 {host} closes\r\n")));
    lines.push(Line::Closes(Side::Server));
    Ok(lines)
}

/// Returns the programs of client and server with STARTTLS (RFC 3207). Both parse the data of the
/// peer even if Wirestorm plays both sides: bytes that no step receives would belong to TLS.
pub(super) fn read_with_tls(place: &ValueAt<'_>) -> Result<[Vec<Step>; 2], PlanError> {
    let settings = read_settings(place)?;
    let server = steps(server(&settings, true)?, place)?;
    Ok([client(settings, place, true)?, server])
}

/// Returns the program of a client for other hosts' servers, with replies of any length.
pub(super) fn read_client(place: &ValueAt<'_>) -> Result<Vec<Step>, PlanError> {
    client(read_settings(place)?, place, false)
}

/// Returns the program of a server for other hosts' clients. It accepts several recipients and
/// messages of any length.
pub(super) fn read_server(place: &ValueAt<'_>) -> Result<Vec<Step>, PlanError> {
    steps(server(&read_settings(place)?, false)?, place)
}

/// Returns the program of a client that parses each reply. On an unexpected reply it fails and
/// sends QUIT. `starts_tls` is whether it uses STARTTLS.
fn client(
    settings: SmtpSettings<'_>,
    place: &ValueAt<'_>,
    starts_tls: bool,
) -> Result<Vec<Step>, PlanError> {
    const LEAVE: Label = Label(0);
    let send = |text: Vec<u8>| Step::Send { size: text.len() as u32, text, fill: Vec::new() };
    let command = |line: &str| send(format!("{line}\r\n").into_bytes());
    let receive_reply = |pattern: &str, otherwise| {
        let expected =
            Condition::Matches(Pattern::new(pattern).map_err(|it| place.message_error(it))?);
        Ok::<_, PlanError>([
            Step::ReceiveMessage(MessageFraming::Reply),
            Step::Expect { expected, on_failure: otherwise },
        ])
    };
    let require_reply = |pattern| receive_reply(pattern, Some(LEAVE));

    let hello = format!("EHLO {}", settings.client_host);
    let mut steps = vec![Step::SetBlocking(false)];
    steps.extend(require_reply("^220")?);
    if starts_tls {
        steps.push(command(&hello));
        steps.extend(require_reply(r"(?im)^250[ -]STARTTLS\r?$")?);
        steps.push(command("STARTTLS"));
        steps.extend(require_reply("^220")?);
        steps.push(Step::StartTls);
    }
    // RFC 3207 section 4.2: "The client MUST discard any knowledge obtained from the server", and
    // "SHOULD send an EHLO command as the first command after a successful TLS negotiation."
    steps.push(command(&hello));
    steps.extend(require_reply("^250")?);

    let mut submitted = vec![Step::StartTransaction(TRANSACTION.to_owned())];
    submitted.push(command(&format!("MAIL FROM:<{}>", settings.from)));
    submitted.extend(require_reply("^250")?);
    submitted.push(command(&format!("RCPT TO:<{}>", settings.to)));
    // RFC 5321 section 4.2.3: "251 User not local; will forward".
    submitted.extend(require_reply("^25[01]")?);
    submitted.push(command("DATA"));
    submitted.extend(require_reply("^354")?);
    submitted.push(send(settings.message));
    submitted.extend(require_reply("^250")?);
    submitted.push(Step::EndTransaction(TRANSACTION.to_owned()));
    match settings.messages {
        1 => steps.append(&mut submitted),
        messages => steps.push(Step::Repeat { times: Some(messages), steps: submitted }),
    }
    steps.extend([Step::Label(LEAVE), command("QUIT")]);
    // RFC 5321 section 4.1.1.10: the client waits for the reply to QUIT, then closes. It does not
    // wait for the server's close.
    steps.extend(receive_reply("^221", None)?);
    Ok(steps)
}

/// Returns the steps of a server that executes commands. With `starts_tls` it accepts messages only
/// within TLS.
fn server(settings: &SmtpSettings<'_>, starts_tls: bool) -> Result<Vec<Value>, PlanError> {
    settings.delay.as_ref().map(read_delay).transpose()?;
    let wait = settings.delay.as_ref().map(|delay| json!({"delay": delay.value()}));
    let host = escape_values(settings.host.clone());
    let quit = || vec![json!({"jump": "quit"})];
    let greets = |more: &str| format!("250-{host} greets you\r\n250{more}");
    let mut clear = CommandLoop::lines("clear");
    let start = json!({"send": "220 Ready to start TLS\r\n"});
    clear.command(r"^STARTTLS *\r", vec![start, json!("start_tls"), json!({"jump": "next"})]);
    clear.reply("^STARTTLS", vec![], "501 STARTTLS stands alone");
    clear.reply("^EHLO ", vec![], &greets("-8BITMIME\r\n250 STARTTLS"));
    clear.reply("^HELO ", vec![], &format!("250 {host} greets you"));
    clear.reply(r"^(?:NOOP|RSET)\b", vec![], "250 OK");
    clear.command(r"^QUIT\r", quit());

    let mut commands = CommandLoop::lines("next");
    // RFC 3207 section 4.2: "A server MUST NOT return the STARTTLS extension in response to an EHLO
    // command received after a TLS handshake has completed."
    commands.reply("^EHLO ", vec![], &greets(" 8BITMIME"));
    commands.reply("^HELO ", vec![], &format!("250 {host} greets you"));
    commands.reply(r"^(?:MAIL FROM|RCPT TO): ?<", vec![], "250 OK");
    commands.reply(r"^(?:NOOP|RSET)\b", vec![], "250 OK");
    if starts_tls {
        commands.reply("^STARTTLS", vec![], "503 TLS has begun");
    }
    commands.command(r"^DATA\r", vec![json!({"jump": "data"})]);
    commands.command(r"^QUIT\r", quit());

    let mut steps = vec![json!({"blocking": false})];
    steps.extend(wait.clone());
    send_line(&mut steps, &format!("220 {host} ESMTP ready"));
    // A server may require TLS. RFC 3207 section 4: it then answers "every command other than NOOP,
    // EHLO, STARTTLS, or QUIT" with "530 Must issue a STARTTLS command first". This server answers
    // HELO and RSET as well.
    if starts_tls {
        steps.append(&mut clear.finish(wait.clone(), "530 Must issue a STARTTLS command first"));
    }
    steps.append(&mut commands.finish(wait.clone(), "502 Not known here"));
    steps.push(json!({"label": "data"}));
    send_line(&mut steps, "354 End with a line that is a dot");
    steps.extend([
        json!({"label": "line"}),
        json!({"receive": {"until": "\n"}}),
        json!({"jump": {"to": "queued", "received": {"pattern": r"^\.\r\n$"}}}),
        json!({"jump": "line"}),
        json!({"label": "queued"}),
    ]);
    steps.extend(wait);
    send_line(&mut steps, "250 OK, queued");
    steps.extend([json!({"jump": "next"}), json!({"label": "quit"})]);
    send_line(&mut steps, &format!("221 {host} closes"));
    Ok(steps)
}

/// Returns a message (RFC 5322) with this text.
fn letter(from: &str, to: &str, text: &[u8]) -> Vec<u8> {
    let header = format!(
        "Date: Mon, 1 Jan 2024 12:00:00 +0000\r\nFrom: <{from}>\r\nTo: <{to}>\r\n\
         Subject: Test\r\n\r\n"
    );
    [header.as_bytes(), text].concat()
}

/// Returns `size` bytes of text, in lines.
fn text_of(size: usize) -> Vec<u8> {
    const LINE: &[u8] =
        b"This is a line of a message that was made for a test, and means nothing.\r\n";
    LINE.iter().cycle().take(size).copied().collect()
}

/// Encodes a message for the wire: CRLF line ends, doubled leading dots (RFC 5321 section 4.5.2),
/// and the end marker.
fn transparent(message: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(message.len() + 8);
    for line in message.split_inclusive(|byte| *byte == b'\n') {
        if line.first() == Some(&b'.') {
            text.push(b'.');
        }
        // Lines end in CRLF (section 2.3.8).
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
