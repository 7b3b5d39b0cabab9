use super::*;

#[test]
fn ramp_is_allowed_for_rate_and_hold_but_not_throughput() {
    let client = |load: &str| {
        let plan = EmulationPlan::parse(&PAGE.replace("load: {rate: 5k}", load));
        plan.map(|plan| plan.templates[0].client.clone().unwrap()).map_err(|it| it.to_string())
    };
    let grows = client("load: {rate: 5k}\n      ramp_up: 3s").unwrap();
    assert_eq!(grows.ramp_up, Duration::from_secs(3));
    assert_eq!(client("load: {throughput: 1.5M}").unwrap().load, Load::Throughput(1_500_000));
    let grows = client("load: {concurrent: 5}\n      ramp_up: 3s").unwrap();
    assert_eq!(grows.ramp_up, Duration::from_secs(3));
    let error = client("load: {throughput: 5M}\n      ramp_up: 3s").unwrap_err();
    assert!(error.contains("client.ramp_up: found a ramp, expected none"), "{error}");
}

#[test]
fn all_loads_are_multiplied() {
    let multiplied = |load: &str, factor: &str| {
        let text = PAGE.replace("load: {rate: 5k}", &format!("load: {load}"));
        let mut plan = EmulationPlan::parse(&text).unwrap();
        let outcome = plan.multiply(Decimal::parse(factor).unwrap());
        outcome.map(|()| plan.templates[0].client.as_ref().unwrap().load)
    };
    let rate = Rate::parse_per_second("12500", 1).unwrap();
    let faster = Load::Rate { rate, concurrent_max: Some(9) };
    assert_eq!(multiplied("{rate: 5k, concurrent_max: 9}", "2.5"), Ok(faster));
    assert_eq!(multiplied("{concurrent: 5}", "2.5"), Ok(Load::Concurrent(13)));
    assert_eq!(multiplied("{concurrent: 5}", "0.01"), Ok(Load::Concurrent(1)));
    assert_eq!(multiplied("{throughput: 1.5M}", "3"), Ok(Load::Throughput(4_500_000)));
    let Ok(Load::Users { users, .. }) = multiplied("{users: 7, think_time: 1s}", "3") else {
        panic!("users")
    };
    assert_eq!(users, 21);
    let error = multiplied("{concurrent: 5}", "1000000000").unwrap_err().to_string();
    let expected = "templates[0].client.load: times the multiplier: 5000000000, expected at most";
    assert!(error.starts_with(expected), "{error}");
}

#[test]
fn endless_cycles_of_started_flows_are_refused() {
    let client = |name: &str, group: &str, load: &str, program: &str| {
        format!(
            "\n  - {{name: {name}, group: {group}, client: {{tx: c, servers: 10.0.1.1, \
             load: {load}, program: [{program}]}}}}"
        )
    };
    let plan = |templates: &[String]| {
        let text = format!("{}\ntemplates:{}", &PAGE[..PAGE.find("templates").unwrap()], {
            templates.concat()
        });
        EmulationPlan::parse(&text).map_err(|errors| errors.to_string())
    };
    let on_demand =
        |name: &str, group: &str, program: &str| client(name, group, "on_demand", program);
    let first = client("a", "first", "{rate: 1}", "{select_group: second}, run_flow");
    // The cycle goes through another template, a loop, and the template's own group.
    let ring =
        on_demand("b", "second", "{repeat: {times: 2, steps: [{select_group: third}, run_flow]}}");
    let back = on_demand("c", "third", "connect, {select_group: second}, run_flow");
    let error = plan(&[first.clone(), ring.clone(), back.clone()]).unwrap_err();
    let expected = "templates[1]: each flow starts another one without end, whatever `limit` is: \
                    \"b\" starts \"c\" starts \"b\"; make that depend on a jump";
    assert!(error.starts_with(expected), "{error}");
    let starts_itself = client("a", "first", "{rate: 1}", "{select_group: first}, run_flow");
    let error = plan(&[starts_itself]).unwrap_err();
    assert!(error.contains("\"a\" starts \"a\""), "{error}");
    // A template that starts no flow may be selected, or a jump may skip the flow.
    let none = on_demand("d", "third", "connect");
    assert!(plan(&[first.clone(), ring.clone(), back, none]).is_ok());
    let jumps = "{set: {n: 3}}, {jump: {to: end, variable: n, equal: 3}}, {select_group: second}, run_flow, {label: end}";
    let jumps = on_demand("c", "third", jumps);
    assert!(plan(&[first, ring, jumps]).is_ok());
}

#[test]
fn open_flows_of_a_rate_can_be_limited() {
    let load = |load: &str| {
        let plan = EmulationPlan::parse(&PAGE.replace("load: {rate: 5k}", load));
        plan.map(|plan| plan.templates[0].client.clone().unwrap().load)
            .map_err(|errors| errors.to_string())
    };
    let (rate, limit) = (Rate::parse_per_second("5000", 1).unwrap(), Some(64));
    assert_eq!(
        load("load: {rate: 5k, concurrent_max: 64}").unwrap(),
        Load::Rate { rate, concurrent_max: limit }
    );
    assert_eq!(
        load("load: {concurrent_max: 64, poisson: 5k}").unwrap(),
        Load::Poisson { rate, concurrent_max: limit }
    );
    let ramping = load("load: {poisson: 5k, concurrent_max: 64}\n      ramp_up: 3s");
    assert_eq!(ramping.unwrap(), Load::Poisson { rate, concurrent_max: limit });
    for (wrong, expected) in [
        (
            "{rate: 5k, concurrent_max: 0}",
            "client.load.concurrent_max: found 0, expected a whole number from 1",
        ),
        ("{rate: x}", "client.load.rate: found \"x\", expected connections a second"),
        (
            "{concurrent: 5, concurrent_max: 6}",
            "client.load.concurrent_max: found an unknown field, expected concurrent? (one of",
        ),
        (
            "{concurrent_max: 6}",
            "client.load.concurrent_max: found an unknown field, expected concurrent? (one of",
        ),
        ("{rate: 5k, poisson: 6}", "client.load: found both"),
        ("{rate: 5k, concurrent: 6}", "client.load: found both"),
    ] {
        let error = load(&format!("load: {wrong}")).unwrap_err();
        assert!(error.contains(expected), "{wrong}: {error}");
    }
}

#[test]
fn think_time_uses_the_distributions_of_delays() {
    let load = |load: &str| {
        let plan = EmulationPlan::parse(&PAGE.replace("load: {rate: 5k}", load));
        plan.map(|plan| plan.templates[0].client.clone().unwrap().load)
            .map_err(|errors| errors.to_string())
    };
    let [one, two] = [1, 2].map(Duration::from_secs);
    for (think, expected) in [
        ("", ThinkTime::Uniform { min: Duration::ZERO, max: Duration::ZERO }),
        (", think_time: 2s", ThinkTime::Uniform { min: two, max: two }),
        (", think_time: {min: 1s, max: 2s}", ThinkTime::Uniform { min: one, max: two }),
        (", think_time: {mean: 2s}", ThinkTime::Exponential { mean: two }),
        (", think_time: {mean: 2s, stddev: 1s}", ThinkTime::Normal { mean: two, stddev: one }),
    ] {
        let found = load(&format!("load: {{users: 30{think}}}\n      ramp_up: 3s"));
        assert_eq!(found.unwrap(), Load::Users { users: 30, think_time: expected }, "{think}");
    }
    for (wrong, expected) in [
        ("{users: 0}", "client.load.users: found 0, expected a whole number from 1 to"),
        (
            "{users: 3, think_time: 5}",
            "client.load.think_time: found 5, expected a time with its unit",
        ),
        (
            "{users: 3, think_time: {max: 1s}}",
            "client.load.think_time.min: found nothing, expected a time",
        ),
        (
            "{users: 3, concurrent: 5}",
            "client.load.concurrent: found an unknown field, expected one of users",
        ),
        (
            "{think_time: 5s}",
            "client.load.think_time: found an unknown field, expected one of rate",
        ),
    ] {
        let error = load(&format!("load: {wrong}")).unwrap_err();
        assert!(error.contains(expected), "{wrong}: {error}");
    }
}
