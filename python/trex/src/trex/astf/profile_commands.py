"""Profiles by ID: load, remove and query."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, Union

from trex.arguments import listify, validate_type
from trex.astf.loaded_profile import STATE_NAMES, Profile
from trex.astf.profile import ASTFProfile, ASTFProfileLight
from trex.astf.stateful_run import StatefulRun
from trex.client.session import Session
from trex.errors import TRexArgumentError, TRexError, TRexTimeoutError
from trex.tunables import check_tunables

DEFAULT_PROFILE_ID = "_"
ALL_PROFILE_ID = "*"
# Longest wait for a change, after which the state and the deadline are checked again.
_WAIT_S_MAX = 1.0
_TUNABLES_HINT = ", or a list of the words of its command line, ['--size', '3']"

#: Profile IDs, in a list or in a text.
Pids = Union[str, list[str]]


class ProfileCommands(Session):
    """Commands for profiles, and the known profiles."""

    STATE_IDLE, STATE_ASTF_LOADED, STATE_ASTF_PARSE, STATE_ASTF_BUILD = range(4)
    STATE_TX, STATE_ASTF_CLEANUP, STATE_ASTF_DELETE = range(4, 7)
    #: Transient states of a profile, which never occur here.
    transient_states = (STATE_ASTF_PARSE, STATE_ASTF_BUILD, STATE_ASTF_CLEANUP, STATE_ASTF_DELETE)
    #: TRex's numbers for the state of ports, by the state of the profiles.
    port_states = (0, 5, 6, 7, 2, 8, 0)

    def __init__(self, *arguments: Any, **kwargs: Any) -> None:
        super().__init__(*arguments, **kwargs)
        self._profiles_by_id = {DEFAULT_PROFILE_ID: Profile(DEFAULT_PROFILE_ID)}
        # Notified when a profile is loaded, started or removed.
        self._profiles_changed = threading.Condition()
        #: Errors of failed runs: of the last run, and of each profile's last run.
        self.last_error = ""
        self.last_profile_error: dict[str, str] = {}

    def load_profile(
        self, profile: Any, tunables: Any = None, pid_input: str = DEFAULT_PROFILE_ID
    ) -> None:
        """Loads a profile: an `ASTFProfile`, a file in Python or JSON, or its document.

        `tunables` are keyword arguments of the profile, or a list of command-line arguments.
        """
        self._require_session()
        validate_type("pid_input", pid_input, str)
        if pid_input.split() != [pid_input] or pid_input == ALL_PROFILE_ID:
            raise TRexArgumentError("pid_input", pid_input, "one word, other than *")
        known = self._profiles_by_id.get(pid_input)
        if known is not None and known.is_running:
            raise TRexError(f"profile {pid_input} is running; stop it first")
        if isinstance(profile, dict):
            profile = ASTFProfileLight(profile)
        elif not isinstance(profile, (ASTFProfile, ASTFProfileLight)):
            validate_type("profile", profile, str)
            line = isinstance(tunables, (list, tuple))
            kwargs = (
                {"tunables": list(tunables)} if line else check_tunables(tunables, _TUNABLES_HINT)
            )
            try:
                profile = ASTFProfile.load(profile, **kwargs)
            except Exception as error:
                raise TRexError(f"cannot load profile: {error}") from error
        if profile is None:
            # The profile has only printed its help.
            return
        document = profile.to_json()
        loaded = self._profiles_by_id.setdefault(pid_input, Profile(pid_input))
        loaded.document = profile.to_json_str()
        loaded.groups = list(document.get("tg_names") or [])
        self._notify_waiting()
        self._log_event(f"profile {pid_input} is loaded")

    def clear_profile(self, block: bool = True, pid_input: Pids = DEFAULT_PROFILE_ID) -> None:
        """Removes profiles, except running ones."""
        self._require_session()
        for profile in self._select_profiles(pid_input):
            if profile.is_running:
                self._log_event(f"profile {profile.pid} is running, and stays", "warning")
                continue
            self._record_results()
            del self._profiles_by_id[profile.pid]
        self._profiles_by_id.setdefault(DEFAULT_PROFILE_ID, Profile(DEFAULT_PROFILE_ID))
        self._notify_waiting()

    def get_profiles(self, profiles_in_ports: bool = False) -> list[Any]:
        """Returns the IDs of all profiles, with `profiles_in_ports` also those of streams."""
        self._require_session()
        found: list[Any] = list(self._profiles_by_id)
        if profiles_in_ports:
            found.append({number: list(port.profiles) for number, port in self.links.items()})
        return found

    @property
    def astf_profile_state(self) -> dict[str, int]:
        """State of each profile as a number."""
        return {pid: profile.state for pid, profile in self._profiles_by_id.items()}

    def get_profiles_state(self) -> dict[str, str]:
        """Returns the state of each profile: `STATE_IDLE`, `STATE_ASTF_LOADED` or `STATE_TX`."""
        return {pid: STATE_NAMES[profile.state] for pid, profile in self._profiles_by_id.items()}

    @property
    def state(self) -> int:
        """Combined state of the profiles: transmitting if one of them is."""
        return max((profile.state for profile in self._profiles_by_id.values()), default=0)

    def wait_for_profile_state(
        self, profile_id: str, wait_state: int, timeout: float | None = None
    ) -> None:
        """Waits until a profile is in a state, such as `STATE_TX`.

        Raises `TRexTimeoutError` after `timeout` seconds, and `TRexError` for a state that never
        occurs.
        """
        self._require_session()
        profile = self._single_profile(profile_id)
        _check_reachable([wait_state])
        self._wait_until(
            lambda: profile.state == wait_state,
            lambda: profile.run if profile.is_running else None,
            timeout,
        )

    def wait_for_steady(self, profile_id: str | None = None) -> int:
        """Returns the state of a profile, or of all. Transient states never occur."""
        return self.state if profile_id is None else self._single_profile(profile_id).state

    def wait_for_transient(self, profile_id: str | None = None) -> int:
        """Raises `TRexError` instead of waiting for ever, because transient states never occur.

        Commands are complete when they return.
        """
        self._require_session()
        if profile_id is not None:
            self._single_profile(profile_id)
        raise TRexError(
            "no profile is ever between two states: wait_for_profile_state() waits for one of "
            "them, and wait_on_traffic() for the end"
        )

    def check_states(self, ok_states: Iterable[int]) -> None:
        """Waits until `state` is one of these. Raises `TRexError` if none of them can occur."""
        self._require_session()
        states_wanted = _check_reachable(ok_states)
        self._wait_until(
            lambda: self.state in states_wanted, lambda: next(iter(self._running()), None)
        )

    def apply_port_states(self) -> int:
        """Returns the state of ports as TRex's number. It needs no update."""
        return self.port_states[self.state]

    def validate_profile_id_input(
        self, pid_input: Pids = DEFAULT_PROFILE_ID, start: bool = False
    ) -> list[str]:
        """Returns the given profile IDs, from a list or a text; `*` selects all."""
        return [profile.pid for profile in self._select_profiles(pid_input, start)]

    # Internal methods.

    def _single_profile(self, pid_input: Pids) -> Profile:
        """Returns the given profile. Raises unless it is exactly one."""
        chosen = self._select_profiles(pid_input)
        if len(chosen) != 1:
            raise TRexArgumentError("pid_input", pid_input, "the identifier of one profile")
        return chosen[0]

    def _select_profiles(self, pid_input: Pids, start: bool = False) -> list[Profile]:
        names = parse_profile_ids(pid_input)
        if ALL_PROFILE_ID in names:
            if start:
                raise TRexArgumentError("pid_input", pid_input, "identifiers to start, by name")
            return list(self._profiles_by_id.values())
        wrong = [name for name in names if name not in self._profiles_by_id]
        if wrong:
            known = ", ".join(self._profiles_by_id)
            raise TRexError(f"there is no profile {wrong[0]}; there are: {known}")
        return [self._profiles_by_id[name] for name in dict.fromkeys(names)]

    def _running(self) -> list[StatefulRun]:
        """Returns the runs of running profiles."""
        profiles = list(self._profiles_by_id.values())
        return [it.run for it in profiles if it.is_running and it.run is not None]

    def _notify_waiting(self) -> None:
        """Wakes the threads that wait for a state."""
        with self._profiles_changed:
            self._profiles_changed.notify_all()

    def _wait_until(
        self,
        is_reached: Callable[[], bool],
        running: Callable[[], StatefulRun | None],
        timeout: float | None = None,
    ) -> None:
        """Waits for a state, which a run's end or a command of another thread brings.

        :param running: returns the run whose end to wait for, if any
        :param timeout: seconds; raises `TRexTimeoutError` after that time
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while not is_reached():
            left_s = _WAIT_S_MAX if deadline is None else deadline - time.monotonic()
            if timeout is not None and left_s <= 0:
                raise TRexTimeoutError(timeout)
            wait_s = min(left_s, _WAIT_S_MAX)
            run = running()
            if run is not None:
                run.wait(wait_s)
                continue
            with self._profiles_changed:
                self._profiles_changed.wait_for(
                    lambda: is_reached() or running() is not None, wait_s
                )


def parse_profile_ids(pid_input: Pids) -> list[str]:
    """Returns the given profile IDs. Raises `TRexArgumentError` if there are none."""
    names = pid_input.split() if isinstance(pid_input, str) else pid_input
    is_list = isinstance(names, list) and all(isinstance(name, str) for name in names)
    if not is_list or not names:
        raise TRexArgumentError("pid_input", pid_input, "the identifier of a profile")
    return names


def _check_reachable(states: Iterable[int]) -> set[int]:
    """Returns the states. Raises `TRexError` if none of them can occur."""
    states_wanted = set(listify(states) if isinstance(states, int) else states)
    stable = {
        ProfileCommands.STATE_IDLE,
        ProfileCommands.STATE_ASTF_LOADED,
        ProfileCommands.STATE_TX,
    }
    if not states_wanted & stable:
        raise TRexError(
            f"states {sorted(states_wanted)}: no profile is ever in them: wait for STATE_IDLE, "
            "STATE_ASTF_LOADED or STATE_TX"
        )
    return states_wanted
