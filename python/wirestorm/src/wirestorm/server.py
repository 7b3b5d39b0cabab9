"""Runs on a server, `wirestorm serve`, over its HTTP API."""

from __future__ import annotations

import getpass
import hashlib
import json
import os
import re
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from wirestorm._plan_values import Time, time_text
from wirestorm._wait import wait_for_end
from wirestorm.errors import Interrupted, PlanError, RunError, WirestormError
from wirestorm.plan import AnyPlan, plan_text
from wirestorm.result import Result
from wirestorm.run import FlowCount, Progress

_PORT = 9410
_BASE = "/api/v1"
# Longest wait for an answer: the preparation of a run takes up to 10 s.
_TIMEOUT_S = 60.0
# Most rounds of uploads of the files that a plan names.
_UPLOADS_MAX = 100
# Most runs of an answer.
_RUNS_PAGE_MAX = 1_000
_FINAL = ("finished", "failed", "interrupted", "died")


class ServerError(WirestormError):
    """An error of a server.

    `code` is the kind of the error, such as `conflict` or `forbidden`; None if the server cannot be
    reached. `errors` lists the places of a wrong plan or request with their messages.
    """

    def __init__(
        self, message: str, code: str | None = None, errors: list[tuple[str, str]] | None = None
    ) -> None:
        super().__init__(message, code, errors)
        self.message = message
        self.code = code
        self.errors = errors or []

    def __str__(self) -> str:
        places = [f"{path}: {message}" if path else message for path, message in self.errors]
        return "\n".join([self.message, *places])


@dataclass(frozen=True)
class ServerPort:
    """A port of a server."""

    name: str
    """Name of the port."""
    interface: str
    """Interface, with its namespace."""
    link: str
    """`up`, `no_carrier`, `down` or `missing`."""
    speed_bps: int | None
    """Link speed in bit/s."""
    user: str | None
    """User who leases the port; None if nobody does."""
    session: str | None
    """Session of that user; empty for the default session."""
    runs: list[str]
    """IDs of the active runs on the port."""


class Server:
    """A server of runs.

    >>> server = Server("lab", token="wirestorm_...", ca="lab.pem")
    >>> print(server.run(plan, {"left": "eth1", "right": "eth2"}, duration="10s"))

    :param address: `HOST`, `HOST:PORT`, `http://HOST:PORT` or `https://HOST:PORT`; without a scheme
        HTTP to loopback, and HTTPS to other hosts
    :param token: token of the user; by default the environment variable `WIRESTORM_TOKEN`
    :param ca: file with the certificate of the server or its authority in PEM; by default those of
        the system
    :param session: session of the user, to which leases of ports belong
    """

    def __init__(
        self,
        address: str = "localhost",
        *,
        token: str | None = None,
        ca: str | os.PathLike[str] | None = None,
        session: str = "",
    ) -> None:
        self.url = _base_url(address)
        token = token or os.environ.get("WIRESTORM_TOKEN")
        self._headers = {"wirestorm-user": getpass.getuser()}
        if token:
            self._headers["authorization"] = f"Bearer {token}"
        if session:
            self._headers["wirestorm-session"] = session
        context = None if ca is None else ssl.create_default_context(cafile=os.fspath(ca))
        handlers = [] if context is None else [urllib.request.HTTPSHandler(context=context)]
        # Proxies of the environment are for the web, not for a lab.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), *handlers)

    def ports(self) -> list[ServerPort]:
        """Returns the ports of the server."""
        return [_port(port) for port in self._request("GET", "/ports")]

    def lease(self, port: str, *, force: bool = False, ttl_s: float | None = None) -> None:
        """Leases a port for this session, or renews the lease.

        :param force: take the port from its owner, whose runs on it stop
        :param ttl_s: time after which the lease ends if it is not renewed
        """
        self._request("PUT", f"/ports/{_quote(port)}/lease", {"force": force, "ttl_s": ttl_s})

    def release(self, port: str) -> None:
        """Ends the lease of a port."""
        self._request("DELETE", f"/ports/{_quote(port)}/lease")

    def upload(self, path: str | os.PathLike[str], name: str | None = None) -> str:
        """Uploads a capture, or another file that plans name. Returns its name on the server."""
        name = Path(path).name if name is None else name
        with open(path, "rb") as file:
            length = os.fstat(file.fileno()).st_size
            headers = {"content-type": "application/octet-stream", "content-length": str(length)}
            uploaded = self._send("PUT", f"/captures/{_quote(name)}", file, headers)
        return str(json.loads(uploaded)["name"])

    def start(
        self,
        plan: AnyPlan,
        ports: Mapping[str, str] | None = None,
        *,
        name: str | None = None,
        when_lease_ends: str = "continue",
        shared: bool = False,
        duration: Time | None = None,
        **options: object,
    ) -> ServerRun:
        """Starts a run. It continues when this program ends.

        :param plan: a `Plan`, or the path of a file in YAML or JSON; of streams, or of clients and
            servers
        :param ports: ports of the server by the names of the plan's ports
        :param name: name of the run in the history
        :param when_lease_ends: `continue` or `stop`
        :param shared: whether other shared runs of the same user may use the same ports
        :param duration: time limit of the run
        :param options: other options of the API, such as `backend` and `multiplier`
        :raises PlanError: if the plan is invalid
        :raises ServerError: if the server refuses the run
        """
        text, folder = plan_text(plan)
        if duration is not None:
            options["duration"] = time_text(duration)
        request = {
            "plan": {"text": text},
            "name": name,
            "ports": dict(ports or {}),
            "options": options,
            "files": {},
            "when_lease_ends": when_lease_ends,
            "shared": shared,
            "command": ["python"],
        }
        files: dict[str, str] = {}
        for _ in range(_UPLOADS_MAX):
            request["files"] = files
            try:
                return ServerRun(self, self._request("POST", "/runs", request)["id"])
            except ServerError as error:
                missing = [path for path, _ in error.errors if path not in files]
                if error.code == "plan" and error.errors:
                    raise PlanError(error.errors) from error
                if error.code != "missing_file" or not missing:
                    raise
            for path in missing:
                files[path] = self._upload_once(folder / path)
        raise ServerError("the plan names too many files")

    def run(
        self,
        plan: AnyPlan,
        ports: Mapping[str, str] | None = None,
        *,
        progress: Callable[[Progress], object] | None = None,
        **arguments: Any,
    ) -> Result:
        """Runs a plan and returns the result. The other arguments are those of `start`.

        :param progress: callback, called about ten times a second with the progress
        :raises PlanError: if the plan is invalid
        :raises RunError: if an error occurs during the run
        :raises Interrupted: after Ctrl-C, which stops the run; has the result so far
        """
        return self.start(plan, ports, **arguments).wait(progress=progress)

    def find(self, run: str) -> ServerRun:
        """Returns a run by its ID, its name, the beginning of its ID, or `latest`."""
        return ServerRun(self, self._request("GET", f"/runs/{_quote(run)}")["id"])

    def runs(self, limit: int = 100) -> list[dict[str, Any]]:
        """Returns the newest runs of the server and its history, as the API has them."""
        runs: list[dict[str, Any]] = []
        after = ""
        while len(runs) < limit:
            size = min(limit - len(runs), _RUNS_PAGE_MAX)
            page = self._request("GET", f"/runs?limit={size}{after}")
            runs += page["runs"]
            if page["next"] is None:
                break
            after = f"&after={_quote(page['next'])}"
        return runs

    def _upload_once(self, path: Path) -> str:
        # The digest in the name keeps different files apart, and equal ones are uploaded once.
        try:
            with open(path, "rb") as file:
                digest = hashlib.sha256()
                while chunk := file.read(1 << 20):
                    digest.update(chunk)
        except OSError as error:
            raise PlanError([(os.fspath(path), error.strerror or str(error))]) from error
        plain = re.sub(r"[^A-Za-z0-9._-]", "_", path.name)
        name = f"{digest.hexdigest()[:16]}-{plain[-100:]}"
        known = {capture["name"] for capture in self._request("GET", "/captures")}
        return name if name in known else self.upload(path, name)

    def _request(self, method: str, path: str, document: object = None) -> Any:
        headers = {}
        body = None
        if document is not None:
            body = json.dumps(document).encode()
            headers["content-type"] = "application/json"
        answer = self._send(method, path, body, headers)
        return json.loads(answer) if answer else None

    def _send(
        self, method: str, path: str, body: bytes | BinaryIO | None, headers: dict[str, str]
    ) -> bytes:
        request = urllib.request.Request(
            self.url + _BASE + path, data=body, method=method, headers={**self._headers, **headers}
        )
        try:
            with self._opener.open(request, timeout=_TIMEOUT_S) as response:
                answer: bytes = response.read()
                return answer
        except urllib.error.HTTPError as error:
            raise _refused(error) from error
        except OSError as error:
            reason = getattr(error, "reason", error)
            raise ServerError(f"server {self.url}: {reason}") from error


class ServerRun:
    """A run on a server. It continues when this program ends.

    Commands to flows take effect after 25 ms; without flows they concern the whole run.
    """

    def __init__(self, server: Server, run: str) -> None:
        self._server = server
        self.id = run
        """ID of the run, also in the history of the server."""

    @property
    def state(self) -> str:
        """State: `preparing`, `prepared`, `armed`, `running`, `draining`, or a final one."""
        return str(self._get("")["state"])

    @property
    def progress(self) -> Progress:
        """Progress of the run."""
        return _progress(self._get("/progress"))

    def stop(self, *flows: str) -> None:
        """Stops the run, or only these flows. Returns at once."""
        self._command({"command": "stop_flows", "flows": flows} if flows else {"command": "stop"})

    def start(self, *flows: str) -> None:
        """Starts a prepared run, or flows that have ended or that wait for a trigger."""
        self._command({"command": "start_flows", "flows": flows} if flows else {"command": "start"})

    def pause(self, *flows: str) -> None:
        """Pauses the run, or flows of it."""
        self._command({"command": "pause", "flows": flows or None})

    def resume(self, *flows: str) -> None:
        """Resumes flows; without names, the run and all flows that commands paused."""
        self._command({"command": "resume", "flows": flows or None})

    def set_rate(self, rate: str, *flows: str) -> None:
        """Changes the rate of flows: `"1Mpps"`, `"10G-l1"`, `"10G-l2"` or `"max"`."""
        self._command({"command": "rate", "rate": rate, "flows": flows or None})

    def scale(self, factor: float, *flows: str) -> None:
        """Changes rates to a multiple of the plan's; also the loads of clients."""
        self._command({"command": "scale", "factor": f"{factor:.9f}", "flows": flows or None})

    def wait(
        self,
        timeout: float | None = None,
        progress: Callable[[Progress], object] | None = None,
    ) -> Result:
        """Waits for the end and returns the result.

        :param timeout: seconds; then raises `TimeoutError`, and the run continues
        :param progress: callback, called about ten times a second
        :raises Interrupted: after Ctrl-C, which stops the run; has the result so far
        :raises RunError: if the run has no result, or an error occurred
        """
        on_progress = None if progress is None else lambda: progress(self.progress)
        if wait_for_end(_Waiter(self), timeout, on_progress):
            raise Interrupted(self.result())
        result = self.result()
        if result.errors:
            raise RunError("\n".join(result.errors), result)
        return result

    def result(self) -> Result:
        """Returns the result of an ended run.

        :raises RunError: if it has none
        """
        try:
            return Result.from_dict(self._get("/result"))
        except ServerError as error:
            raise RunError(error.message) from error

    def report(self) -> str:
        """Returns the report of an ended run as HTML."""
        path = f"/runs/{_quote(self.id)}/report"
        return self._server._send("GET", path, None, {}).decode()

    def _get(self, path: str) -> Any:
        return self._server._request("GET", f"/runs/{_quote(self.id)}{path}")

    def _command(self, command: Mapping[str, object]) -> None:
        path = f"/runs/{_quote(self.id)}/commands"
        try:
            self._server._request("POST", path, command)
        except ServerError as error:
            # A run that has ended by itself needs no command.
            if error.code != "conflict":
                raise


class _Waiter:
    """A run of a server, as `wait_for_end` waits for it."""

    def __init__(self, run: ServerRun) -> None:
        self._run = run

    def wait(self, timeout_s: float | None = None) -> bool:
        while self._run.state not in _FINAL:
            if timeout_s is not None:
                time.sleep(timeout_s)
                return self._run.state in _FINAL
            time.sleep(0.05)
        return True

    def stop(self) -> None:
        self._run.stop()


def _port(document: dict[str, Any]) -> ServerPort:
    lease = document["lease"] or {}
    return ServerPort(
        name=document["name"],
        interface=document["interface"],
        link=document["link"],
        speed_bps=document["speed_bps"],
        user=lease.get("user"),
        session=lease.get("session"),
        runs=document["runs"],
    )


def _progress(document: dict[str, Any]) -> Progress:
    flows = {}
    for flow in document["flows"]:
        received = flow["received"] or {}
        flows[flow["name"]] = FlowCount(
            packets=flow["tx_frames"],
            bytes=flow["tx_bytes"],
            unsent=flow["tx_unsent"],
            received=received.get("frames", 0),
            received_bytes=received.get("bytes", 0),
            duplicated=received.get("duplicated", 0),
            reordered=received.get("reordered", 0),
            delay_mean_ns=received.get("delay_mean_ns"),
        )
    ports = document["ports"]
    return Progress(
        elapsed_s=document["elapsed_ns"] / 1e9,
        packets=sum(port["tx_frames"] for port in ports),
        bytes=sum(port["tx_bytes"] for port in ports),
        failed=sum(port["tx_failed"] for port in ports),
        flows=flows,
    )


def _refused(error: urllib.error.HTTPError) -> ServerError:
    text = error.read().decode(errors="replace")
    try:
        document = json.loads(text)
        places = [(place["path"], place["message"]) for place in document.get("errors", [])]
        return ServerError(document["message"], document["code"], places)
    except (ValueError, KeyError, TypeError):
        return ServerError(f"found status {error.code}; is it `wirestorm serve`?")


def _quote(segment: str) -> str:
    return urllib.parse.quote(segment, safe="")


def _base_url(address: str) -> str:
    scheme, separator, rest = address.rpartition("://")
    rest = rest.rstrip("/")
    # A bare IPv6 address has several colons, and no brackets.
    rest = f"[{rest}]" if rest.count(":") > 1 and not rest.startswith("[") else rest
    parts = urllib.parse.urlsplit(f"//{rest}")
    if separator and scheme not in ("http", "https") or not parts.hostname or parts.path:
        raise ValueError(
            f"address {address!r}: expected HOST, HOST:PORT, http://HOST:PORT or https://HOST:PORT"
        )
    host = parts.hostname
    is_loopback = host in ("localhost", "::1") or host.startswith("127.")
    scheme = scheme or ("http" if is_loopback else "https")
    bracketed = f"[{host}]" if ":" in host else host
    return f"{scheme}://{bracketed}:{parts.port or _PORT}"
