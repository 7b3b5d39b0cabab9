"""`python -m trex.stl.dump PROFILE`: prints the streams of a profile as JSON."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys

from trex.errors import TRexError
from trex.tunables import parse_tunables


def main(arguments: list[str] | None = None) -> int:
    """Prints the document. Returns 0, or 1 after a message on standard error."""
    options = _parser().parse_args(arguments)
    # Output of the profile goes to standard error; standard output is for the document.
    with contextlib.redirect_stdout(sys.stderr):
        # Imported late, because scapy takes a while to load and `--help` does not need it.
        import trex.stl.api  # noqa: F401  # sets scapy's defaults
        from trex.stl.profile import STLProfile

        try:
            profile = STLProfile.load(
                options.profile,
                direction=options.direction,
                port_id=options.port,
                **parse_tunables(options.tunables),
            )
        except (TRexError, OSError) as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
    if profile is not None:
        json.dump(profile.to_json(), sys.stdout, indent=2)
        print()
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m trex.stl.dump",
        description="Print the streams of a profile as the JSON document that a server reads.",
    )
    parser.add_argument("profile", help="a .py, .json, .yaml, .pcap or .cap file")
    parser.add_argument(
        "--direction",
        type=int,
        default=0,
        choices=(0, 1),
        help="0 (default), or 1 for the reverse direction",
    )
    parser.add_argument("--port", type=int, default=0, help="number of the port, 0 if not given")
    parser.add_argument(
        "-t",
        "--tunables",
        nargs=argparse.REMAINDER,
        default=[],
        help="arguments of the profile: `-t --size 100`, or `-t size=100,pps=10`; the last flag",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
