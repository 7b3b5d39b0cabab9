"""Exceptions of the stateful mode, with the names that scripts know."""

from __future__ import annotations

from collections.abc import Sequence

from trex.errors import TRexError


class ASTFError(TRexError):
    """An error in a stateful profile."""


class ASTFErrorBadParamCombination(ASTFError):
    """Both or none of two exclusive arguments."""

    def __init__(self, func: str, name1: str, name2: str, are_missing: bool = False) -> None:
        if are_missing:
            super().__init__(f"{func} needs '{name1}' or '{name2}', and neither is given")
        else:
            super().__init__(f"{func} takes either '{name1}' or '{name2}', not both: leave one out")


class ASTFErrorMissingParam(ASTFError):
    """A missing argument."""

    def __init__(self, func: str, name1: str, name2: str | None = None) -> None:
        names = f"'{name1}'" if name2 is None else f"'{name1}' or '{name2}'"
        super().__init__(f"{func} needs {names}, which is not given")


class ASTFErrorWrongType(ASTFError):
    """An argument of the wrong type."""

    def __init__(
        self, func: str, param: str, t: Sequence[type], allow_list: bool, got: object = None
    ) -> None:
        expected = " or ".join(one.__name__ for one in t)
        if allow_list:
            expected += ", or a list of such"
        found = "" if got is None else f" is of type {type(got).__name__},"
        super().__init__(f"argument '{param}' of {func}{found} expected type {expected}")


class ASTFErrorBadIp(ASTFError):
    """An invalid IP address."""

    def __init__(self, func: str, param: str, addr: object) -> None:
        super().__init__(f"argument '{param}' of {func} is {addr!r}, which is no IPv4 address")


class ASTFErrorBadIpRange(ASTFError):
    """An invalid range of IP addresses."""

    def __init__(self, func: str, param: str, addr: object, err: str) -> None:
        super().__init__(f"argument '{param}' of {func} is {addr!r}: {err}")


class ASTFErrorBadMac(ASTFError):
    """An invalid MAC address."""

    def __init__(self, func: str, param: str, mac: object) -> None:
        super().__init__(f"argument '{param}' of {func} is {mac!r}, which is no MAC address")


class ASTFErrorBadTG(ASTFError):
    """An unknown template group."""


class ASTFErrorOverlapIP(ASTFError):
    """Overlapping clients of two templates."""

    def __init__(self, range1: Sequence[str], range2: Sequence[str]) -> None:
        super().__init__(
            f"the addresses {range1[0]} to {range1[1]} of clients and {range2[0]} to {range2[1]} "
            "overlap: two pools must be equal or disjoint"
        )
