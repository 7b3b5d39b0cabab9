use super::*;
use wirestorm_model::impairment::Probability;

#[test]
fn tls_settings_are_parsed() {
    let with = |tls: &str| {
        let plan = EmulationPlan::parse(&format!("{PAGE}    tls: {tls}\n"));
        plan.map(|plan| plan.templates[0].tls.clone())
    };
    assert_eq!(with("true").unwrap(), Some(Tls::default()));
    assert_eq!(with("{}").unwrap(), Some(Tls::default()));
    assert_eq!(with("false").unwrap(), None);
    let resumed = |share: &str| {
        with(&format!("{{resume: {share}}}")).map(|tls| tls.map(|tls| tls.resume.billionths()))
    };
    for (share, billionths) in
        [("true", 1_000_000_000), ("false", 0), ("0%", 0), ("12.5%", 125_000_000)]
    {
        assert_eq!(resumed(share).unwrap(), Some(billionths), "{share}");
    }
    let all = "{versions: [1.2, \"1.3\"], sni: pages.test, alpn: [h2, http/1.1], resume: false, \
               ciphers: [TLS_AES_128_GCM_SHA256], certificate: a.pem, key: a.key, ca: ca.pem, \
               client_certificate: b.pem, client_key: b.key, client_ca: cb.pem}";
    let expected = Tls {
        versions: vec![TlsVersion::Tls12, TlsVersion::Tls13],
        sni: Some("pages.test".into()),
        alpn: vec!["h2".into(), "http/1.1".into()],
        ciphers: vec!["TLS_AES_128_GCM_SHA256".into()],
        identity: Some(TlsFiles { certificate: "a.pem".into(), key: "a.key".into() }),
        client_identity: Some(TlsFiles { certificate: "b.pem".into(), key: "b.key".into() }),
        client_ca: Some("cb.pem".into()),
        ca: Some("ca.pem".into()),
        resume: Probability::NONE,
    };
    assert_eq!(with(all).unwrap(), Some(expected));
    for (tls, expected) in [
        ("yes please", "templates[0].tls: found \"yes please\", expected fields: versions, sni"),
        (
            "{version: [1.2]}",
            "templates[0].tls.version: found an unknown field, expected versions?",
        ),
        ("{versions: [1.1]}", "templates[0].tls.versions[0]: found 1.1, expected 1.2 or 1.3"),
        ("{versions: []}", "expected a list of versions, 1.2 and 1.3"),
        ("{alpn: h2}", "tls.alpn: found \"h2\", expected a list of protocols such as http/1.1"),
        ("{ciphers: [3]}", "tls.ciphers[0]: found 3, expected a cipher suite such as"),
        ("{key: a.key}", "templates[0].tls: found key alone, expected certificate as well"),
        ("{certificate: a}", "templates[0].tls: found certificate alone, expected key as well"),
        ("{client_key: a}", "tls: found client_key alone, expected client_certificate as well"),
        ("{client_ca: 5}", "templates[0].tls.client_ca: found 5, expected the name of a file"),
        (
            "{resume: 1}",
            "templates[0].tls.resume: found 1, expected true, false, or a share of connections \
             such as 30%",
        ),
        ("{resume: 101%}", "templates[0].tls.resume: found \"101%\", expected true, false, or"),
        ("{sni: \"\"}", "tls.sni: found \"\", expected a host's name"),
    ] {
        let error = with(tls).unwrap_err().to_string();
        assert!(error.contains(expected), "{tls}: {error}");
    }
}

#[test]
fn http2_settings_are_parsed() {
    let with = |fields: &str| {
        let plan = EmulationPlan::parse(&format!("{PAGE}{fields}"));
        plan.map(|plan| (plan.templates[0].http2, plan.templates[0].tls.clone()))
    };
    let usual = Http2::default();
    assert_eq!(with("    http2: true\n").unwrap(), (Some(usual), None));
    assert_eq!(with("    http2: false\n").unwrap(), (None, None));
    assert_eq!(with("    tls: true\n").unwrap().1.unwrap().alpn, Vec::<String>::new());
    // ALPN negotiates it over TLS.
    let (http2, tls) =
        with("    http2: {max_concurrent_streams: 8, initial_window_size: 65535}\n    tls: true\n")
            .unwrap();
    assert_eq!(http2, Some(Http2 { streams: 8, window: 65_535 }));
    assert_eq!(tls.unwrap().alpn, ["h2"]);
    let (_, tls) = with("    http2: true\n    tls: {alpn: [h2, http/1.1]}\n").unwrap();
    assert_eq!(tls.unwrap().alpn, ["h2", "http/1.1"]);
    for (fields, expected) in [
        ("    http2: yes please\n", "templates[0].http2: found \"yes please\", expected fields"),
        (
            "    http2: {max_concurrent_stream: 1}\n",
            "http2.max_concurrent_stream: found an unknown field, expected max_concurrent_streams?",
        ),
        (
            "    http2: {max_concurrent_streams: 0}\n",
            "templates[0].http2.max_concurrent_streams: found 0, expected a whole number",
        ),
        (
            "    http2: {initial_window_size: 99999999}\n",
            "templates[0].http2.initial_window_size: found 99999999, expected",
        ),
        (
            "    http2: true\n    tls: {alpn: [http/1.1, spdy/3]}\n",
            "templates[0].tls.alpn: found http/1.1, spdy/3, expected h2 among them",
        ),
    ] {
        let error = with(fields).unwrap_err().to_string();
        assert!(error.contains(expected), "{fields}: {error}");
    }
}

#[test]
fn http2_needs_tcp_and_no_first_bytes_at_its_port() {
    let plan = |templates: &str| {
        EmulationPlan::parse(&format!("ports: [{{name: s}}]\ntemplates: [{templates}]"))
    };
    let looks = "{name: l, server: {tx: s, port: 80, first_bytes: abc, program: []}}";
    let server =
        |tls: &str| format!("{{name: h, server: {{tx: s, port: 80, program: []}}, {tls}}}");
    assert!(plan(&server("http2: true")).is_ok());
    let error = plan(&format!("{}, {looks}", server("http2: true"))).unwrap_err().to_string();
    let expected = "templates[0]: found HTTP/2 at port 80, where first_bytes select the server";
    assert!(error.contains(expected), "{error}");
    let error = plan(&server("transport: udp, http2: true")).unwrap_err().to_string();
    let expected = "templates[0].http2: found http2, expected the template's transport to be tcp";
    assert!(error.contains(expected), "{error}");
    for preset in ["http: {}", "smtp: {}"] {
        let error = plan(&format!("{{name: h, server: {{tx: s}}, {preset}, http2: true}}"));
        let expected = "templates[0].http2: is for http with version: 2, and for templates with";
        assert!(error.clone().unwrap_err().to_string().contains(expected), "{error:?}");
    }
    let error = plan("{name: h, server: {tx: s}, http: {version: 2}, http2: false}");
    let expected = "templates[0].http2: http has version: 2: remove this field";
    assert!(error.clone().unwrap_err().to_string().contains(expected), "{error:?}");
}

#[test]
fn tls_needs_tcp_and_no_first_bytes_at_its_port() {
    let server = |more: &str| {
        format!("{{name: a{}, server: {{tx: s, port: 443, program: []}}, {more}}}", more.len())
    };
    let plan = |templates: &str| {
        EmulationPlan::parse(&format!("ports: [{{name: s}}]\ntemplates: [{templates}]"))
    };
    let looks = "{name: b, server: {tx: s, port: 443, first_bytes: ab, program: []}}";
    assert!(plan(&server("tls: true")).is_ok());
    let error = plan(&format!("{}, {looks}", server("tls: true"))).unwrap_err().to_string();
    let expected = "templates[0].tls: found tls at port 443, where first_bytes select the server";
    assert!(error.contains(expected), "{error}");
    assert!(plan(&server("transport: udp, tls: false")).is_ok());
    let error = plan(&server("transport: udp, tls: true")).unwrap_err().to_string();
    let expected = "templates[0].tls: found tls, expected the template's transport to be tcp";
    assert!(error.contains(expected), "{error}");
}

/// A client and a server that start TLS during the connection.
const STARTING_TLS: &str = r#"
ports: [{name: c, addresses: 10.0.0.1/24}, {name: s}]
templates:
  - name: t
    tls: true
    client: {tx: c, servers: 10.0.1.1, load: {concurrent: 1}, program: [{send: s}, {receive: 1}, start_tls, {send: a}]}
    server: {tx: s, port: 25, program: [{receive: 1}, {send: g}, start_tls, {receive: 1}]}
"#;

#[test]
fn start_tls_is_checked_on_both_sides() {
    let plan = EmulationPlan::parse(STARTING_TLS).unwrap();
    let template = &plan.templates[0];
    assert_eq!(template.client.as_ref().unwrap().program[2], Step::StartTls);
    let path = "templates[0].client.program: start_tls: ";
    for (part, other, expected) in [
        ("    tls: true\n", "", "found no `tls` in the template, expected it, such as"),
        ("    tls: true\n", "    tls: true\n    http2: true\n", "found HTTP/2, which starts"),
        ("{receive: 1}, start_tls, {send: a}", "{receive_total: 1}, start_tls", "found a step `r"),
        ("{send: g}, start_tls", "{send: g}", "found none on the other side, where TLS starts"),
    ] {
        assert!(STARTING_TLS.contains(part), "{part}");
        let error = EmulationPlan::parse(&STARTING_TLS.replace(part, other)).unwrap_err();
        let error = error.to_string();
        assert!(error.starts_with(&format!("{path}{expected}")), "{error}\nexpected {expected}");
    }
    let udp = STARTING_TLS.replace("    tls: true\n", "    transport: udp\n");
    let error = EmulationPlan::parse(&udp).unwrap_err().to_string();
    assert!(error.contains("found a step for connections, but the template's"), "{error}");
}
