//! Writes sample reports to a directory, for a look at them and for the tests in a browser:
//! `cargo run -p wirestorm-report --example sample -- DIRECTORY`.

#![allow(missing_docs)]

mod data;
mod services;

use std::path::Path;

use wirestorm_report::limit::Limit;
use wirestorm_report::run::Run;
use wirestorm_report::{Options, Report};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = std::env::args().nth(1).ok_or("expected a directory")?;
    let directory = Path::new(&directory);
    std::fs::create_dir_all(directory)?;
    let limits = ["throughput[64]<5Mpps", "loss>0.001%", "p99.9>200us"].map(Limit::parse);
    let limits: Vec<Limit> = limits.into_iter().collect::<Result<_, _>>()?;
    let options = Options { title: None, limits };
    let plain = Options::default();

    let router = data::rfc2544("router-4.2.1", "lab router", "ipv4", 9.2e6);
    let slower = data::rfc2544("router-4.1.0", "lab router", "ipv4", 7.1e6);
    write(directory, "rfc2544", std::slice::from_ref(&router), &options)?;
    write(directory, "overlay", &[router, slower], &options)?;
    write(directory, "limited", &[data::tester_limited("fast")], &plain)?;
    write(directory, "mlrsearch", &[data::mlrsearch("goals")], &plain)?;
    write(directory, "streams", &[data::streams("streams", ["voice", "video"])], &options)?;
    write(directory, "two-machines", &[data::two_machines("two-hosts")], &plain)?;
    write(directory, "emulation", &[data::emulation("pages")], &plain)?;
    write(directory, "hostile", &[data::hostile(), data::hostile()], &options)?;
    let ndr = [services::ndr("ndr-4.2.1", 9.2e6), services::ndr("ndr-4.1.0", 7.1e6)];
    write(directory, "ndr", &ndr[..1], &plain)?;
    write(directory, "ndr-overlay", &ndr, &plain)?;
    write(directory, "ndr-connections", &[services::ndr_connections("nat", 62_000.0)], &plain)?;
    write(directory, "collector", &[services::collector("collector")], &plain)?;
    write(directory, "y1564", &[services::y1564("services")], &plain)?;
    let firewall = [services::rfc9411("http", false), services::rfc9411("https", true)];
    write(directory, "rfc9411", &firewall[..1], &plain)?;
    write(directory, "rfc9411-overlay", &firewall, &plain)?;
    write(directory, "flow-export", &[data::flow_export("exporter")], &plain)?;
    Ok(())
}

fn write(directory: &Path, name: &str, runs: &[Run], options: &Options) -> std::io::Result<()> {
    let report = Report::new(runs, options);
    let file = |extension: &str| directory.join(name).with_extension(extension);
    std::fs::write(file("html"), report.html())?;
    std::fs::write(file("md"), report.markdown())?;
    std::fs::write(file("xml"), report.junit())?;
    std::fs::write(file("json"), report.json())
}
