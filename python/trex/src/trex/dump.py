"""`python -m trex.dump PROFILE`: prints a profile as JSON.

A stateful profile, whose `register()` object has a `get_profile`, becomes an object. A stateless
profile becomes a list of streams.
"""

from __future__ import annotations

import contextlib
import sys

from trex.errors import TRexError
from trex.loader import registered


def main(arguments: list[str] | None = None) -> int:
    """Prints the document. Returns 0, or 1 after a message on standard error."""
    # Imports the package before the profile's folder enters the module path. A `profile.py` there
    # would shadow the module `profile` of the standard library.
    import trex.astf.api
    import trex.astf.dump
    import trex.stl.api
    import trex.stl.dump

    words = sys.argv[1:] if arguments is None else arguments
    path = words[0] if words else ""
    try:
        is_stateful = path.endswith(".py") and _is_stateful(path)
    except TRexError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if not is_stateful:
        return trex.stl.dump.main(words)
    tunables = words.index("-t") if "-t" in words else len(words)
    return trex.astf.dump.main([path, *words[tunables:]])


def _is_stateful(path: str) -> bool:
    # Profiles can print while they load; standard output is for the JSON document.
    with contextlib.redirect_stdout(None), registered(path) as described:
        return hasattr(described, "get_profile")


if __name__ == "__main__":
    sys.exit(main())
