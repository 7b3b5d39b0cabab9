"""Services: protocols that run as clients on a port (ARP, ND, ping, DHCP)."""
