# Two RoCE devices on the ends of one cable: rxa at 10.8.0.1 and rxb at 10.8.0.2, both in this network namespace, since
# rdma_rxe of Linux 6.1 looks up routes only in the first one. The settings let packets between two addresses of one
# machine leave it by the cable.
set -e
mtu=9000
iproute=/tools/bin/ip
$iproute link add va mtu $mtu type veth peer name vb mtu $mtu
for name in all va vb; do
  echo 1 >/proc/sys/net/ipv4/conf/$name/accept_local
  echo 0 >/proc/sys/net/ipv4/conf/$name/rp_filter
  echo 1 >/proc/sys/net/ipv4/conf/$name/arp_ignore
done
$iproute address add 10.8.0.1/24 dev va
$iproute address add 10.8.0.2/24 dev vb
$iproute link set va up
$iproute link set vb up
/tools/bin/rdma link add rxa type rxe netdev va
/tools/bin/rdma link add rxb type rxe netdev vb
# Ready when both are active and have the address of IPv4, at index 1.
tries=0
until grep -q ACTIVE /sys/class/infiniband/rxa/ports/1/state && grep -q ACTIVE /sys/class/infiniband/rxb/ports/1/state &&
  grep -q ':ffff:' /sys/class/infiniband/rxa/ports/1/gids/1 && grep -q ':ffff:' /sys/class/infiniband/rxb/ports/1/gids/1; do
  tries=$((tries + 1))
  [ $tries -lt 200 ] || exit 1
  usleep 50000
done
