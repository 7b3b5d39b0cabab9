//! Two agents with a router between them that drops frames.

use wirestorm_e2e::can_run;
use wirestorm_testkit::net::{End, LabOptions, RouterLab};

use super::Cluster;

/// Two agents with a router between them that drops frames above a rate.
pub(super) struct PolicedPath {
    pub(super) cluster: Cluster,
    lab: RouterLab,
}

impl PolicedPath {
    /// Starts the agents; `None` if the machine does not allow it. `burst`: frames that pass at once.
    pub(super) fn start(rate: u32, burst: u32) -> Option<Self> {
        if !can_run(&["nft"]) {
            return None;
        }
        let cluster = Cluster::start(&[])?;
        let options = LabOptions { gro: [true; 2], ..LabOptions::default() };
        let lab = RouterLab::with(&options).unwrap();
        for rule in [
            "add table ip policer".to_owned(),
            "add chain ip policer rules { type filter hook forward priority 0 ; }".to_owned(),
            format!(
                "add rule ip policer rules udp dport 7 limit rate over {rate}/second burst {burst} \
                 packets drop"
            ),
        ] {
            assert!(lab.router_a.command("nft").arg(&rule).status().unwrap().success(), "{rule}");
        }
        Some(Self { cluster, lab })
    }

    /// Writes a test with a method on the path.
    pub(super) fn bench(&self, method: &str) -> String {
        let fields = |end: &End, router: &End| {
            let [x, y, z, _] = end.ipv4().octets();
            format!(", addresses: [{x}.{y}.{z}.77/24], gateway: {}", router.ipv4())
        };
        let lab = &self.lab;
        let [left, right] = [fields(&lab.a, &lab.router_a), fields(&lab.b, &lab.router_b)];
        let [a, b] = [lab.a.port(), lab.b.port()];
        self.cluster.nodes.bench([&a, &b], [&left, &right], method)
    }
}

#[test]
fn loss_of_a_port_is_that_of_the_flow_to_it() {
    let Some(path) = PolicedPath::start(500, 50) else { return };
    let lab = &path.lab;
    let mac = |end: &End| end.mac().map(|byte| format!("{byte:02x}")).join(":");
    let flow = |[tx, rx]: [&str; 2], end: &End, router: &End, to: &End| {
        format!(
            "
        - name: to_{rx}
          tx: {tx}
          rx: {rx}
          size: 128
          rate: 4kpps
          metrics: {{enable: true}}
          packet:
            - ethernet: {{src: '{}', dst: '{}'}}
            - ipv4: {{src: {}, dst: {}}}
            - udp: {{dst_port: 7}}",
            mac(end),
            mac(router),
            end.ipv4(),
            to.ipv4()
        )
    };
    let text = format!(
        "
nodes: [tx, rx]
ports:
  - {{name: left, node: tx, interface: '{}'}}
  - {{name: right, node: rx, interface: '{}'}}
runs:
  - name: flows
    streams:
      flows:{}{}
    options: {{force_interface: true}}
duration: 250ms
drain: 200ms
iterations: 2",
        lab.a.port(),
        lab.b.port(),
        flow(["left", "right"], &lab.a, &lab.router_a, &lab.b),
        flow(["right", "left"], &lab.b, &lab.router_b, &lab.a),
    );
    let test = path.cluster.nodes.scratch.file("loss.yaml");
    std::fs::write(&test, text).unwrap();
    let outcome = path.cluster.test(&test.display().to_string(), &[]).wait().expect(3);
    for iteration in 0..2 {
        let number =
            |value: &str| outcome.number(&format!("/iterations/{iteration}/runs/0/result/{value}"));
        for (port, flow) in [(0, 1), (1, 0)] {
            let lost = number(&format!("ports/{port}/rx/lost"));
            assert!(lost > 500, "{lost}: {outcome}");
            assert_eq!(number(&format!("flows/{flow}/lost")), lost, "{outcome}");
            assert_eq!(number(&format!("flows/{flow}/packets")), 1_000, "{outcome}");
        }
    }
}
