#!/bin/bash
# pid 1 of a test cluster, and its login node. Usage: login.sh STATE REPOSITORY HOST...
#
# Runs in network, mount, UTS and pid namespaces of its own (cluster.ts starts it through unshare), so everything here disappears with
# this process: the bridge, the hosts, their processes, the mounts. Its standard input is the lifeline: at end of file it cleans up and
# ends, whatever became of the test. A line "boot HOST" on it starts a host that was killed.
# It keeps the machine's /proc: what runs on the login node keeps its real pids.
set -euo pipefail
state=$1 repository=$2
shift 2
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
read -r pid _ </proc/self/stat
echo "$pid" >"$state/login.pid"

hostname login
mount --make-rprivate /
mount -t tmpfs -o mode=1777,size=2g tmpfs /dev/shm # as every host has it
mount --bind "$state/etc_hosts" /etc/hosts
mount --bind "$state/nsswitch" /etc/nsswitch.conf
ip -batch - <<IP
link set lo up
link add ncbr0 type bridge stp_state 0 forward_delay 0 mcast_snooping 0
address add 10.77.0.1/24 dev ncbr0
link set ncbr0 up
IP

# A host's processes; its network namespace outlives them, as a kernel outlives its processes.
boot() {
  local clock=()
  [ ! -e "$state/$1/clock" ] || clock=(--time --monotonic "$(cat "$state/$1/clock")")
  nsenter --net="$state/$1/net" unshare --uts --ipc --mount --pid "${clock[@]}" --fork --kill-child=KILL \
    "$here/host.sh" "$state" "$repository" "$1" </dev/null >"$state/$1/init.log" 2>&1 &
}

for host; do
  : >"$state/$host/net"
  # Not "unshare --net=FILE": that looks itself up in /proc by a pid which this /proc does not know.
  unshare --net mount --bind /proc/self/ns/net "$state/$host/net"
  # "netns 1" is this process: the cable's other end comes out here.
  nsenter --net="$state/$host/net" ip -batch - <<IP
link set lo up
link add eth0 type veth peer name cable-$host netns 1
address add $(cat "$state/$host/address")/24 dev eth0
link set eth0 up
IP
  ip link set "cable-$host" master ncbr0 up
  boot "$host"
done
echo ready

while read -r command host; do
  [ "$command" = boot ] && boot "$host"
done

# The test is done, or gone without a word. Frozen processes do not die: thaw first.
mapfile -t groups < <(cat "$state/frozen" 2>/dev/null)
for group in "${groups[@]}"; do
  if [ -e "$group/freezer.state" ]; then echo THAWED >"$group/freezer.state"; fi
  if [ -e "$group/cgroup.freeze" ]; then echo 0 >"$group/cgroup.freeze"; fi
done
set +e
exec 2>/dev/null # else bash tells of each child that it lost
kill -KILL -1 # all of this pid namespace and those below, but not this process
wait
for group in "${groups[@]}"; do rmdir "$group" 2>/dev/null; done
umount "$state"/*/net
rm -rf "$state"
