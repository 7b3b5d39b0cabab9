#!/bin/sh
# Arguments: interface, count.
folder=/proc/net/pktgen
echo reset >$folder/pgctrl
echo "add_device $1" >$folder/kpktgend_0
for setting in "count $2" "pkt_size 60" "delay 500000" "dst_mac 02:00:00:00:00:02" \
    "dst 198.51.100.9" "udp_src_min 2000" "udp_src_max 2005" "flag NO_TIMESTAMP"
do
    echo "$setting" >$folder/$1 || exit 5
done
echo start >$folder/pgctrl
grep -q "Result: OK:" $folder/$1
