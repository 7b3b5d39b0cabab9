//! FTP: RFC 959, with data connections by EPSV (RFC 2428), or by PASV (RFC 959) if the server does
//! not support EPSV.
//!
//! The client reads the port of a data connection from the server's reply. The server executes
//! commands in any order. Each kind of data connection has a template and programs of its own. The
//! programs of the control connection select these templates by group.

use serde_json::{Value, json};

use super::commands::{CommandLoop, escape_values, expect_reply, send_line, steps};
use super::dialogue_lines::PlayedSides;
use super::values::word;
use crate::document::error::PlanError;
use crate::document::range::read_ports;
use crate::document::value_at::{Fields, ValueAt};
use crate::emulation::control_steps::DYNAMIC_PORTS;
use crate::emulation::delay::read_delay;
use crate::emulation::dialogue::{Dialogue, OnDemand};
use crate::emulation::payload_size::SIZE_MAX;
use crate::emulation::types::Transport;

pub(in crate::emulation) const FTP: [&str; 9] =
    ["host", "user", "password", "files", "upload", "list", "rounds", "data_ports", "delay"];
pub(in crate::emulation) const FILE: [&str; 2] = ["name", "size"];
pub(in crate::emulation) const LISTINGS: [&str; 2] = ["LIST", "NLST"];
/// Maximum number of files in one list.
const FILES_MAX: usize = 100;
/// Default size of a file in bytes.
const SIZE: u32 = 1_024;

struct File {
    name: String,
    /// Size in bytes. `None`: [`SIZE`], or any size from other hosts' servers.
    size: Option<u32>,
}

impl File {
    fn length(&self) -> u32 {
        self.size.unwrap_or(SIZE)
    }
}

/// Settings of the preset.
struct FtpSettings<'a> {
    host: String,
    user: String,
    password: String,
    files: Vec<File>,
    /// Whether clients fetch `files`. If not, `files` only appear in listings.
    fetches: bool,
    upload: Vec<File>,
    listings: Vec<&'static str>,
    rounds: u64,
    data_ports: String,
    /// Delay before each of the server's replies.
    delay: Option<&'a Value>,
    /// Whether control and data connections use TLS (RFC 4217).
    has_tls: bool,
}

/// A transfer over a data connection.
struct Transfer {
    /// Command with its argument, such as `RETR readme.txt`.
    command: String,
    /// Suffix of the template name of its data connections, such as `retr.readme.txt`.
    part: String,
    client: Vec<Value>,
    server: Vec<Value>,
}

/// Returns the programs of the control connection, then those of each kind of data connection.
/// `name` is the template's name; `has_tls` is whether the template has TLS.
pub(super) fn read(
    place: &ValueAt<'_>,
    name: &str,
    who: PlayedSides,
    has_tls: bool,
) -> Result<Vec<Dialogue>, PlanError> {
    let settings = read_settings(place, has_tls)?;
    let transfers = transfers(&settings, who);
    let group = |transfer: &Transfer| format!("{name}.{}", transfer.part);
    let dialogue = |client: Vec<Value>, server: Vec<Value>| {
        let (client, server) = (steps(client, place)?, steps(server, place)?);
        Ok(Dialogue { client, server, ..Dialogue::of(Transport::Tcp, 21) })
    };
    let control =
        dialogue(client(&settings, &transfers, group), server(&settings, &transfers, group))?;
    let mut dialogues = vec![control];
    for transfer in &transfers {
        let data = dialogue(transfer.client.clone(), transfer.server.clone())?;
        let part = Some(transfer.part.clone());
        let on_demand = Some(OnDemand { group: group(transfer), listen: None });
        dialogues.push(Dialogue { part, on_demand, ..data });
    }
    Ok(dialogues)
}

fn read_settings<'a>(place: &ValueAt<'a>, has_tls: bool) -> Result<FtpSettings<'a>, PlanError> {
    let fields = place.fields(&FTP)?;
    let files = match fields.get("files") {
        None => vec![File { name: "readme.txt".to_owned(), size: None }],
        Some(list) => read_files(&list)?,
    };
    let listings = match fields.get("list") {
        None => Vec::new(),
        Some(list) => {
            let items = list.items("commands")?;
            let listing = |it: &ValueAt<'_>| {
                let found = LISTINGS.into_iter().find(|known| it.value() == known);
                found.ok_or_else(|| it.unexpected(LISTINGS.join(" or ")))
            };
            items.iter().map(listing).collect::<Result<_, _>>()?
        }
    };
    let delay = fields.get("delay");
    delay.as_ref().map(read_delay).transpose()?;
    let ports = fields.get("data_ports").map(|it| read_ports(&it)).transpose()?;
    let ports = ports.unwrap_or(DYNAMIC_PORTS);
    Ok(FtpSettings {
        host: escape_values(word(fields.get("host"), "ftp.example.net")?),
        user: escape_values(word(fields.get("user"), "anonymous")?),
        password: escape_values(word(fields.get("password"), "guest@example.net")?),
        files,
        // Without `files`, clients fetch the default file unless they have another transfer.
        fetches: ["upload", "list"].iter().all(|name| fields.get(name).is_none())
            || fields.get("files").is_some(),
        upload: fields.get("upload").map_or(Ok(Vec::new()), |it| read_files(&it))?,
        listings,
        rounds: read_rounds(&fields)?,
        data_ports: format!("{}-{}", ports.start(), ports.end()),
        delay: delay.map(|it| it.value()),
        has_tls,
    })
}

fn read_rounds(fields: &Fields<'_>) -> Result<u64, PlanError> {
    fields.get("rounds").map_or(Ok(1), |it| it.integer(1, 1 << 30))
}

/// Reads a list of files with unique names.
fn read_files(place: &ValueAt<'_>) -> Result<Vec<File>, PlanError> {
    let items = place.items("files")?;
    if items.len() > FILES_MAX {
        return Err(place.error(format!("{} files", items.len()), format!("at most {FILES_MAX}")));
    }
    let mut files: Vec<File> = Vec::new();
    for item in items {
        let file = if item.value().is_object() {
            let fields = item.fields(&FILE)?;
            let name = fields.required("name", "the name of a file")?;
            let size = fields.get("size").map(|it| it.integer(0, SIZE_MAX)).transpose()?;
            File { name: word(Some(name), "")?, size: size.map(|size| size as u32) }
        } else {
            File { name: word(Some(item.clone()), "")?, size: None }
        };
        if files.iter().any(|other| other.name == file.name) {
            return Err(item.error(format!("{:?} twice", file.name), "each file once"));
        }
        files.push(file);
    }
    Ok(files)
}

fn transfers(settings: &FtpSettings<'_>, who: PlayedSides) -> Vec<Transfer> {
    let mut transfers = Vec::new();
    // Without blocking, FIN leaves with the last data instead of after its acknowledgement.
    let send_non_blocking =
        |payload: Value| vec![json!({"blocking": false}), json!({"send": payload})];
    let send = |size: u32| match size {
        0 => vec![json!("connect")],
        size => send_non_blocking(json!({"size": size})),
    };
    // Receives up to the close, and fails if the file is shorter than its known size.
    let take = |size: Option<u32>| {
        let needed = size.filter(|size| *size > 0).map(|it| json!({"receive": {"bytes": it}}));
        needed.into_iter().chain([json!("wait_for_close")]).collect()
    };
    let usual = |file: &File| match who {
        PlayedSides::Both => Some(file.length()),
        PlayedSides::Client | PlayedSides::Server => file.size,
    };
    let is_listed =
        |listing: &str| settings.listings.contains(&listing) || who == PlayedSides::Server;
    for listing in LISTINGS.into_iter().filter(|it| is_listed(it)) {
        let line = |file: &File| match listing {
            "LIST" => format!(
                "-rw-r--r-- 1 ftp ftp {:12} Jan 01  2024 {}\r\n",
                file.length(),
                escape_values(file.name.clone())
            ),
            _ => format!("{}\r\n", escape_values(file.name.clone())),
        };
        let text: String = settings.files.iter().map(line).collect();
        transfers.push(Transfer {
            command: listing.to_owned(),
            part: listing.to_lowercase(),
            client: take(None),
            server: if text.is_empty() {
                vec![json!("connect")]
            } else {
                send_non_blocking(json!(text))
            },
        });
    }
    let is_fetched = settings.fetches || who == PlayedSides::Server;
    for file in settings.files.iter().filter(|_| is_fetched) {
        transfers.push(Transfer {
            command: format!("RETR {}", file.name),
            part: format!("retr.{}", file.name),
            client: take(usual(file)),
            server: send(file.length()),
        });
    }
    for file in &settings.upload {
        transfers.push(Transfer {
            command: format!("STOR {}", file.name),
            part: format!("stor.{}", file.name),
            client: send(file.length()),
            server: take(usual(file)),
        });
    }
    if who == PlayedSides::Server {
        transfers.push(Transfer {
            command: STORE_ANY.to_owned(),
            part: "stor".to_owned(),
            client: vec![json!("connect")],
            server: take(None),
        });
    }
    transfers
}

/// Command of transfers for files that other hosts' clients store under any name.
const STORE_ANY: &str = "STOR";

/// Returns the client's program for the control connection.
fn client(
    settings: &FtpSettings<'_>,
    transfers: &[Transfer],
    group: impl Fn(&Transfer) -> String,
) -> Vec<Value> {
    let mut steps = vec![json!({"blocking": false})];
    expect_reply(&mut steps, "^220");
    if settings.has_tls {
        send_line(&mut steps, "AUTH TLS");
        expect_reply(&mut steps, "^234");
        steps.push(json!("start_tls"));
    }
    send_line(&mut steps, &format!("USER {}", settings.user));
    steps.extend([
        json!({"receive": {"message": "reply"}}),
        json!({"jump": {"to": "in", "received": {"pattern": "^230"}}}),
        json!({"expect": {"pattern": "^331"}}),
    ]);
    send_line(&mut steps, &format!("PASS {}", settings.password));
    expect_reply(&mut steps, "^2");
    steps.push(json!({"label": "in"}));
    if settings.has_tls {
        // RFC 4217 section 9: "the PROT command MUST be preceded by a PBSZ command". TLS needs no
        // size of protected blocks, so the size is 0.
        for command in ["PBSZ 0", "PROT P"] {
            send_line(&mut steps, command);
            expect_reply(&mut steps, "^200");
        }
    }
    send_line(&mut steps, "TYPE I");
    expect_reply(&mut steps, "^200");
    let mut round = Vec::new();
    for (number, transfer) in transfers.iter().enumerate() {
        if let Some(name) = transfer.command.strip_prefix("RETR ") {
            // RFC 3659: clients send these before RETR. Any reply will do, since servers may not
            // support them.
            for question in ["SIZE", "MDTM"] {
                send_line(&mut round, &format!("{question} {}", escape_values(name.to_owned())));
                round.push(json!({"receive": {"message": "reply"}}));
            }
        }
        let (extended, open) = (format!("extended {number}"), format!("open {number}"));
        let kind = transfer.command.split(' ').next().unwrap_or_default().to_lowercase();
        let transaction = format!("ftp.{kind}");
        round.push(json!({"transaction": {"start": transaction}}));
        send_line(&mut round, "EPSV");
        round.extend([
            json!({"receive": {"message": "reply"}}),
            json!({"jump": {"to": extended, "received": {"pattern": "^229"}}}),
        ]);
        send_line(&mut round, "PASV");
        expect_reply(&mut round, "^227");
        round.extend([
            json!({"extract": {"port": {"pattern": r"\d+,\d+,\d+,\d+,(\d+,\d+)"}}}),
            json!({"jump": open}),
            json!({"label": extended}),
            json!({"extract": {"port": {"pattern": r"\(\D{3}(\d+)\D\)"}}}),
            json!({"label": open}),
        ]);
        let start = json!({"start_flow": {"port": "port"}});
        round.extend([json!({"select_group": group(transfer)}), start]);
        send_line(&mut round, &escape_values(transfer.command.clone()));
        expect_reply(&mut round, "^1[25]");
        round.push(json!("wait_flow"));
        expect_reply(&mut round, "^2[25]");
        round.push(json!({"transaction": {"end": transaction}}));
    }
    match settings.rounds {
        _ if round.is_empty() => {}
        1 => steps.append(&mut round),
        times => steps.push(json!({"repeat": {"times": times, "steps": round}})),
    }
    send_line(&mut steps, "QUIT");
    expect_reply(&mut steps, "^221");
    steps.push(json!("wait_for_close"));
    steps
}

/// Returns the server's program for the control connection: a command loop.
fn server(
    settings: &FtpSettings<'_>,
    transfers: &[Transfer],
    group: impl Fn(&Transfer) -> String,
) -> Vec<Value> {
    let mut commands = CommandLoop::lines("next");
    let unprotected = json!({"jump": {"to": "unprotected", "variable": "protected", "equal": 0}});
    for transfer in transfers {
        let pattern = match transfer.command.split_once(' ') {
            Some((command, name)) => format!(r"^{command} (?:.*/)?{}\r", literal(name)),
            None if transfer.command == STORE_ANY => "^STOR ".to_owned(),
            // Arguments may be options and directories.
            None => format!("^{}", transfer.command),
        };
        let mut steps: Vec<_> = settings.has_tls.then(|| unprotected.clone()).into_iter().collect();
        steps.extend([
            json!({"jump": {"to": "no port", "variable": "port", "equal": 0}}),
            json!({"select_group": group(transfer)}),
            json!({"jump": "transfer"}),
        ]);
        commands.command(&pattern, steps);
    }
    let listen = json!({"listen": {"variable": "port", "ports": settings.data_ports}});
    commands.reply(
        r"^EPSV(?: [12])?\r",
        vec![listen.clone()],
        "229 Entering extended passive mode (|||${port}|)",
    );
    let passive = "227 Entering passive mode (${server:octets},${port:octets})";
    commands.reply(r"^PASV\r", vec![listen], passive);
    for file in &settings.files {
        let name = literal(&file.name);
        let size = format!("213 {}", file.length());
        commands.reply(&format!(r"^SIZE (?:.*/)?{name}\r"), vec![], &size);
        commands.reply(&format!(r"^MDTM (?:.*/)?{name}\r"), vec![], "213 20240101120000");
    }
    if settings.has_tls {
        protect(&mut commands);
    }
    for (pattern, reply) in [
        ("^USER ", "331 Password, please"),
        ("^PASS", "230 Logged in"),
        (r"^(?:PWD|XPWD)\r", "257 \"/\" is the directory"),
        (r"^(?:CWD|CDUP)\b", "250 Directory changed"),
        (r"^(?:TYPE|MODE|STRU|ALLO|OPTS|NOOP|EPSV)\b", "200 OK"),
        ("^SYST", "215 UNIX Type: L8"),
        ("^FEAT", features(settings.has_tls)),
        ("^(?:RETR|SIZE|MDTM) ", "550 No such file"),
    ] {
        commands.reply(pattern, vec![], reply);
    }
    commands.command(r"^QUIT\r", vec![json!({"jump": "quit"})]);

    let wait = settings.delay.map(|delay| json!({"delay": delay}));
    // A client may delay the acknowledgement of a reply until its transfer, so do not wait for it.
    let mut steps = vec![json!({"blocking": false})];
    steps.extend(wait.clone());
    send_line(&mut steps, &format!("220 {} ready", settings.host));
    if settings.has_tls {
        steps.append(&mut before_tls(wait.clone()));
    }
    steps.append(&mut commands.finish(wait, "502 Not known here"));
    if settings.has_tls {
        // RFC 4217 section 10.2: "The reply to indicate that the PROT setting is incorrect is '521
        // data connection cannot be opened with this PROT setting'".
        steps.push(json!({"label": "unprotected"}));
        send_line(&mut steps, "521 Data connections are opened after PROT P");
        steps.push(json!({"jump": "next"}));
    }
    steps.extend([
        json!({"label": "no port"}),
        json!({"send": "425 First EPSV or PASV\r\n"}),
        json!({"jump": "next"}),
        json!({"label": "transfer"}),
        json!({"send": "150 Here it comes\r\n"}),
        json!("accept_flow"),
        json!({"set": {"port": 0}}),
        json!({"send": "226 All of it is through\r\n"}),
        json!({"jump": "next"}),
        json!({"label": "quit"}),
        json!({"send": "221 Goodbye\r\n"}),
    ]);
    steps
}

/// Returns the reply to FEAT (RFC 2389).
const fn features(has_tls: bool) -> &'static str {
    match has_tls {
        false => "211-Features:\r\n EPSV\r\n MDTM\r\n PASV\r\n SIZE\r\n211 End",
        true => {
            "211-Features:\r\n AUTH TLS\r\n EPSV\r\n MDTM\r\n PASV\r\n PBSZ\r\n PROT\r\n SIZE\r\n\
             211 End"
        }
    }
}

/// Returns the server's command loop before TLS. It accepts no login, so that no client sends a
/// password in clear text. RFC 4217 section 4.2: "'234' is the server response to an 'AUTH TLS'
/// command that it will honour."
fn before_tls(wait: Option<Value>) -> Vec<Value> {
    let mut commands = CommandLoop::lines("clear");
    let begin = [json!({"send": "234 TLS may begin\r\n"}), json!("start_tls")];
    // Some clients send SSL for TLS.
    commands
        .command(r"^AUTH (?:TLS|TLS-C|SSL)\r", [&begin[..], &[json!({"jump": "next"})]].concat());
    commands.reply("^AUTH ", vec![], "504 TLS alone is known");
    commands.reply("^FEAT", vec![], features(true));
    commands.reply("^NOOP", vec![], "200 OK");
    commands.command(r"^QUIT\r", vec![json!({"jump": "quit"})]);
    commands.finish(wait, "530 First AUTH TLS")
}

/// Adds the commands of data protection. The server requires TLS for all transfers.
///
/// - RFC 4217 section 10.2: the server may "Insist on data protection (in which case the PROT
///   command must be issued prior to the first attempted data transfer)".
/// - RFC 2228 section 3: "The PROT command will be rejected and the server should reply 503 if no
///   previous PBSZ command was issued."
/// - RFC 2228 section 5.1: "534 Request denied for policy reasons", "536 Requested PROT level not
///   supported by mechanism".
/// - RFC 4217 section 5: a server that "does not wish to allow the control connection to be
///   cleared" answers CCC with 534.
fn protect(commands: &mut CommandLoop) {
    commands.reply("^PBSZ ", vec![json!({"set": {"sized": 1}})], "200 PBSZ=0");
    let mut accept = vec![
        json!({"jump": {"to": "unsized", "variable": "sized", "equal": 0}}),
        json!({"set": {"protected": 1}}),
    ];
    send_line(&mut accept, "200 Data connections have TLS");
    accept.extend([json!({"jump": "next"}), json!({"label": "unsized"})]);
    commands.reply(r"^PROT P\r", accept, "503 First PBSZ 0");
    commands.reply(r"^PROT C\r", vec![], "534 Data connections have TLS, or there are none");
    commands.reply(r"^PROT [SE]\r", vec![], "536 TLS has the level P alone");
    commands.reply("^PROT ", vec![], "504 There is no such level");
    commands.reply("^CCC", vec![], "534 Commands stay protected");
    commands.reply("^AUTH ", vec![], "503 TLS has begun");
}

/// Returns a pattern that matches exactly this text.
fn literal(text: &str) -> String {
    let escaped = text.chars().flat_map(|it| {
        let is_special = it.is_ascii_punctuation();
        is_special.then_some('\\').into_iter().chain([it])
    });
    escaped.collect()
}
