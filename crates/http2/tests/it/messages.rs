//! Messages between a client and a server session that are connected without a network.

use std::net::{IpAddr, Ipv4Addr};

use wirestorm_http2::{Http2Clients, Http2Servers, Http2Settings};
use wirestorm_stack::content::{MessageCounters, Session, SessionFactory, SessionState};

use crate::peer::{receive, send, sent};

const PEER: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const LOCAL: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));

/// Both sessions and the data that their programs have received.
struct Pair {
    ends: [Box<dyn Session>; 2],
    received: [String; 2],
    /// Maximum number of bytes carried at once.
    segment: usize,
}

const CLIENT: usize = 0;
const SERVER: usize = 1;

impl Pair {
    fn new(settings: [Http2Settings; 2], segment: usize) -> Self {
        let ends = [
            Http2Clients::new(None, settings[0]).begin(LOCAL, PEER),
            Http2Servers::new(None, settings[1]).begin(LOCAL, PEER),
        ];
        let mut pair = Self { ends, received: Default::default(), segment };
        pair.carry();
        pair
    }

    /// Carries bytes until neither side has any; returns whether it carried some.
    fn carry(&mut self) -> bool {
        let mut any = false;
        loop {
            let mut quiet = true;
            for from in [CLIENT, SERVER] {
                let bytes = sent(self.ends[from].as_mut());
                for segment in bytes.chunks(self.segment) {
                    quiet = false;
                    self.received[1 - from]
                        .push_str(&receive(self.ends[1 - from].as_mut(), segment));
                }
            }
            if quiet {
                return any;
            }
            any = true;
        }
    }

    /// Sends a text from one side as flow control permits.
    fn send(&mut self, who: usize, text: &str) {
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            let taken = self.ends[who].send_data(rest);
            rest = &rest[taken..];
            assert!(self.carry() || taken > 0, "{} bytes are stuck", rest.len());
        }
        self.carry();
    }

    fn take(&mut self, who: usize) -> String {
        std::mem::take(&mut self.received[who])
    }

    #[track_caller]
    fn assert_open(&self) {
        assert_eq!(self.ends.each_ref().map(|end| end.state()), [SessionState::Open; 2]);
    }
}

fn pair() -> Pair {
    Pair::new([Http2Settings::default(); 2], 1_000)
}

#[test]
fn messages_arrive_as_sent_for_any_segment_length() {
    for segment in [1, 7, 1_000] {
        let mut pair = Pair::new([Http2Settings::default(); 2], segment);
        for round in 0..3 {
            pair.send(
                CLIENT,
                "POST /form?a=1 HTTP/1.1\r\nHost: a.test:8080\r\nX-Own: yes\r\n\
                 Connection: keep-alive\r\nContent-Length: 5\r\n\r\nhello",
            );
            let expected = "POST /form?a=1 HTTP/1.1\r\nhost: a.test:8080\r\nx-own: yes\r\n\
                            content-length: 5\r\n\r\nhello";
            assert_eq!(pair.take(SERVER), expected, "round {round} by {segment}");
            pair.send(SERVER, "HTTP/1.1 404 Nowhere\r\nContent-Length: 2\r\n\r\nno");
            let expected = "HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\nno";
            assert_eq!(pair.take(CLIENT), expected);
        }
        pair.assert_open();
        let responses = [0, 0, 0, 3, 0];
        for end in &mut pair.ends {
            let counted = MessageCounters { requests: 3, responses, ..MessageCounters::default() };
            assert_eq!(end.take_messages(), counted);
            assert_eq!(end.take_messages(), MessageCounters::default());
        }
    }
}

#[test]
fn bodies_are_delimited_as_in_http_1() {
    let request = |method: &str| format!("{method} / HTTP/1.1\r\nHost: a\r\n\r\n");
    let get = "GET / HTTP/1.1\r\nhost: a\r\n\r\n";
    for (method, response, expected) in [
        ("GET", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "content-length: 0\r\n\r\n"),
        ("GET", "HTTP/1.1 204 No Content\r\n\r\n", "HTTP/1.1 204 No Content\r\n\r\n"),
        (
            "GET",
            "HTTP/1.1 304 Not Modified\r\nETag: 1\r\nContent-Length: 9\r\n\r\n",
            "HTTP/1.1 304 Not Modified\r\netag: 1\r\ncontent-length: 9\r\n\r\n",
        ),
        // A program cannot know that a response to HEAD has no body.
        ("HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", "content-length: 0\r\n\r\n"),
        // Some programs send a body in response to HEAD.
        ("HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\na\nb\n", "content-length: 0\r\n\r\n"),
        (
            "GET",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nab\r\n3\r\ncde\r\n0\r\nT: 1\r\n\r\n",
            "transfer-encoding: chunked\r\n\r\n2\r\nab\r\n3\r\ncde\r\n0\r\n\r\n",
        ),
        (
            "GET",
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
            "HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nx",
        ),
    ] {
        let mut pair = pair();
        pair.send(CLIENT, &request(method));
        assert!(pair.take(SERVER).ends_with(&get[3..]));
        pair.send(SERVER, response);
        let received = pair.take(CLIENT);
        assert!(received.ends_with(expected), "{response}: {received:?}");
        // The next request is unaffected.
        pair.send(CLIENT, &request("GET"));
        assert_eq!(pair.take(SERVER), get);
        pair.send(SERVER, "HTTP/1.1 204 No Content\r\n\r\n");
        assert_eq!(pair.take(CLIENT), "HTTP/1.1 204 No Content\r\n\r\n", "behind {response}");
        pair.assert_open();
    }
    // A body without a length ends when the program closes.
    let mut pair = pair();
    pair.send(CLIENT, &request("GET"));
    pair.send(SERVER, "HTTP/1.1 200 OK\r\n\r\nall");
    pair.ends[SERVER].close();
    pair.carry();
    let expected = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nall\r\n0\r\n\r\n";
    assert_eq!(pair.take(CLIENT), expected);
}

#[test]
fn request_body_may_be_chunked() {
    let mut pair = pair();
    pair.send(
        CLIENT,
        "PUT /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    );
    let expected =
        "PUT /a HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    assert_eq!(pair.take(SERVER), expected);
}

#[test]
fn long_bodies_respect_flow_control() {
    let small = Http2Settings { window: 1_000, ..Http2Settings::default() };
    for settings in [small, Http2Settings::default()] {
        let mut pair = Pair::new([settings; 2], 1_460);
        let body: String = (0..300_000).map(|at| char::from(b'a' + (at % 23) as u8)).collect();
        let head = format!("Content-Length: {}\r\n\r\n", body.len());
        pair.send(CLIENT, &format!("POST / HTTP/1.1\r\nHost: a\r\n{head}{body}"));
        assert!(pair.take(SERVER).ends_with(&format!("\r\n\r\n{body}")));
        pair.send(SERVER, &format!("HTTP/1.1 200 OK\r\n{head}{body}"));
        assert!(pair.take(CLIENT).ends_with(&format!("\r\n\r\n{body}")));
        pair.assert_open();
    }
}

#[test]
fn pipelined_requests_open_concurrent_streams_up_to_the_limit() {
    let request = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let expected_request = "GET / HTTP/1.1\r\nhost: a\r\n\r\n";
    let response = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n";
    let of = |streams| Http2Settings { streams, ..Http2Settings::default() };
    for (client_streams, server_streams, at_once) in [(100, 100, 20), (4, 100, 4), (100, 4, 4)] {
        let mut pair = Pair::new([of(client_streams), of(server_streams)], 1_000);
        // Beyond the limit, the session takes at most two more requests.
        let requests = request.repeat(20);
        let taken = pair.ends[CLIENT].send_data(requests.as_bytes());
        pair.carry();
        let most = requests.len().min(request.len() * (at_once + 2));
        assert!((request.len() * at_once..=most).contains(&taken), "{taken} of {most}");
        assert_eq!(pair.take(SERVER), expected_request.repeat(at_once));
        let mut rest = &requests[taken..];
        for answered in 0..20 {
            let expected = if answered + at_once < 20 { expected_request } else { "" };
            pair.send(SERVER, &format!("{response}{}", answered % 10));
            let taken = pair.ends[CLIENT].send_data(rest.as_bytes());
            rest = &rest[taken..];
            pair.carry();
            assert_eq!(pair.take(SERVER), expected, "{client_streams} {server_streams} {answered}");
            assert!(pair.take(CLIENT).ends_with(&format!("\r\n\r\n{}", answered % 10)));
        }
        pair.assert_open();
    }
}

#[test]
fn peer_sees_the_close_of_either_side() {
    for who in [CLIENT, SERVER] {
        let mut pair = pair();
        pair.send(CLIENT, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        pair.send(SERVER, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx");
        pair.ends[who].close();
        pair.carry();
        assert_eq!(pair.ends[1 - who].state(), SessionState::PeerClosed);
        pair.ends[1 - who].close();
        pair.carry();
        assert_eq!(pair.take(CLIENT).len(), 39);
    }
}

#[test]
fn invalid_program_data_fails_with_a_cause() {
    let server = || Http2Servers::new(None, Http2Settings::default()).begin(LOCAL, PEER);
    let client = || Http2Clients::new(None, Http2Settings::default()).begin(LOCAL, PEER);
    let message = "http2: the program's data is not an HTTP/1 message";
    let request = "http2: the program's message is not a request with a Host";
    for (mut session, input, expected) in [
        (client(), "hello\r\n\r\n".to_owned(), message),
        (client(), "GET / HTTP/1.1\r\nno field\r\n\r\n".to_owned(), message),
        (client(), "x".repeat(70_000), message),
        (client(), "GET / HTTP/1.1\r\n\r\n".to_owned(), request),
        (client(), "GET / HTTP/1.1\r\nHost: a b\r\n\r\n".to_owned(), request),
        (
            client(),
            "PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n".to_owned(),
            message,
        ),
        (
            client(),
            "GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n".to_owned(),
            message,
        ),
        (client(), "GET / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n".to_owned(), message),
        (client(), format!("GET / HTTP/1.1\r\n{}", "a: b\r\n".repeat(12_000)), message),
        (client(), "HTTP/1.1 200 OK\r\n\r\n".to_owned(), request),
        (
            server(),
            "HTTP/1.1 200 OK\r\n\r\n".to_owned(),
            "http2: the program responds without a request",
        ),
    ] {
        session.send_data(input.as_bytes());
        assert_eq!(session.state(), SessionState::Failed(expected), "{input}");
    }
}

#[test]
fn session_sends_nothing_before_a_head_is_complete() {
    // The sessions send only the preface and SETTINGS before the programs send anything.
    let mut pair = pair();
    assert!(!pair.carry());
    send(pair.ends[CLIENT].as_mut(), "GET / HT");
    assert!(!pair.carry());
}
