"""Tags of tagged packet groups."""

from __future__ import annotations

import json
import os
from typing import Any

from trex.errors import TRexError
from trex.loader import registered
from trex.tunables import call_with_tunables


class STLTaggedPktGroupTagConf:
    """Loads a list of tags, such as `{"type": "Dot1Q", "value": {"vlan": 7}}`."""

    @classmethod
    def load(cls, tpg_conf_path: str, **kwargs: Any) -> list[dict[str, Any]] | None:
        """Loads a Python file (`register().get_tpg_conf`) or a JSON file by its suffix."""
        suffix = os.path.splitext(tpg_conf_path)[1]
        if suffix == ".py":
            return cls.load_py(tpg_conf_path, **kwargs)
        if suffix == ".json":
            return cls.load_json(tpg_conf_path)
        raise TRexError(f"expected a .py or .json file with tags, not '{tpg_conf_path}'")

    @staticmethod
    def load_py(tpg_conf_path: str, **kwargs: Any) -> list[dict[str, Any]] | None:
        """Loads a Python file with its tunables. Returns None if it only printed its help."""
        with registered(tpg_conf_path) as tags:
            return call_with_tunables(tags.get_tpg_conf, kwargs, "get_tpg_conf", "a list of tags")

    @staticmethod
    def load_json(tpg_conf_path: str) -> list[dict[str, Any]]:
        """Loads a JSON file."""
        try:
            with open(tpg_conf_path) as file:
                return json.load(file)
        except (OSError, ValueError) as error:
            raise TRexError(f"'{tpg_conf_path}' is no JSON file: {error}") from error
