//! Tests that each back end passes.
//!
//! [`bus_contract`](crate::bus_contract) makes a test of each function here.

mod messages;
mod stores;

use std::sync::Arc;
use std::time::Duration;

use crate::{BucketConfig, Bus, LogConfig, ObjectsConfig};

pub use messages::*;
pub use stores::*;

/// Time for what must happen.
const SOON: Duration = Duration::from_secs(10);
/// Time in which nothing may happen.
const QUIET: Duration = Duration::from_millis(100);
/// Time to live of the bucket [`BRIEF`].
const TIME_TO_LIVE: Duration = Duration::from_secs(1);
/// Bucket whose keys expire.
const BRIEF: &str = "brief";
/// Bucket whose keys do not expire.
const LASTING: &str = "lasting";

/// What a back end gives for the contract: connections to one bus.
pub trait Fixture {
    /// Returns another connection to the bus.
    fn bus(&self) -> Arc<dyn Bus>;
}

/// Makes a test of each function of the contract. The argument is a function that returns an
/// `Option` of a [`Fixture`]; `None` skips the test.
#[macro_export]
macro_rules! bus_contract {
    ($open:expr) => {
        $crate::bus_contract!(@ $open;
            a_message_reaches_all_matching_subscriptions
            a_message_without_subscription_is_no_error
            messages_of_a_sender_stay_in_order
            a_dropped_subscription_receives_nothing_and_answers_nothing
            a_full_subscription_drops_and_counts
            a_request_is_answered
            requests_of_many_threads_get_their_own_answers
            a_request_without_subscription_has_no_responder
            a_request_without_answer_times_out
            only_the_first_answer_counts
            an_answer_to_a_message_is_invalid
            malformed_names_are_invalid
            large_payloads_are_refused
            create_succeeds_once
            one_of_many_creators_wins
            update_needs_the_revision
            a_deleted_key_can_be_created_again
            revisions_grow_over_all_keys
            keys_expire_after_their_last_write
            an_expired_key_cannot_be_updated
            keys_lists_what_exists
            a_missing_store_is_told
            settings_of_stores_can_change
            a_watch_tells_what_exists_and_what_changes
            a_watch_tells_expired_keys
            a_watch_follows_many_writes_to_the_last
            a_log_keeps_order_and_subjects
            a_repeated_message_is_stored_once
            a_log_refuses_other_subjects_and_overflow
            objects_come_back_as_they_were
            an_object_can_be_replaced
            a_removed_object_leaves_room
            objects_have_bounds
            the_state_is_connected
        );
    };
    (@ $open:expr; $($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                if let Some(fixture) = $open() {
                    $crate::testing::contract::$name(&fixture);
                }
            }
        )*
    };
}

/// Creates the stores of the tests.
fn with_stores(fixture: &dyn Fixture) -> Arc<dyn Bus> {
    let bus = fixture.bus();
    for (name, time_to_live) in [(BRIEF, Some(TIME_TO_LIVE)), (LASTING, None)] {
        let config = BucketConfig { name: name.into(), time_to_live, bytes_max: 1 << 20 };
        bus.create_bucket(&config).unwrap();
    }
    bus.create_log(&LogConfig {
        name: "results".into(),
        pattern: "test.result.*".into(),
        age_max: None,
        bytes_max: 4 << 20,
        duplicate_window: Duration::from_secs(600),
    })
    .unwrap();
    let config = ObjectsConfig { name: "plans".into(), age_max: None, bytes_max: 4 << 20 };
    bus.create_objects(&config).unwrap();
    bus
}
