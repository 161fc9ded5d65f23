#!/bin/busybox sh
# First process of the guest. Up to "guest: ready" it does what every run shares: that state is kept as a snapshot, in
# which nothing of the host's file system may be mounted yet. Then it reads a line from the console and runs a command.
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
while read -r module; do
  insmod "/modules/$module" 2>/dev/null || echo "guest: insmod $module failed"
done </modules/order
ip link set lo up
sh /links.sh || echo 'guest: no devices'
echo 'guest: ready'

read -r seconds guest </dev/ttyS0
date -s "@$seconds" >/dev/null
# Of two guests, each has a device of its own on the cable between them: rxn at 10.9.0.1 and 10.9.0.2. Both come from one
# snapshot, so each gets its own hardware address first.
if [ "$guest" != 0 ]; then
  for name in /sys/bus/virtio/devices/*/net/*; do name=${name##*/}; done
  /tools/bin/ip link set "$name" address "52:54:00:00:00:0$guest" mtu 9000 up
  /tools/bin/ip address add "10.9.0.$guest/24" dev "$name"
  /tools/bin/rdma link add rxn type rxe netdev "$name"
  until grep -q ACTIVE /sys/class/infiniband/rxn/ports/1/state && grep -q ':ffff:' /sys/class/infiniband/rxn/ports/1/gids/1; do
    usleep 20000
  done
fi
options=trans=virtio,version=9p2000.L,msize=512000
if ! mount -t 9p -o "$options,cache=loose,ro" root /host; then
  echo 'guest: no file system of the host'
  poweroff -f
fi
for directory in proc sys dev; do mount --bind "/$directory" "/host/$directory"; done
for directory in run tmp; do mount -t tmpfs "$directory" "/host/$directory"; done
mkdir -p /host/dev/shm
mount -t tmpfs shm /host/dev/shm
mkdir -p /host/run/out
mount -t 9p -o "$options,cache=none" out /host/run/out
echo 'guest: begins'
(chroot /host /bin/bash /run/out/command.sh; echo $? >/host/run/out/status) </dev/null 2>&1 | cat
echo 'guest: ends'
sync
poweroff -f
