//! Parameters of the test of Ethernet services.

use std::ops::RangeInclusive;

use schemars::JsonSchema;
use serde::Deserialize;
use wirestorm_base::time::Duration;
use wirestorm_method::y1564::{Criteria, Service, Test, Y1564};
use wirestorm_plan::services::ServicePlan;

use super::super::traffic::{Headers, NamedTraffic, TrafficDefinition};
use super::schema;
use super::value::{ParameterError, duration, one_or_many, percent, read_tests};

/// Steps of the CIR test.
const CIR_STEPS: RangeInclusive<usize> = 1..=100;

/// Parameters of the test of Ethernet services, without the services.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Y1564Parameters {
    /// Tests, or `all`.
    #[serde(deserialize_with = "one_or_many")]
    #[schemars(schema_with = "schema::tests_of_y1564")]
    pub tests: Vec<String>,
    /// Steps of the CIR test, in percent of the CIR, ascending.
    #[serde(deserialize_with = "one_or_many")]
    #[schemars(schema_with = "schema::numbers")]
    pub cir_steps: Vec<f64>,
    /// Duration of a step of the configuration test.
    #[schemars(schema_with = "schema::time")]
    pub step: String,
    /// Duration of the performance test.
    #[schemars(schema_with = "schema::time")]
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
        if !CIR_STEPS.contains(&self.cir_steps.len()) {
            let (count, least, most) = (self.cir_steps.len(), CIR_STEPS.start(), CIR_STEPS.end());
            let message = format!("{count} steps: expected {least} to {most}");
            return Err(ParameterError::new("cir_steps", message));
        }
        let step = |step: &f64| percent("cir_steps", *step, 1.0, 100.0);
        let cir_steps: Vec<f64> = self.cir_steps.iter().map(step).collect::<Result<_, _>>()?;
        if !cir_steps.windows(2).all(|pair| pair[0] < pair[1]) {
            let message = ": expected ascending percent, such as 25,50,75,100";
            return Err(ParameterError::new("cir_steps", message));
        }
        Ok(Y1564 {
            services: services.into_iter().map(service).collect(),
            tests: read_tests(&self.tests, &Test::ALL, Test::name)?,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_and_steps_are_checked() {
        let parameters = Y1564Parameters { tests: Vec::new(), ..Y1564Parameters::default() };
        let error = parameters.method(Vec::new()).unwrap_err().to_string();
        assert!(error.starts_with("tests: expected all") && error.contains("policing"), "{error}");
        let cir_steps = (0..101).map(|step| 1.0 + f64::from(step) / 2.0).collect();
        let parameters = Y1564Parameters { cir_steps, ..Y1564Parameters::default() };
        let error = parameters.method(Vec::new()).unwrap_err().to_string();
        assert_eq!(error, "cir_steps: 101 steps: expected 1 to 100");
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
