//! Profiles: loading them in fragments, and removing them.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::super::Trex;
use super::super::events::Event;
use super::super::parameters::Parameters;
use super::super::port::DEFAULT_PROFILE;
use super::super::rpc::{Answer, RpcError};
use super::{Counts, ProfileState, StatefulRun};

/// Maximum length of a profile in bytes, and maximum number of profiles.
const TEXT_BYTES_MAX: usize = 256 << 20;
const PROFILES_MAX: usize = 1_024;
/// Time between the events of the begin and the end of a removal. A client that gets both at once
/// waits forever.
const REMOVAL_TIME: Duration = Duration::from_millis(150);

/// A profile.
pub(in super::super) struct StatefulProfile {
    pub(super) state: ProfileState,
    /// Fragments that have arrived, or the whole text.
    pub(super) text: Arc<String>,
    /// MD5 digest of the text, from the client.
    hash: Option<String>,
    /// Names of the template groups.
    pub(super) groups: Arc<[String]>,
    pub(super) run: Option<Arc<StatefulRun>>,
    /// Last run with its counters.
    pub(super) last: Option<Arc<StatefulRun>>,
    /// Counters of the last run: clients and servers.
    pub(super) counts: Option<[Counts; 2]>,
    /// Changes when the counters restart.
    pub(super) epoch: u64,
}

impl Default for StatefulProfile {
    fn default() -> Self {
        Self {
            state: ProfileState::Idle,
            text: Arc::default(),
            hash: None,
            groups: Arc::default(),
            run: None,
            last: None,
            counts: None,
            epoch: 0,
        }
    }
}

/// Returns the name of the profile that a request concerns.
pub(in super::super) fn profile_name<'a>(parameters: &Parameters<'a>) -> Result<&'a str, RpcError> {
    parameters.text_or("profile_id", DEFAULT_PROFILE)
}

/// Checks that a profile is in one of these states.
pub(super) fn check_state(
    profile: &StatefulProfile,
    states: &[ProfileState],
) -> Result<(), RpcError> {
    if states.contains(&profile.state) {
        return Ok(());
    }
    let names: Vec<&str> = states.iter().map(|state| state.name()).collect();
    let expected = match names.as_slice() {
        [one] => (*one).to_owned(),
        several => format!("one of following: {}", several.join(",")),
    };
    let state = profile.state.name();
    Err(RpcError::execution(format!("Invalid state: {state}, should be: {expected}")))
}

pub(in super::super) fn profile_fragment(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    use ProfileState::{Idle, Loaded};
    trex.context(parameters)?;
    let name = profile_name(parameters)?;
    let is_first = parameters.flag_or("frag_first", false)?;
    let is_last = parameters.flag_or("frag_last", false)?;
    let mut state = trex.state();
    let state = &mut *state;
    if state.astf.profile(name).is_ok_and(|it| it.state == ProfileState::Delete) {
        // The client knows that the profile is gone, so that the removal ends now.
        remove(trex, state, name);
    }
    if !state.astf.profiles.contains_key(name) {
        if state.astf.profiles.len() >= PROFILES_MAX {
            return Err(RpcError::execution("too many profiles"));
        }
        state.astf.profiles.insert(name.to_owned(), StatefulProfile::default());
        trex.enter(state, name, Idle, None);
    }
    if is_first {
        let hash = match is_last {
            true => None,
            false => Some(parameters.text("md5")?.to_owned()),
        };
        let same = |profile: &StatefulProfile| {
            hash.is_some() && profile.hash == hash && profile.state != Idle
        };
        if same(state.astf.profile_mut(name)?) {
            return Ok(json!({"matches_loaded": true}));
        }
        if state.astf.profiles.values().any(same) {
            let text = "Fragment already added on other profile_id";
            return Err(RpcError::execution(text));
        }
        let profile = state.astf.profile_mut(name)?;
        check_state(profile, &[Idle, Loaded])?;
        (profile.text, profile.hash) = (Arc::default(), hash);
        if profile.state == Loaded {
            trex.enter(state, name, Idle, None);
        }
    }
    let profile = state.astf.profile_mut(name)?;
    check_state(profile, &[Idle])?;
    let fragment = parameters.text("fragment")?;
    if profile.text.len() + fragment.len() > TEXT_BYTES_MAX {
        return Err(RpcError::execution(format!(
            "the profile is longer than {TEXT_BYTES_MAX} bytes"
        )));
    }
    Arc::make_mut(&mut profile.text).push_str(fragment);
    if is_last {
        trex.enter(state, name, Loaded, None);
    }
    Ok(Value::Null)
}

pub(in super::super) fn profile_clear(trex: &Arc<Trex>, parameters: &Parameters<'_>) -> Answer {
    use ProfileState::{Delete, Idle, Loaded};
    trex.context(parameters)?;
    let name = profile_name(parameters)?.to_owned();
    let mut state = trex.state();
    let profile = state.astf.profile_mut(&name)?;
    check_state(profile, &[Idle, Loaded])?;
    if profile.state == Idle {
        remove(trex, &mut state, &name);
        return Ok(Value::Null);
    }
    trex.enter(&mut state, &name, Delete, None);
    drop(state);
    let trex = Arc::clone(trex);
    let finish = move || {
        std::thread::sleep(REMOVAL_TIME);
        let mut state = trex.state();
        if state.astf.profile(&name).is_ok_and(|profile| profile.state == Delete) {
            remove(&trex, &mut state, &name);
        }
    };
    let spawned = std::thread::Builder::new().name("trex-remove".to_owned()).spawn(finish);
    spawned.map_err(|error| RpcError::execution(format!("cannot start a thread: {error}")))?;
    Ok(Value::Null)
}

fn remove(trex: &Trex, state: &mut super::super::State, name: &str) {
    state.astf.profiles.remove(name);
    let epoch = state.astf.epoch;
    trex.publish(state, [Event::AstfProfileCleared { profile: name.to_owned(), epoch }]);
    if name == DEFAULT_PROFILE {
        state.astf.profiles.insert(name.to_owned(), StatefulProfile::default());
        trex.enter(state, name, ProfileState::Idle, None);
    }
    trex.publish_astf_state(state);
}
