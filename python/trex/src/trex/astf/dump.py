"""`python -m trex.astf.dump PROFILE`: prints a stateful profile as JSON, or its statistics."""

from __future__ import annotations

import argparse
import contextlib
import io
import sys

from trex.errors import TRexError
from trex.tunables import parse_tunables


def main(arguments: list[str] | None = None) -> int:
    """Prints the document. Returns 0, or 1 after a message on standard error."""
    options = _parser().parse_args(arguments)
    text = io.StringIO()
    # Output of the profile goes to standard error; standard output is for the document.
    with contextlib.redirect_stdout(sys.stderr):
        from trex.astf.profile import ASTFProfile

        try:
            profile = ASTFProfile.load(options.profile, **parse_tunables(options.tunables))
            if profile is None:
                return 0
            with contextlib.redirect_stdout(text):
                if options.stat:
                    profile.print_stats()
                else:
                    print(profile.to_json_str())
        except (TRexError, OSError) as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
    sys.stdout.write(text.getvalue())
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m trex.astf.dump",
        description="Print a stateful profile as the JSON document that a server reads.",
        epilog="examples:\n"
        "  python -m trex.astf.dump http_simple.py\n"
        "  python -m trex.astf.dump --stat http_eflow.py -t --size 100",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("profile", help="a .py or .json file")
    parser.add_argument(
        "--stat",
        action="store_true",
        help="print bytes, flows/s and bit/s of each template instead",
    )
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
