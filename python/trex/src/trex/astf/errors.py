"""The errors of the stateful mode, under the names that scripts know."""

from __future__ import annotations

from collections.abc import Sequence

from trex.errors import TRexError


class ASTFError(TRexError):
    """Anything about a stateful profile that is refused."""


class ASTFErrorBadParamCombination(ASTFError):
    """Arguments of which one has to be given, and not both."""

    def __init__(self, func: str, name1: str, name2: str, are_missing: bool = False) -> None:
        if are_missing:
            super().__init__(f"{func} needs '{name1}' or '{name2}', and neither is given")
        else:
            super().__init__(f"{func} takes either '{name1}' or '{name2}', not both: leave one out")


class ASTFErrorMissingParam(ASTFError):
    """An argument that has to be given and is not."""

    def __init__(self, func: str, name1: str, name2: str | None = None) -> None:
        wanted = f"'{name1}'" if name2 is None else f"'{name1}' or '{name2}'"
        super().__init__(f"{func} needs {wanted}, which is not given")


class ASTFErrorWrongType(ASTFError):
    """An argument of the wrong type."""

    def __init__(
        self, func: str, param: str, t: Sequence[type], allow_list: bool, got: object = None
    ) -> None:
        expected = " or ".join(one.__name__ for one in t)
        if allow_list:
            expected += ", or a list of such"
        found = "" if got is None else f" is of type {type(got).__name__},"
        super().__init__(f"argument '{param}' of {func}{found} has to be of type {expected}")


class ASTFErrorBadIp(ASTFError):
    """What should be an IP address and is none."""

    def __init__(self, func: str, param: str, addr: object) -> None:
        super().__init__(f"argument '{param}' of {func} is {addr!r}, which is no IPv4 address")


class ASTFErrorBadIpRange(ASTFError):
    """What should be a range of IP addresses and is none."""

    def __init__(self, func: str, param: str, addr: object, err: str) -> None:
        super().__init__(f"argument '{param}' of {func} is {addr!r}: {err}")


class ASTFErrorBadMac(ASTFError):
    """What should be a MAC address and is none."""

    def __init__(self, func: str, param: str, mac: object) -> None:
        super().__init__(f"argument '{param}' of {func} is {mac!r}, which is no MAC address")


class ASTFErrorBadTG(ASTFError):
    """The name of a template group that means nothing."""


class ASTFErrorOverlapIP(ASTFError):
    """Clients of two templates with some addresses in common."""

    def __init__(self, range1: Sequence[str], range2: Sequence[str]) -> None:
        super().__init__(
            f"the addresses {range1[0]} to {range1[1]} of clients and {range2[0]} to {range2[1]} "
            "overlap: two pools have to be the same, or to have no address in common"
        )
