"""Texts of errors."""

from __future__ import annotations

import pytest

from trex.errors import TRexError


def test_errors_have_their_traceback():
    assert TRexError("wrong").get_tb() == ""

    def fails():
        raise TRexError("wrong")

    with pytest.raises(TRexError) as caught:
        fails()
    *_, first, second, _ = caught.value.get_tb().split("\n")
    assert first.startswith("#1     test_errors.py:") and first.endswith(" - 'fails()'")
    assert second.startswith("#0     test_errors.py:")
    assert second.endswith("""- 'raise TRexError("wrong")'""")
