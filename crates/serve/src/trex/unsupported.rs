//! Commands without a counterpart in Wirestorm, with the answers of TRex.

use serde_json::{Value, json};

use super::Trex;
use super::parameters::Parameters;
use super::rpc::{Answer, RpcError};

pub(super) fn enable_tpg(_: &Trex, _: &Parameters<'_>) -> Answer {
    Err(RpcError::execution("Tagged Packet Group can be enabled only in software mode"))
}

pub(super) fn tagged_groups(_: &Trex, _: &Parameters<'_>) -> Answer {
    Err(RpcError::execution("Tagged Packet Group is not enabled."))
}

pub(super) fn get_tpg_state(_: &Trex, parameters: &Parameters<'_>) -> Answer {
    parameters.text("username")?;
    Ok(0.into())
}

pub(super) fn get_tpg_status(_: &Trex, parameters: &Parameters<'_>) -> Answer {
    let (user, port) = (parameters.find("username"), parameters.find("port_id"));
    let text = match (user, port) {
        (Some(_), Some(_)) => {
            "Should provide only one between port_id and username to get TPG status"
        }
        (None, None) => {
            "Should provide at least one between port_id and username to get TPG status"
        }
        _ => {
            let none: [Value; 0] = [];
            return Ok(json!({
                "enabled": false,
                "data": {
                    "acquired_ports": none,
                    "rx_ports": none,
                    "username": "-",
                    "num_tpgids": 0,
                    "num_tags": 0,
                },
            }));
        }
    };
    Err(RpcError::parameters(text))
}
