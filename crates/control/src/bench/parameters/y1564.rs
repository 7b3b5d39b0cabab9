//! Parameters of the test of Ethernet services.

use serde::Deserialize;
use wirestorm_base::time::Duration;
use wirestorm_method::y1564::{Criteria, Service, Test, Y1564};
use wirestorm_plan::services::ServicePlan;

use super::super::traffic::{Headers, NamedTraffic, TrafficDefinition};
use super::value::{ParameterError, of, one_or_many, percent, time};

/// Parameters of the test of Ethernet services, without the services.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Y1564Parameters {
    /// Tests, or `all`.
    #[serde(deserialize_with = "one_or_many")]
    pub tests: Vec<String>,
    /// Steps of the CIR test, in percent of the CIR.
    #[serde(deserialize_with = "one_or_many")]
    pub cir_steps: Vec<f64>,
    /// Duration of a step of the configuration test.
    pub step: String,
    /// Duration of the performance test.
    pub performance: String,
    /// Tolerance of the limits of the information rate, in percent.
    pub rate_tolerance: f64,
}

impl Default for Y1564Parameters {
    fn default() -> Self {
        Self {
            tests: vec!["all".to_owned()],
            cir_steps: vec![25.0, 50.0, 75.0, 100.0],
            step: "60s".to_owned(),
            performance: "15min".to_owned(),
            rate_tolerance: 1.0,
        }
    }
}

impl Y1564Parameters {
    /// Returns the method for these services.
    ///
    /// # Errors
    /// A parameter has a wrong value.
    pub fn method(&self, services: Vec<ServicePlan>) -> Result<Y1564, ParameterError> {
        let step = |step: &f64| percent("cir_steps", *step, 1.0, 100.0);
        let cir_steps: Vec<f64> = self.cir_steps.iter().map(step).collect::<Result<_, _>>()?;
        if !cir_steps.windows(2).all(|pair| pair[0] < pair[1]) {
            let message = ": expected ascending percent, such as 25,50,75,100";
            return Err(ParameterError::new("cir_steps", message));
        }
        Ok(Y1564 {
            services: services.into_iter().map(service).collect(),
            tests: of("tests", parse_tests(&self.tests))?,
            cir_steps,
            step: duration("step", &self.step)?,
            performance: duration("performance", &self.performance)?,
            rate_tolerance: percent("rate_tolerance", self.rate_tolerance, 0.0, 50.0)?,
        })
    }

    /// Returns the traffic of the services of a method, by name.
    pub fn traffic(method: &Y1564) -> NamedTraffic {
        let headers = |service: &Service| Headers {
            is_ipv6: service.protocol == "ipv6",
            vlan: service.vlan,
            pcp: service.pcp,
            dscp: service.dscp,
        };
        let named = |it: &Service| (it.name.clone(), TrafficDefinition::Headers(headers(it)));
        method.services.iter().map(named).collect()
    }
}

fn service(plan: ServicePlan) -> Service {
    let seconds = |time: Option<Duration>| time.map(Duration::as_secs_f64);
    Service {
        name: plan.name,
        protocol: if plan.is_ipv6 { "ipv6" } else { "ipv4" }.to_owned(),
        frame_sizes: plan.frame_sizes,
        vlan: plan.vlan,
        pcp: plan.pcp,
        dscp: plan.dscp,
        cir_bps: plan.cir_bps,
        eir_bps: plan.eir_bps,
        cbs_bytes: plan.cbs_bytes,
        ebs_bytes: plan.ebs_bytes,
        criteria: Criteria {
            flr: plan.flr,
            ftd_s: seconds(plan.ftd),
            fdv_s: seconds(plan.fdv),
            availability: plan.availability,
        },
    }
}

/// Reads a time above zero.
fn duration(key: &'static str, text: &str) -> Result<Duration, ParameterError> {
    match time(key, text)? {
        Duration::ZERO => Err(ParameterError::new(key, format!("{text:?}: expected more than 0"))),
        time => Ok(time),
    }
}

/// Parses names of tests.
fn parse_tests(names: &[String]) -> Result<Vec<Test>, String> {
    let mut tests = Vec::new();
    for name in names {
        if name == "all" {
            return Ok(Test::ALL.to_vec());
        }
        let test = Test::ALL.into_iter().find(|test| test.name() == name);
        tests.push(test.ok_or_else(|| {
            let all = Test::ALL.map(Test::name).join(", ");
            format!("{name:?}: expected all, or some of {all}")
        })?);
    }
    Ok(tests)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_and_steps_are_checked() {
        assert!(parse_tests(&["burst".into()]).unwrap_err().contains("policing"));
        let parameters =
            Y1564Parameters { cir_steps: vec![50.0, 25.0], ..Y1564Parameters::default() };
        let error = parameters.method(Vec::new()).unwrap_err();
        assert_eq!(
            error.of_flag(),
            "--cir-steps: expected ascending percent, such as 25,50,75,100"
        );
        let parameters = Y1564Parameters { step: "0s".into(), ..Y1564Parameters::default() };
        assert_eq!(parameters.method(Vec::new()).unwrap_err().key, "step");
    }
}
