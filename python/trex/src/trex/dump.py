"""`python -m trex.dump PROFILE`: prints a profile of either kind as JSON.

A stateful one, whose `register()` has a `get_profile`, is an object; the streams of any other are a
list.
"""

from __future__ import annotations

import contextlib
import sys

from trex.errors import TRexError
from trex.loader import registered


def main(arguments: list[str] | None = None) -> int:
    """Prints the document; 0, or 1 after a message on standard error."""
    # All that profiles import from here comes before the profile's own folder is on the module
    # path: a `profile.py` there would be the standard library's `profile` to it.
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
    # What a profile prints, it prints for people, and when it is loaded.
    with contextlib.redirect_stdout(None), registered(path) as described:
        return hasattr(described, "get_profile")


if __name__ == "__main__":
    sys.exit(main())
