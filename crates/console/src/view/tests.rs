use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent};
use ratatui::style::Color;
use wirestorm_api::run::RunState;

use super::*;
use crate::model::tests::{busy, lists, model, page, press, run, server};
use crate::model::{Page, ServerUpdate, Update};
use crate::session::tests::port;

fn terminal(model: &Model, columns: u16, rows: u16) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
    terminal.draw(|frame| draw(frame, model)).unwrap();
    terminal
}

fn screen(model: &Model, columns: u16, rows: u16) -> Vec<String> {
    let terminal = terminal(model, columns, rows);
    let buffer = terminal.backend().buffer();
    let line = |y: u16| (0..columns).map(|x| buffer[(x, y)].symbol()).collect::<String>();
    (0..rows).map(|y| line(y).trim_end().to_owned()).collect()
}

/// Returns the cells of the row of the dashboard with a name.
fn row(screen: &[String], name: &str) -> Vec<String> {
    let line = screen.iter().find(|line| line.starts_with(&format!("{name} ")));
    let line = line.unwrap_or_else(|| panic!("no row {name}: {screen:#?}"));
    line[name.len()..]
        .split("  ")
        .map(str::trim)
        .filter(|it| !it.is_empty())
        .map(str::to_owned)
        .collect()
}

#[test]
fn dashboard_has_rates_counters_and_graphs_at_80_by_24() {
    let screen = screen(&busy(), 80, 24);
    assert!(screen[0].contains("http://127.0.0.1:9410 as ada"), "{screen:#?}");
    assert!(screen[0].ends_with("1 active"), "{screen:#?}");
    assert_eq!(row(&screen, "owner"), ["ada", "-"]);
    assert_eq!(row(&screen, "link"), ["up", "up"]);
    assert_eq!(row(&screen, "runs"), ["running", "running", "1"]);
    assert_eq!(row(&screen, "tx rate"), ["1.50 kpps", "0 pps", "1.50 kpps"]);
    assert_eq!(row(&screen, "tx L1"), ["1.01 Mb/s", "0 b/s", "1.01 Mb/s"]);
    assert_eq!(row(&screen, "rx rate"), ["0 pps", "1.50 kpps", "1.50 kpps"]);
    assert_eq!(row(&screen, "tx frames"), ["6,000", "0", "6,000"]);
    assert_eq!(row(&screen, "tx graph"), ["████"]);
    assert!(screen.iter().any(|line| line.contains("0 left")), "{screen:#?}");
    assert!(screen[22].contains("d dashboard") && screen[22].contains("h help"), "{screen:#?}");
    assert!(screen[23].starts_with(": command") && screen[23].ends_with("q quit"), "{screen:#?}");
}

#[test]
fn higher_terminal_has_more_rows_and_a_lower_one_keeps_the_important_ones() {
    let all = screen(&busy(), 120, 40);
    for name in ["speed", "tx L2", "rx bytes", "tx load", "rx dropped"] {
        row(&all, name);
    }
    let few = screen(&busy(), 80, 20);
    for name in ["owner", "link", "tx rate", "rx rate", "tx frames"] {
        row(&few, name);
    }
    assert!(!few.iter().any(|line| line.starts_with("speed ")), "{few:#?}");
}

#[test]
fn ports_without_room_scroll() {
    let mut model = busy();
    model.ports = (0..12).map(|it| port(&format!("p{it}"), &format!("eth{it}"))).collect();
    let first = screen(&model, 80, 24);
    assert!(first[1].contains("ports 1 to 3 of 12"), "{first:#?}");
    assert!(first[2].contains("0 p0") && first[2].ends_with("all"), "{first:#?}");
    model.offset = 11;
    let last = screen(&model, 80, 24);
    assert!(last[1].contains("ports 10 to 12 of 12"), "{last:#?}");
    press(&mut model, "5");
    assert!(screen(&model, 80, 24)[1].contains("1 hidden (a shows all)"));
}

#[test]
fn every_view_fits_every_size() {
    let mut model = busy();
    let runs =
        (0..50).map(|it| run(&format!("2026-01-01T00-00-{it:02}-streams"), RunState::Finished));
    server(&mut model, lists(page(runs.collect())));
    let flows = crate::traffic::tests::measured((0..70).map(|it| format!("flow {it}")));
    server(&mut model, ServerUpdate::Progress("first".into(), flows));
    let histograms = std::iter::once((View::Latency, true));
    for (view, with_histograms) in
        View::ALL.map(|(view, ..)| (view, false)).into_iter().chain(histograms)
    {
        model.view = view;
        model.with_histograms = with_histograms;
        for (columns, rows) in [(80, 24), (120, 40), (40, 12), (200, 60), (41, 200), (300, 12)] {
            let screen = screen(&model, columns, rows);
            let title = screen[1].trim_start_matches(['─', ' ']).to_lowercase();
            let name = View::ALL.iter().find(|(it, ..)| *it == view).unwrap().2.to_lowercase();
            assert!(title.starts_with(&name), "{view:?} at {columns}x{rows}: {screen:#?}");
            let is_histogram = title.starts_with("latency histogram");
            assert_eq!(is_histogram, with_histograms, "{screen:#?}");
        }
        for (columns, rows) in [(39, 24), (80, 11), (1, 1), (5, 2)] {
            screen(&model, columns, rows);
        }
    }
    assert!(screen(&model, 30, 5).join(" ").contains("needs 40 and 12"));
}

#[test]
fn flows_show_what_is_missing() {
    let mut model = busy();
    model.view = View::Streams;
    let screen = screen(&model, 80, 24);
    let line = screen.iter().find(|line| line.starts_with("voice")).unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    let expected =
        ["voice", "1.50", "kpps", "1.49", "kpps", "1.01", "Mb/s", "6,000", "5,940", "60"];
    assert_eq!(words, expected);
}

#[test]
fn delays_connections_and_cpu_are_shown() {
    let mut model = busy();
    model.view = View::Latency;
    let text = screen(&model, 120, 40).join("\n");
    for words in ["voice", "1.00 us", "2.00 us", "9.00 us", "5,940", "██"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    model.view = View::Connections;
    let text = screen(&model, 80, 24).join("\n");
    for words in ["left", "150 /s", "established", "600"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    model.view = View::Cpu;
    let text = screen(&model, 80, 24).join("\n");
    for words in ["first", "running", "4.0 s", "50 %"] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn empty_tables_say_what_to_do() {
    let mut model = model();
    for (view, words) in [
        (View::Streams, "start -f PLAN"),
        (View::Latency, "metrics"),
        (View::Connections, "clients and servers"),
        (View::Cpu, "No runs"),
    ] {
        model.view = view;
        let text = screen(&model, 80, 24).join("\n");
        assert!(text.contains(words), "{view:?}: {text}");
    }
}

#[test]
fn command_line_shows_text_candidates_and_its_keys() {
    let mut model = busy();
    press(&mut model, ":sta\t");
    let mut terminal = terminal(&model, 80, 24);
    let screen = screen(&model, 80, 24);
    assert_eq!(screen[21], "> sta");
    assert_eq!(terminal.get_cursor_position().unwrap(), Position::new(5, 21));
    assert!(screen[18].starts_with("start"), "{screen:#?}");
    assert!(screen[17].contains("Candidates"), "{screen:#?}");
    assert!(screen[22].contains("Tab complete"), "{screen:#?}");
    press(&mut model, &"x".repeat(200));
    let long = super::tests::screen(&model, 80, 24);
    assert!(long[21].starts_with("> xxx") && long[21].chars().count() <= 80, "{long:#?}");
}

#[test]
fn log_wraps_errors_and_marks_them_with_a_word() {
    let mut model = busy();
    model.log("first", false);
    let long =
        "port \"x\": the ports are 0 (left), 1 (right), and this goes on and on until it wraps";
    model.log(long, true);
    let screen = screen(&model, 80, 24);
    assert_eq!(screen[18], "first");
    assert!(screen[19].starts_with("error: port"), "{screen:#?}");
    assert!(screen[20].ends_with("it wraps"), "{screen:#?}");
}

#[test]
fn lost_connection_and_questions_are_in_words() {
    let mut model = busy();
    server(&mut model, ServerUpdate::Lost("refused".to_owned()));
    model.tick(model.now + std::time::Duration::from_secs(65));
    assert!(screen(&model, 80, 24)[0].ends_with("NO CONNECTION for 1:05"));
    let mut model = crate::model::tests::own();
    press(&mut model, "q");
    let text = screen(&model, 80, 24).join("\n");
    assert!(text.contains("1 run ends with this console") && text.contains("y: yes"), "{text}");
}

#[test]
fn page_covers_the_tables_and_shows_its_place() {
    let mut model = busy();
    let lines = (0..100).map(|it| format!("line {it}")).collect();
    model.page = Some(Page { title: "help".to_owned(), lines, scroll: 40, column: 0 });
    let screen = screen(&model, 80, 24);
    assert!(screen[1].contains("help - line 41 of 100"), "{screen:#?}");
    assert_eq!((screen[2].as_str(), screen[20].as_str()), ("line 40", "line 58"));
    assert!(screen[22].contains("q Esc close"), "{screen:#?}");
}

#[test]
fn tables_of_a_page_scroll_instead_of_wrapping() {
    let mut model = busy();
    let table = format!("| {} |", "x".repeat(90));
    let prose = "word ".repeat(20);
    let lines = vec![table, prose, "end".to_owned()];
    model.page = Some(Page { title: "show".to_owned(), lines, scroll: 0, column: 0 });
    let screen = screen(&model, 80, 24);
    assert!(screen[2].starts_with("| xxx") && !screen[2].ends_with('|'), "{screen:#?}");
    assert!(screen[3].starts_with("word") && screen[4].starts_with("word"), "{screen:#?}");
    assert_eq!(screen[5], "end");
    for _ in 0..2 {
        model.apply(Update::Key(KeyEvent::from(KeyCode::Right)));
    }
    assert!(super::tests::screen(&model, 80, 24)[2].ends_with("x |"));
}

#[test]
fn without_colours_no_cell_has_one() {
    let mut model = busy();
    model.log("wrong", true);
    let has_color = |model: &Model| {
        let terminal = terminal(model, 80, 24);
        terminal.backend().buffer().content().iter().any(|cell| cell.fg != Color::Reset)
    };
    assert!(has_color(&model));
    model.with_color = false;
    assert!(!has_color(&model));
}

#[test]
fn wide_and_control_characters_do_not_break_the_lines() {
    let mut model = busy();
    model.apply(Update::Notice("漢字\u{1b}[31m wide".to_owned()));
    let screen = screen(&model, 80, 24);
    assert!(!screen.join("").contains('\u{1b}'), "{screen:#?}");
    assert_eq!(wrapped("aaa bbb ccc", 7), ["aaa bbb ", "ccc"]);
    assert_eq!(wrapped("abcdefgh", 3), ["abc", "def", "gh"]);
    assert_eq!(wrapped("", 3), [""]);
}

#[test]
fn latency_has_the_last_second_percentiles_and_jitter_at_80_columns() {
    let mut model = busy();
    press(&mut model, "l");
    let heads = |columns: u16| {
        let shown = screen(&model, columns, 24);
        assert!(shown[1].contains("now: last second"), "{shown:#?}");
        shown[2].split_whitespace().skip(3).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(heads(80), "mean now p50 p99 max jitter");
    assert_eq!(heads(130), "mean now p50 p99 max jitter min samples");
    let shown = screen(&model, 80, 24);
    let flow = shown.iter().find(|line| line.starts_with("voice")).unwrap();
    for value in ["2.00 us", "1.10 us", "9.00 us", "150 ns"] {
        assert!(flow.contains(value), "{flow}");
    }
    // The title explains a column that the narrowest terminal has too.
    let narrow = screen(&model, 40, 24);
    assert!(narrow[2].ends_with("now"), "{narrow:#?}");
}

#[test]
fn left_and_right_show_histograms_of_other_flows() {
    let mut model = busy();
    let names = ["voice", "video", "data"].map(str::to_owned);
    let flows = crate::traffic::tests::measured(names.into_iter());
    server(&mut model, ServerUpdate::Progress("first".into(), flows));
    press(&mut model, "ll");
    let shown = |model: &Model| {
        let shown = screen(model, 80, 24);
        assert!(shown[3].starts_with("1.02 us to 1.28 us"), "{shown:#?}");
        // All three flows, whichever are shown.
        assert!(shown[3].contains(" 150 "), "{shown:#?}");
        (shown[1].clone(), shown[2].clone())
    };
    let (title, heads) = shown(&model);
    assert!(title.contains("flows 1-2 of 3 - ← → scroll, l table"), "{title}");
    assert!(heads.contains("all flows") && heads.ends_with("voice      video"), "{heads}");
    let press_arrow = |model: &mut Model, code: KeyCode| {
        model.apply(Update::Key(KeyEvent::from(code)));
    };
    press_arrow(&mut model, KeyCode::Right);
    assert!(shown(&model).1.ends_with("video       data"), "{:?}", shown(&model));
    press_arrow(&mut model, KeyCode::Right);
    let (title, heads) = shown(&model);
    assert!(title.contains("flow 3 of 3") && heads.ends_with("data"), "{title} {heads}");
    assert!(!heads.contains("video"), "{heads}");
    press_arrow(&mut model, KeyCode::Left);
    assert!(shown(&model).0.contains("flows 2-3 of 3"));
}

#[test]
fn title_of_histograms_tells_how_many_flows_have_none() {
    let mut model = busy();
    let flows = crate::traffic::tests::measured((0..100).map(|it| format!("flow {it}")));
    server(&mut model, ServerUpdate::Progress("first".into(), flows));
    press(&mut model, "ll");
    model.first_flow = 62;
    let title = screen(&model, 80, 24)[1].clone();
    assert!(title.contains("flows 63-64 of the first 64 of 100 - ← → scroll, l table"), "{title}");
}

#[test]
fn histogram_has_a_bar_for_each_range() {
    let mut model = busy();
    press(&mut model, "ll");
    let shown = screen(&model, 80, 24);
    let line = |range: &str| {
        let line = shown.iter().find(|line| line.starts_with(range));
        line.unwrap_or_else(|| panic!("{shown:#?}")).clone()
    };
    let bars = |line: &str| line.chars().filter(|it| *it == '█').count();
    let (fast, slow) = (line("1.02 us to 1.28 us"), line("8.19 us to 10.24 us"));
    assert!(fast.contains("3,000") && slow.contains("600"), "{fast} {slow}");
    assert_eq!((bars(&fast), bars(&slow)), (14, 3));
    assert!(!shown[2].contains("voice"), "one flow needs no column of its own");
}

#[test]
fn paused_flow_and_run_are_marked() {
    let mut model = busy();
    let mut paused = crate::traffic::tests::progress(5_000, 6_000);
    paused.flows[0].is_paused = true;
    server(&mut model, ServerUpdate::Progress("first".into(), paused));
    press(&mut model, "s");
    let shown = screen(&model, 80, 24);
    let flow = shown.iter().find(|line| line.starts_with("voice")).unwrap();
    assert!(flow.contains("paused"), "{flow}");
    assert!(!shown[23].contains("resume!"), "{shown:#?}");
    let run = wirestorm_api::run::RunSummary { is_paused: true, ..run("first", RunState::Running) };
    let event = wirestorm_api::event::Event::Run { run: Box::new(run) };
    server(&mut model, ServerUpdate::Event(event));
    press(&mut model, "d");
    let shown = screen(&model, 80, 24);
    assert_eq!(row(&shown, "runs"), ["paused", "paused", "1"]);
    assert!(shown[23].contains("r resume!") && shown[23].ends_with("q quit"), "{shown:#?}");
}
