"""Commands for captures of ports."""

from __future__ import annotations

from typing import Any

from trex.arguments import validate_type
from trex.client import captures
from trex.client.captures import Capture
from trex.client.session import Session
from trex.errors import TRexArgumentError, TRexError


class CaptureCommands(Session):
    """Captures by ID."""

    def __init__(self, *arguments: Any, **kwargs: Any) -> None:
        super().__init__(*arguments, **kwargs)
        self._captures: dict[int, Capture] = {}

    def start_capture(
        self,
        tx_ports: Any = None,
        rx_ports: Any = None,
        limit: int = 1000,
        mode: str = "fixed",
        bpf_filter: str = "",
        endpoint: str = "",
        snaplen: int = 0,
    ) -> dict[str, Any]:
        """Captures frames that ports in service mode receive or send.

        :param tx_ports: ports whose sent frames are captured, for traffic that starts later; such
            traffic takes the slower path through the kernel's taps
        :param rx_ports: ports whose received frames are captured
        :param limit: maximum number of frames; 0 only counts
        :param mode: keep the first frames (`fixed`) or the last ones (`cyclic`)
        :param bpf_filter: tcpdump expression
        :returns: ID and start time of the capture
        """
        self._require_session()
        validate_type("limit", limit, int)
        if endpoint:
            raise TRexError(
                "endpoint: not supported; fetch the capture, or write it with stop_capture()"
            )
        rx, tx = (self._acquired_ports([] if it is None else it) for it in (rx_ports, tx_ports))
        if not rx and not tx:
            raise TRexError("start_capture: expected at least one port in tx_ports or rx_ports")
        self._check_capture(rx, tx)
        number = max(self._captures, default=0) + 1
        rx_interfaces, tx_interfaces = (
            {it: self.links[it].interface for it in numbers} for numbers in (rx, tx)
        )
        arguments = (rx_interfaces, tx_interfaces, limit, mode, bpf_filter, snaplen)
        capture = Capture(number, *arguments)
        self._captures[number] = capture
        return {"id": number, "ts": capture.started}

    def stop_capture(self, capture_id: int, output: Any = None, endpoint_cb: Any = None) -> None:
        """Ends a capture and writes its frames to a list or a file.

        A file name with the suffix `.pcapng` selects pcapng, any other pcap. If the output is not
        writable, the capture continues.
        """
        capture = self._capture(capture_id)
        captures.check_output(output)
        capture.stop()
        captures.write(capture.pop_frames(), output)
        del self._captures[capture_id]

    def fetch_capture_packets(
        self,
        capture_id: int,
        output: Any,
        pkt_count: int = 1000,
        fetch_limit: int = 50,
        snaplen: int = 0,
    ) -> None:
        """Removes the oldest frames of a running capture, at most `pkt_count`.

        `snaplen` truncates each frame; 0 keeps it whole. `fetch_limit` has no effect.
        """
        capture = self._capture(capture_id)
        captures.check_output(output)
        frames = capture.pop_frames(pkt_count)
        if snaplen:
            frames = [{**frame, "binary": frame["binary"][:snaplen]} for frame in frames]
        captures.write(frames, output)

    def get_capture_status(self) -> dict[int, dict[str, Any]]:
        """Returns the status of the captures by ID."""
        return {number: capture.status() for number, capture in self._captures.items()}

    def remove_all_captures(self) -> None:
        """Ends all captures and discards their frames."""
        for number in list(self._captures):
            self._captures.pop(number).stop()

    def _check_capture(self, rx_ports: list[int], tx_ports: list[int]) -> None:
        """Raises if a capture could not see the frames of these ports."""
        for number in {*rx_ports, *tx_ports}:
            if self.needs_service_mode and not self.links[number].is_service:
                raise TRexError(f"port {number} is not in service mode: set_service_mode() first")
        for number in tx_ports:
            invisible = [it for it in self.links[number].active if not it.is_visible]
            if invisible:
                name = invisible[0].display_name(number)
                raise TRexError(
                    f"{name} sends past the kernel's taps; stop it and start it after the capture"
                )

    def _captures_tx(self, port: int) -> bool:
        """Returns whether a capture takes the sent frames of a port."""
        return any(port in capture.tx_ports for capture in self._captures.values())

    def _captures_rx(self, port: int) -> bool:
        """Returns whether a capture takes the received frames of a port."""
        return any(port in capture.rx_ports for capture in self._captures.values())

    def _capture(self, number: int) -> Capture:
        self._require_session()
        if number not in self._captures:
            known = ", ".join(map(str, self._captures)) or "none"
            raise TRexArgumentError("capture_id", number, known)
        return self._captures[number]
