#!/bin/sh
# Many flows, for the kernel's pktgen or for `wirestorm pktgen`: 1,000 frames a second from one
# source to 64 destinations, 10 frames to each before the next.
#
# flows.sh INTERFACE FRAMES
set -e
[ $# -eq 2 ] || { echo "usage: $0 INTERFACE FRAMES" >&2; exit 2; }
pktgen=/proc/net/pktgen
device=$1@0

trap true INT # so that the result is shown after Ctrl-C, too

echo reset > $pktgen/pgctrl
echo "add_device $device" > $pktgen/kpktgend_0
for setting in \
    "count $2" \
    "pkt_size 60" \
    "ratep 1000" \
    "dst_mac 02:00:00:00:00:02" \
    "src_min 198.18.0.1" \
    "dst_min 198.19.0.1" \
    "dst_max 198.19.0.64" \
    "flows 64" \
    "flowlen 10" \
    "flag FLOW_SEQ"
do
    echo "$setting" > $pktgen/$device
done
echo start > $pktgen/pgctrl
grep -A1 "Result:" $pktgen/$device
