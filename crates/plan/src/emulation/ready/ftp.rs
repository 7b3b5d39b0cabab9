//! FTP: RFC 959, the control connection. No file is transferred, so that there is no data
//! connection.

use wirestorm_wire::conversation::Side;

use super::dialogue::Line;
use super::words::{wait, word};
use crate::document::error::PlanError;
use crate::document::place::Place;

pub(in crate::emulation) const FTP: [&str; 6] =
    ["host", "user", "password", "files", "rounds", "delay"];

pub(super) fn read(place: &Place<'_>) -> Result<Vec<Line>, PlanError> {
    let fields = place.fields(&FTP)?;
    let host = word(fields.get("host"), "ftp.example.net")?;
    let user = word(fields.get("user"), "anonymous")?;
    let password = word(fields.get("password"), "guest@example.net")?;
    let rounds = fields.get("rounds").map_or(Ok(1), |it| it.integer(1, 1 << 30))?;
    let files = match fields.get("files") {
        None => vec!["readme.txt".to_owned()],
        Some(list) => {
            let names = list.items("names of files")?.into_iter();
            names.map(|name| word(Some(name), "")).collect::<Result<Vec<_>, _>>()?
        }
    };
    let wait = wait(fields.get("delay"), Side::Server)?;
    let mut lines = Vec::new();
    let exchange = |lines: &mut Vec<Line>, command: Option<String>, reply: String| {
        lines.extend(command.map(|command| Line::client(format!("{command}\r\n"))));
        lines.extend(wait.clone());
        lines.push(Line::server(format!("{reply}\r\n")));
    };
    exchange(&mut lines, None, format!("220 {host} ready"));
    exchange(&mut lines, Some(format!("USER {user}")), "331 Password, please".to_owned());
    exchange(&mut lines, Some(format!("PASS {password}")), "230 Logged in".to_owned());
    exchange(&mut lines, Some("SYST".to_owned()), "215 UNIX Type: L8".to_owned());
    exchange(&mut lines, Some("TYPE I".to_owned()), "200 Type is I".to_owned());
    let mut asked = Vec::new();
    exchange(&mut asked, Some("PWD".to_owned()), "257 \"/\" is the directory".to_owned());
    for file in files {
        // RFC 3659: what a client asks before it fetches.
        exchange(&mut asked, Some(format!("SIZE {file}")), "213 1024".to_owned());
        exchange(&mut asked, Some(format!("MDTM {file}")), "213 20240101120000".to_owned());
    }
    match rounds {
        1 => lines.extend(asked),
        _ => lines.push(Line::Repeat { times: Some(rounds), lines: asked }),
    }
    exchange(&mut lines, Some("QUIT".to_owned()), "221 Goodbye".to_owned());
    lines.push(Line::Closes(Side::Server));
    Ok(lines)
}
