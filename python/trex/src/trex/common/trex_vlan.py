"""VLAN tags. The code is in `trex.client.vlan`."""

from trex.client.vlan import VLAN

__all__ = ["VLAN"]
