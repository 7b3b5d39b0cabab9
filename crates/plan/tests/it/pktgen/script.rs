//! Scripts, parsed without a shell.

use wirestorm_plan::pktgen::{Action, Script, Step};

use super::machine;

fn writes(text: &str) -> Vec<(usize, String, String)> {
    let script = Script::parse(text);
    assert_eq!(script.unsupported, [], "{text}");
    let writes = script.steps.into_iter().map(|Step { line, action }| match action {
        Action::Write { file, text } => (line, file, text),
        Action::Show { file } => (line, file, "(shown)".to_owned()),
    });
    writes.collect()
}

fn write(line: usize, file: &str, text: &str) -> (usize, String, String) {
    (line, file.to_owned(), text.to_owned())
}

const SCRIPT: &str = r#"#! /bin/sh

#modprobe pktgen

function pgset() {
    local result

    echo ${1} > $PGDEV

    result=`cat $PGDEV | fgrep "Result: OK:"`
    if [ "$result" = "" ]; then
         cat $PGDEV | fgrep Result:
    fi
}

# One CPU means one thread.
PGDEV=/proc/net/pktgen/kpktgend_0
  echo "Removing all devices"
 pgset "rem_device_all"
 pgset "add_device eth0"

COUNT="count 10000000"   # 0 means for ever
SIZE=60
PGDEV=/proc/net/pktgen/eth0
  echo "Configuring $PGDEV"
 pgset "$COUNT"
 pgset "pkt_size ${SIZE}"
 pgset 'dst 198.51.100.1'; pgset "dst_mac  02:00:00:00:00:0b"

PGDEV=/proc/net/pktgen/pgctrl
 trap true INT
 pgset "start"
 cat /proc/net/pktgen/eth0
"#;

#[test]
fn parses_a_typical_script() {
    assert_eq!(
        writes(SCRIPT),
        [
            write(19, "kpktgend_0", "rem_device_all"),
            write(20, "kpktgend_0", "add_device eth0"),
            write(26, "eth0", "count 10000000"),
            write(27, "eth0", "pkt_size 60"),
            write(28, "eth0", "dst 198.51.100.1"),
            write(28, "eth0", "dst_mac  02:00:00:00:00:0b"),
            write(32, "pgctrl", "start"),
            write(33, "eth0", "(shown)"),
        ]
    );
}

#[test]
fn a_parsed_script_configures_devices() {
    let mut pktgen = machine();
    for (_, file, text) in writes(SCRIPT) {
        if text != "(shown)" {
            pktgen.write(&file, &format!("{text}\n")).expect("a command that is taken");
        }
    }
    let shown = pktgen.show("eth0").expect("a file");
    assert!(shown.starts_with("Params: count 10000000  min_pkt_size: 60 "), "{shown}");
    assert!(shown.contains("dst_mac: 02:00:00:00:00:0b\n"), "{shown}");
}

#[test]
fn parses_the_functions_of_the_kernel_samples() {
    let script = "\
DEV=eth0
pg_ctrl \"reset\"
pg_thread 0 \"add_device\" ${DEV}@0
pg_set $DEV@0 \"flag QUEUE_MAP_CPU\"
pg_ctrl start
";
    assert_eq!(
        writes(script),
        [
            write(2, "pgctrl", "reset"),
            write(3, "kpktgend_0", "add_device eth0@0"),
            write(4, "eth0@0", "flag QUEUE_MAP_CPU"),
            write(5, "pgctrl", "start"),
        ]
    );
}

#[test]
fn echo_with_a_redirection_writes_to_the_file() {
    let script = "\
echo \"add_device eth0\" > /proc/net/pktgen/kpktgend_0
echo count 0 >/proc/net/pktgen/eth0
echo -n 'a # b; c' >> /proc/net/pktgen/eth0
echo dst\\_mac 1> \"/proc/net/pktgen/eth0\"
";
    assert_eq!(
        writes(script),
        [
            write(1, "kpktgend_0", "add_device eth0"),
            write(2, "eth0", "count 0"),
            write(3, "eth0", "a # b; c"),
            write(4, "eth0", "dst_mac"),
        ]
    );
}

#[test]
fn unquoted_values_split_into_words_as_in_a_shell() {
    let script = "\
PGDEV=/proc/net/pktgen/eth0
COUNT=\"count 5\"
pgset $COUNT
BOTH=$COUNT
pgset \"$BOTH\"
export EMPTY=
pgset \"delay $EMPTY\"
";
    assert_eq!(
        writes(script),
        [write(3, "eth0", "count"), write(5, "eth0", "count 5"), write(7, "eth0", "delay ")]
    );
}

#[test]
fn exit_ends_the_script() {
    assert_eq!(writes("pg_ctrl start\nexit 0; pg_ctrl stop\nfor"), [write(1, "pgctrl", "start")]);
}

#[test]
fn unsupported_lines_have_their_number_and_reason() {
    let cases = [
        ("for i in 1 2; do", "line 1: for i in 1 2; do: \"for\" needs a shell"),
        ("\n\nCPUS=`ls /proc`", "line 3: CPUS=`ls /proc`: command substitution needs a shell"),
        ("A=$(ls)", "line 1: A=$(ls): only the expansions $NAME and ${NAME} are supported"),
        ("A=${B:-1}", "line 1: A=${B:-1}: only the expansions $NAME"),
        ("pgset $1", "line 1: pgset $1: only the expansions $NAME"),
        ("pgset \"$COUNT\"", "line 1: pgset \"$COUNT\": $COUNT is not set"),
        ("pgset start", "line 1: pgset start: expected PGDEV to be a file of /proc/net/pktgen/"),
        ("pg_set eth0", "line 1: pg_set eth0: pg_set: expected a pktgen command after it"),
        ("pgset \"start", "line 1: pgset \"start: a quote that does not end on its line"),
        ("echo a | cat", "line 1: echo a | cat: '|' needs a shell"),
        ("echo a > /var/x", "line 1: echo a > /var/x: expected a file of /proc/net/pktgen/"),
        ("ls > /proc/net/pktgen/eth0", "line 1: ls > /proc/net/pktgen/eth0: ls: expected echo"),
        ("echo a > ", "line 1: echo a >: expected one file after >"),
        ("echo a \\", "line 1: echo a \\: a continued line needs a shell"),
        (
            "sleeping() {\n A=${1}\n sleep 1\n}",
            "line 1: sleeping() {: the function sleeping needs a shell",
        ),
        ("source ./functions.sh", "line 1: source ./functions.sh: \"source\" needs a shell"),
    ];
    for (text, expected) in cases {
        let script = Script::parse(text);
        assert_eq!(script.steps, [], "{text}");
        let [error] = &script.unsupported[..] else { panic!("{text}: {script:?}") };
        assert!(error.to_string().starts_with(expected), "{error}");
    }
}

#[test]
fn overlong_commands_and_scripts_are_unsupported() {
    let doubling = "A=0123456789abcdef\n".to_owned() + &"A=$A$A\n".repeat(40);
    let script = Script::parse(&doubling);
    assert_eq!(script.unsupported.len(), 33);
    assert!(script.unsupported[0].to_string().ends_with("a command of more than 4096 bytes"));
    let long = Script::parse(&"\n".repeat(20_000));
    assert!(long.unsupported[0].to_string().ends_with("more than 10000 lines"), "{long:?}");
}
