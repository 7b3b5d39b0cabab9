"""Requests to a server: JSON-RPC over a REQ socket, in batches, compressed if they are long."""

from __future__ import annotations

import json
import struct
import threading
import zlib
from collections.abc import Iterable, Sequence
from itertools import count
from typing import Any

from trex.errors import TRexError

#: Version of the API for each mode, as in TRex v3.08.
API_VERSIONS = {"STL": (5, 1), "ASTF": (2, 3)}
_TIMEOUT_S = 60.0
# Compressed messages begin with a magic number and the length of their text.
_HEADER = struct.Struct("!II")
_MAGIC = 0xABE85CEA
_COMPRESSED_FROM = 4096
# Limits of a batch. TRex's server takes messages up to 999,999 bytes.
_BATCH_BYTES_MAX = 500_000
_BATCH_MAX = 500

Request = tuple[str, dict[str, Any]]


def _zmq() -> Any:
    try:
        import zmq
    except ImportError as error:
        raise TRexError(
            f"a server needs pyzmq ({error}): pip install 'wirestorm-trex[server]'"
        ) from error
    return zmq


class Connection:
    """A connection to the requests of a server."""

    def __init__(self, host: str, port: int, timeout_s: float | None = None) -> None:
        self.address = f"tcp://{host}:{port}"
        self._timeout_ms = round(1000 * (_TIMEOUT_S if timeout_s is None else timeout_s))
        self._zmq = _zmq()
        self._context = self._zmq.Context()
        self._socket: Any = None
        self._api_handler = ""
        self._lock = threading.Lock()
        self._ids = count(1)

    def open(self, mode: str) -> None:
        """Checks the server's version and mode. Raises `TRexError` if it does not answer."""
        major, minor = API_VERSIONS[mode]
        found = self.call("api_sync_v2", {"name": mode, "major": major, "minor": minor})
        self._api_handler = found["api_h"]

    def close(self) -> None:
        """Closes the connection."""
        with self._lock:
            self._close_socket()
            self._context.term()

    def call(self, method: str, parameters: dict[str, Any] | None = None) -> Any:
        """Executes a command. Returns its result; raises `TRexError` if it fails."""
        (answer,) = self._exchange([self._document(method, parameters or {})])
        return _result(method, answer)

    def call_all(self, requests: Iterable[Request]) -> list[Any]:
        """Executes commands. Returns their results; raises the first error after all have run."""
        requests = list(requests)
        documents = (self._document(*request) for request in requests)
        answers = [answer for batch in _batches(documents) for answer in self._exchange(batch)]
        return [_result(method, answer) for (method, _), answer in zip(requests, answers)]

    def _document(self, method: str, parameters: dict[str, Any]) -> str:
        return json.dumps(
            {
                "jsonrpc": "2.0",
                "id": next(self._ids),
                "method": method,
                "params": {**parameters, "api_h": self._api_handler},
            }
        )

    def _exchange(self, documents: Sequence[str]) -> list[dict[str, Any]]:
        batch = f"[{','.join(documents)}]" if len(documents) > 1 else documents[0]
        text = batch.encode()
        with self._lock:
            answer = self._transfer(_packed(text))
        try:
            found = json.loads(_unpacked(answer))
        except (ValueError, zlib.error) as error:
            raise TRexError(f"{self.address}: the answer is not JSON: {error}") from error
        found = found if isinstance(found, list) else [found]
        if len(found) == 1 and len(documents) > 1:
            # An error of the whole batch.
            found *= len(documents)
        if len(found) != len(documents) or not all(isinstance(it, dict) for it in found):
            raise TRexError(
                f"{self.address}: found {len(found)} answers to {len(documents)} requests"
            )
        return found

    def _transfer(self, message: bytes) -> bytes:
        zmq = self._zmq
        if self._socket is None:
            self._socket = self._context.socket(zmq.REQ)
            self._socket.setsockopt(zmq.LINGER, 0)
            self._socket.setsockopt(zmq.SNDTIMEO, self._timeout_ms)
            self._socket.setsockopt(zmq.RCVTIMEO, self._timeout_ms)
            self._socket.connect(self.address)
        try:
            self._socket.send(message)
            answer: bytes = self._socket.recv()
        except zmq.ZMQError as error:
            # A socket that waits for an answer cannot send the next request.
            self._close_socket()
            reason = "no answer" if isinstance(error, zmq.Again) else str(error)
            raise TRexError(
                f"server {self.address}: {reason}; is `wirestorm serve --trex` running there, and "
                "is this address in its --trex-clients?"
            ) from error
        except BaseException:
            self._close_socket()
            raise
        return answer

    def _close_socket(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def _result(method: str, answer: dict[str, Any]) -> Any:
    error = answer.get("error")
    if error is None:
        return answer.get("result")
    text = error.get("specific_err") or error.get("message") if isinstance(error, dict) else error
    raise TRexError(f"{method}: {text}")


def _batches(documents: Iterable[str]) -> Iterable[list[str]]:
    batch: list[str] = []
    size = 0
    for document in documents:
        if batch and (len(batch) == _BATCH_MAX or size + len(document) > _BATCH_BYTES_MAX):
            yield batch
            batch, size = [], 0
        batch.append(document)
        size += len(document)
    if batch:
        yield batch


def _packed(text: bytes) -> bytes:
    if len(text) < _COMPRESSED_FROM:
        return text
    return _HEADER.pack(_MAGIC, len(text)) + zlib.compress(text, level=1)


def _unpacked(message: bytes) -> bytes:
    if len(message) < _HEADER.size or _HEADER.unpack_from(message)[0] != _MAGIC:
        return message
    return zlib.decompress(message[_HEADER.size :])
