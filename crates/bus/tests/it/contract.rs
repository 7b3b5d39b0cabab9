//! Both back ends pass the same tests.

use std::sync::Arc;

use wirestorm_bus::Bus;
use wirestorm_bus::local::LocalBus;
use wirestorm_bus::nats::{NatsBus, NatsOptions};
use wirestorm_bus::subject::Site;
use wirestorm_bus::testing::contract::Fixture;
use wirestorm_bus::testing::{Faults, FaultyBus};
use wirestorm_testkit::nats::{NatsServer, require_nats_server};

struct Local(LocalBus);

impl Fixture for Local {
    fn bus(&self) -> Arc<dyn Bus> {
        Arc::new(self.0.clone())
    }
}

struct Nats(NatsServer);

impl Fixture for Nats {
    fn bus(&self) -> Arc<dyn Bus> {
        let url = format!("nats://127.0.0.1:{}", self.0.port());
        let site = Site::new("test").unwrap();
        let options = NatsOptions::new(&url, &site, "director", "contract").unwrap();
        Arc::new(NatsBus::connect(options).unwrap())
    }
}

mod local {
    use super::*;

    wirestorm_bus::bus_contract!(|| Some(Local(LocalBus::new())));
}

/// A bus that can have faults, and has none, is a bus.
mod faulty {
    use super::*;

    struct Faulty(LocalBus);

    impl Fixture for Faulty {
        fn bus(&self) -> Arc<dyn Bus> {
            Arc::new(FaultyBus::new(Arc::new(self.0.clone()), Faults::default()))
        }
    }

    wirestorm_bus::bus_contract!(|| Some(Faulty(LocalBus::new())));
}

mod nats {
    use super::*;

    wirestorm_bus::bus_contract!(|| {
        let program = require_nats_server()?;
        Some(Nats(NatsServer::open(&program).unwrap()))
    });
}
