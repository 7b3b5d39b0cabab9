use super::*;

#[test]
fn timeout_bounds_are_checked_across_template_and_side() {
    let template_count = |both: &str, server: &str| {
        let text = PAGE.replace("{mss: 900}", server);
        let text = text.replace("congestion: new_reno", &format!("congestion: new_reno, {both}"));
        assert!(text.contains(both));
        EmulationPlan::parse(&text).map(|plan| plan.templates.len()).map_err(|it| it.to_string())
    };
    // The maximum of one level conflicts with the minimum or initial value of the other.
    for (both, server, expected) in [
        (
            "rto_min: 1s",
            "{rto_max: 500ms}",
            "templates[0].server.tcp.rto_max: found \"500ms\", expected at least rto_min, which is \
             1000ms",
        ),
        (
            "rto_max: 500ms",
            "{rto_min: 1s}",
            "templates[0].tcp.rto_max: found \"500ms\", expected at least rto_min, which is 1000ms",
        ),
        (
            "rto_initial: 2s",
            "{rto_max: 1s}",
            "templates[0].tcp.rto_initial: found \"2s\", expected at most rto_max, which is 1000ms",
        ),
        (
            "rto_max: 3s",
            "{rto_initial: 4s}",
            "templates[0].server.tcp.rto_initial: found \"4s\", expected at most rto_max, which is \
             3000ms",
        ),
    ] {
        let error = template_count(both, server).unwrap_err();
        assert_eq!(error.lines().next(), Some(expected));
    }
    assert_eq!(template_count("rto_max: 200ms", "{rto_min: 200ms}"), Ok(1));
    assert_eq!(template_count("rto_min: 5ms", "{rto_max: 10ms}"), Ok(1));
    assert_eq!(template_count("rto_max: 2s", "{rto_initial: 2s}"), Ok(1));
}

/// All TCP settings of a plan.
const ALL_TCP_SETTINGS: &str = "{mss: 10, initial_window: 4, receive_buffer: 65536, send_buffer: 20000, \
    window_scaling: true, window_scale: 5, timestamps: true, sack: true, rack: false, \
    dupack_threshold: 4, reassembly_max: 0, ecn: permit, no_delay: true, congestion: bbr, \
    rto_initial: 2s, rto_min: 1s, rto_max: 60s, retries: 3, syn_retries: 2, connect_timeout: 9s, \
    delayed_ack: 1ms, ack_after_bytes: 3000, fast_open: true, time_wait: 1s, keepalive: 2s, \
    keepalive_interval: 3s, keepalive_probes: 4, push_all: true}";
/// All IP settings of a plan.
const ALL_IP_SETTINGS: &str =
    "{ttl: 9, tos: 4, dont_fragment: false, identification: random, flow_label: flow}";

#[test]
fn all_of_tcp_and_ip_can_be_set_on_either_side() {
    let text = PAGE.replace("{mss: 900}", ALL_TCP_SETTINGS).replace(
        "      program:\n        - receive: 18",
        &format!("      ip: {ALL_IP_SETTINGS}\n      program:\n        - receive: 18"),
    );
    let plan = EmulationPlan::parse(&text).unwrap();
    let server = plan.templates[0].server.as_ref().unwrap();
    let tcp = Tcp {
        mss: Some(10),
        initial_window: Some(4),
        receive_buffer: Some(65_536),
        send_buffer: Some(20_000),
        window_scaling: Some(true),
        window_scale: Some(5),
        timestamps: Some(true),
        sack: Some(true),
        rack: Some(false),
        dupack_threshold: Some(4),
        reassembly_max: Some(0),
        ecn: Some(EcnMode::Accept),
        no_delay: Some(true),
        congestion: Some(Algorithm::Bbr),
        rto_initial_ms: Some(2_000),
        rto_min_ms: Some(1_000),
        rto_max_ms: Some(60_000),
        retries: Some(3),
        syn_retries: Some(2),
        open_timeout_ms: Some(9_000),
        delayed_ack_ms: Some(1),
        ack_after_bytes: Some(3_000),
        fast_open: Some(true),
        time_wait_ms: Some(1_000),
        keepalive_ms: Some(2_000),
        keepalive_interval_ms: Some(3_000),
        keepalive_probes: Some(4),
        push_all: Some(true),
    };
    assert_eq!(server.tcp, tcp);
    // The settings of a side override those of the template.
    assert_eq!(tcp.or(plan.templates[0].client.as_ref().unwrap().tcp), tcp);
    assert_eq!(Tcp::default().or(tcp), tcp);
    let ip = Ip {
        ttl: Some(9),
        tos: Some(4),
        dont_fragment: Some(false),
        identification: Some(Identification::Random),
        flow_label: Some(FlowLabel::PerFlow),
    };
    assert_eq!((server.ip, Ip::default().or(ip)), (ip, ip));
}

#[test]
fn errors_in_tcp_and_ip_settings_have_their_path() {
    for (tcp, expected) in [
        ("mss: 9", "mss: found 9, expected a whole number from 10 to 65495"),
        ("receive_buffer: 1023", "receive_buffer: found 1023, expected a whole number from 1024"),
        ("send_buffer: 9", "send_buffer: found 9, expected a whole number from 1024"),
        ("window_scale: 15", "window_scale: found 15, expected a whole number from 0 to 14"),
        (
            "window_scaling: false, window_scale: 3",
            "window_scale: windows are not scaled (window_scaling: false): leave it out",
        ),
        ("dupack_threshold: 0", "dupack_threshold: found 0, expected"),
        ("reassembly_max: 1001", "reassembly_max: found 1001, expected"),
        ("ecn: maybe", "ecn: found \"maybe\", expected true, false, or permit"),
        ("ecn: 2", "ecn: found 2, expected true, false, or permit"),
        ("rto_initial: 0ms", "rto_initial: found \"0ms\", expected at least 1ms"),
        ("rto_min: 2h", "rto_min: found \"2h\", expected"),
        ("rto_max: 1500us", "rto_max: found \"1500us\", expected whole milliseconds"),
        (
            "rto_min: 2s, rto_max: 1s",
            "rto_max: found \"1s\", expected at least rto_min, which is 2000ms",
        ),
        (
            "rto_max: 199ms",
            "rto_max: found \"199ms\", expected at least rto_min, which is 200ms by default",
        ),
        ("retries: 256", "retries: found 256, expected a whole number from 0 to 255"),
        ("syn_retries: -1", "syn_retries: found -1, expected"),
        ("connect_timeout: soon", "connect_timeout: found \"soon\", expected"),
        ("ack_after_bytes: -1", "ack_after_bytes: found -1, expected"),
        ("keepalive_probes: 0", "keepalive_probes: found 0, expected"),
    ] {
        let error = error("{mss: 900}", &format!("{{{tcp}}}"));
        let expected = format!("templates[0].server.tcp.{expected}");
        assert!(error.starts_with(&expected), "{error}, not {expected}");
    }
    for (ip, expected) in [
        ("dont_fragment: 1", "dont_fragment: found 1, expected"),
        (
            "identification: none",
            "identification: found \"none\", expected zero, counting or random",
        ),
        ("flow_label: any", "flow_label: found \"any\", expected flow, or a whole number from 0"),
        (
            "flow_label: 1048576",
            "flow_label: found 1048576, expected flow, or a whole number from 0 to 1048575",
        ),
    ] {
        let error = error("tcp: {mss: 900}", &format!("ip: {{{ip}}}"));
        let expected = format!("templates[0].server.ip.{expected}");
        assert!(error.starts_with(&expected), "{error}, not {expected}");
    }
}

#[test]
fn tcp_settings_are_refused_for_udp() {
    let plan = |settings: [&str; 3]| {
        let [both, client, server] = settings;
        let text = format!(
            "ports: [{{name: c, addresses: 10.0.0.1/24}}, {{name: s}}]\ntemplates:\n  - name: t\n    \
             dns: {{}}{both}\n    client: {{tx: c, servers: 10.0.1.1, load: {{concurrent: 1}}{client}}}\n    \
             server: {{tx: s{server}}}\n"
        );
        EmulationPlan::parse(&text).map(drop).map_err(|errors| errors.to_string())
    };
    assert_eq!(plan(["", "", ""]), Ok(()));
    let tcp = ", tcp: {mss: 500}";
    for (settings, path) in [
        (["\n    tcp: {mss: 500}", "", ""], "tcp"),
        (["", tcp, ""], "client.tcp"),
        (["", "", tcp], "server.tcp"),
    ] {
        let expected = "found tcp, expected the template's transport to be tcp";
        assert_eq!(plan(settings), Err(format!("templates[0].{path}: {expected}")));
    }
}
