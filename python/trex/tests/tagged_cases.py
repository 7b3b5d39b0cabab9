"""Calls for tagged packet groups that this machine's ports and a server refuse alike."""

from __future__ import annotations


def dot1q(vlan):
    return {"type": "Dot1Q", "value": {"vlan": vlan}}


#: Calls with two tags and three groups, which port 1 receives, and the message of the error.
INVALID_CALLS = [
    (lambda c: c.enable_tpg(3, [dot1q(2)]), "already"),
    (lambda c: c.get_tpg_stats(0, 0, 0, 1), "port"),
    (lambda c: c.get_tpg_stats("1", 0, 0, 1), "port"),
    (lambda c: c.get_tpg_stats(1, 3, 0, 1), "tpgid"),
    (lambda c: c.get_tpg_stats(1, 0, 0, 5), "max_tag 5"),
    (lambda c: c.get_tpg_stats(1, 0, 1, 1), "max_tag 1"),
    (lambda c: c.get_tpg_stats(1, 0, 0, 1, max_sections="2"), "max_sections"),
    (lambda c: c.get_tpg_tags(2, 1), "min_tag 2 and max_tag 1"),
    (lambda c: c.get_tpg_tags(0, 3), "max_tag 3"),
    (lambda c: c.get_tpg_tx_stats(0, 3), "tpgid"),
    (lambda c: c.clear_tpg_stats(1, 0), "either max_tag or tag_list"),
    (lambda c: c.clear_tpg_stats(1, 0, tag_list=[]), "either max_tag or tag_list"),
    (lambda c: c.clear_tpg_stats(1, 0, 0, 2, tag_list=[1]), "either max_tag or tag_list"),
    (lambda c: c.clear_tpg_stats(1, 0, tag_list=[4]), "tag_list"),
    (lambda c: c.get_tpg_unknown_tags(0), "port"),
    (lambda c: c.update_tpg_tags("Dot1Q"), "new_tags"),
    (lambda c: c.get_tpg_status(username="me", port=0), "either username or port"),
    (lambda c: c.disable_tpg(username="nobody"), "not enabled"),
]
