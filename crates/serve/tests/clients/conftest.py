"""A server in a network namespace of its own, and a browser beside it.

WIRESTORM_BINARY names the binary. The session runs in a new network namespace with a pair of
interfaces: it needs root, `unshare(2)` and ip(8). WIRESTORM_WEB_PROXY names a script that serves
the page and forwards the API (`node SCRIPT PORT PORT_OF_THE_API`), for a binary without the page.
"""

import ctypes
import itertools
import json
import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import expect, sync_playwright

CHROMIUM = shutil.which("chromium")
BINARY = os.environ.get("WIRESTORM_BINARY")
PROXY = os.environ.get("WIRESTORM_WEB_PROXY")
CLONE_NEWNET, CLONE_NEWNS = 0x40000000, 0x00020000
WAIT_S = 30

expect.set_options(timeout=WAIT_S * 1000)


def missing():
    """Returns why the tests cannot run; None if they can."""
    if BINARY is None:
        return "WIRESTORM_BINARY names no binary"
    if CHROMIUM is None:
        return "chromium is not installed"
    if os.geteuid() != 0:
        return "only root can create network namespaces"
    if shutil.which("ip") is None:
        return "ip (iproute2) is not installed"
    return None


@pytest.fixture(scope="session", autouse=True)
def namespace():
    """Moves the tests, and all that they start, into a new network namespace."""
    reason = missing()
    if reason:
        pytest.skip(reason)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET | CLONE_NEWNS) != 0:
        pytest.skip(f"unshare: {os.strerror(ctypes.get_errno())}")
    # /sys lists the interfaces of the namespace that mounted it.
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    subprocess.run(["mount", "-t", "sysfs", "sysfs", "/sys"], check=True)

    def ip(*arguments):
        subprocess.run(["ip", *arguments], check=True)

    ip("link", "set", "lo", "up")
    for name, peer in [("left", "right"), ("left2", "right2")]:
        ip("link", "add", name, "type", "veth", "peer", "name", peer)
        for it in (name, peer):
            # Without its own packets of IPv6 the links carry what the tests send.
            Path(f"/proc/sys/net/ipv6/conf/{it}/disable_ipv6").write_text("1")
            ip("link", "set", it, "up")


def free_port():
    with socket.socket() as it:
        it.bind(("127.0.0.1", 0))
        return it.getsockname()[1]


def wait_for(what, condition):
    """Waits until the condition is true, and returns its value."""
    end = time.monotonic() + WAIT_S
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < end, f"{what}: not within {WAIT_S} s"
        time.sleep(0.02)


@dataclass
class Server:
    """A server and its page."""

    url: str
    api: str
    process: subprocess.Popen
    directory: Path
    arguments: list
    tokens: dict = field(default_factory=dict)

    def call(self, method, path, body=None, user=None, text=None):
        """Sends a request to the API and returns the document in the answer."""
        data = text.encode() if text is not None else None
        headers = {}
        if body is not None:
            data = json.dumps(body).encode()
            headers["content-type"] = "application/json"
        if user is not None:
            headers["authorization"] = f"Bearer {self.tokens[user]}"
        request = urllib.request.Request(self.api + path, data, headers, method=method)
        with urllib.request.urlopen(request, timeout=WAIT_S) as response:
            content = response.read()
        return json.loads(content) if content else None

    def runs(self, user=None):
        return self.call("GET", "/runs", user=user)["runs"]

    def stop(self):
        self.process.terminate()
        self.process.wait(WAIT_S)

    def start(self):
        """Starts the process, again at the same address."""
        log = (self.directory / "server.log").open("ab")
        self.process = subprocess.Popen(self.arguments, stdout=log, stderr=log)
        wait_until_up(self.api, self.process, self.directory)


def wait_until_up(api, process, directory):
    def is_up():
        assert process.poll() is None, (directory / "server.log").read_text()
        try:
            urllib.request.urlopen(f"{api}/session", timeout=1)
        except urllib.error.HTTPError as error:
            # A server with users asks for a token.
            return error.code == 401
        except (urllib.error.URLError, OSError):
            return False
        return True

    wait_for("the server answers", is_up)


@pytest.fixture
def start_server(tmp_path):
    """Starts servers: `start_server(users={"ada": "operate"}, ports=["left", "right"], flags=[])`."""
    running = []
    numbers = itertools.count()

    def start(users=None, ports=("left", "right"), flags=()):
        directory = tmp_path / f"server-{next(numbers)}"
        directory.mkdir()
        state = directory / "state"
        tokens = {}
        for user, role in (users or {}).items():
            added = subprocess.run(
                [BINARY, "serve", "user", "add", user, "--role", role, "--state-dir", state],
                capture_output=True,
                text=True,
                check=True,
            )
            tokens[user] = added.stdout.strip()
        port = free_port()
        arguments = [BINARY, "serve", "--listen", f"127.0.0.1:{port}"]
        arguments += ["--state-dir", state, "--runs-dir", directory / "runs"]
        for name in ports:
            arguments += ["--port", f"{name}={name}"]
        arguments += flags
        if users:
            arguments.append("--require-user")
        api = f"http://127.0.0.1:{port}/api/v1"
        server = Server(f"http://127.0.0.1:{port}", api, None, directory, arguments, tokens)
        server.start()
        running.append(server)
        if PROXY:
            own = free_port()
            process = subprocess.Popen(["node", PROXY, str(own), str(port)])
            proxies.append(process)
            server.url = f"http://127.0.0.1:{own}"

            def is_up():
                try:
                    return urllib.request.urlopen(server.url, timeout=1)
                except (urllib.error.URLError, OSError):
                    return None

            wait_for("the proxy answers", is_up)
        return server

    proxies = []
    yield start
    for process in proxies:
        process.terminate()
        process.wait(WAIT_S)
    for server in running:
        server.stop()


@pytest.fixture
def server(start_server):
    """A server without users."""
    return start_server()


@pytest.fixture(scope="session")
def browser(namespace):
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


# Chromium reports each failed request in the console; the tests that cause them expect these.
EXPECTED = "Failed to load resource"


@pytest.fixture
def open_page(browser):
    """Opens pages. At the end none may have had an error, a message or a foreign request."""
    contexts = []
    problems = []

    def open_page(server, view="", user=None, failures=False, **options):
        options.setdefault("viewport", {"width": 1280, "height": 900})
        context = browser.new_context(accept_downloads=True, **options)
        contexts.append(context)
        context.set_default_timeout(WAIT_S * 1000)
        # Violations of the policy are messages of the console, too; the event names them.
        context.add_init_script(
            "addEventListener('securitypolicyviolation', (event) =>"
            " console.error(`policy: ${event.effectiveDirective} ${event.blockedURI}`))"
        )

        def watch(page):
            def on_console(message):
                if not (failures and EXPECTED in message.text):
                    problems.append((message.type, message.text))

            page.on("console", on_console)
            page.on("pageerror", lambda error: problems.append(("error", str(error))))
            page.on("dialog", lambda dialog: problems.append(("dialog", dialog.message)))
            page.on(
                "request",
                lambda request: (
                    None
                    if request.url.startswith((server.url, f"blob:{server.url}", "data:"))
                    else problems.append(("request", request.url))
                ),
            )

        context.on("page", watch)
        page = context.new_page()
        page.goto(f"{server.url}/{view}")
        if user is not None:
            page.get_by_label("Token").fill(server.tokens[user])
            page.get_by_role("button", name="Sign in").click()
            page.locator("#account").wait_for()
        return page

    open_page.problems = problems
    yield open_page
    for context in contexts:
        context.close()
    assert problems == []
