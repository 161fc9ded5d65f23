# Sourced by commands in a guest: two hosts, left and right, with two RoCE devices each: left has rxa and rxc, right has
# rxb and rxd, and a cable connects rxa with rxb (va, vb) and rxc with rxd (vc, vd). They share the network namespace, for
# rdma_rxe routes in the first one only; each is a mount namespace in which the other's devices cannot be opened.
ip link add vc mtu 9000 type veth peer name vd mtu 9000
for name in vc vd; do
  echo 1 >/proc/sys/net/ipv4/conf/$name/accept_local
  echo 0 >/proc/sys/net/ipv4/conf/$name/rp_filter
  echo 1 >/proc/sys/net/ipv4/conf/$name/arp_ignore
done
ip address add 10.8.1.1/24 dev vc
ip address add 10.8.1.2/24 dev vd
ip link set vc up
ip link set vd up
rdma link add rxc type rxe netdev vc
rdma link add rxd type rxe netdev vd
ln -s /proc/self/fd /dev/fd # devtmpfs has none, and <( ) needs it
export XDG_CACHE_HOME=/tmp

# For --rsh: HOST COMMAND...
cat >/tmp/rsh <<'END'
#!/bin/bash
export host=$1
shift
exec unshare --mount --uts bash -c '
  hostname "$host"
  [ "$host" = left ] && others="rxb rxd" || others="rxa rxc"
  for device in /sys/class/infiniband_verbs/uverbs*; do
    case " $others " in *" $(cat "$device/ibdev") "*) mount --bind /dev/null "/dev/infiniband/${device##*/}" ;; esac
  done
  exec bash -c "$*"' bash "$@"
END
chmod +x /tmp/rsh

# Starts the words after `ncclrun` as a job of two hosts; what it prints is in the file /tmp/log. It reads from
# descriptor 9 until that is closed.
start() {
  rm -f /tmp/input /tmp/log
  mkfifo /tmp/input
  bin/ncclrun -H left:1,right:1 --rsh /tmp/rsh --tag-output=rank "$@" </tmp/input >/tmp/log 2>&1 9>&- &
  job=$!
  exec 9>/tmp/input
}

# Returns when the job has printed a line that matches, or fails after a minute.
await() {
  timeout 60 grep -q -m 1 -e "$1" <(exec tail -n +1 -f /tmp/log) && return
  echo "no line matches $1:"
  cat /tmp/log
  exit 1
}

# Lets the program end by itself, and prints what the job has printed, and its status.
finish() {
  exec 9>&-
  wait "$job"
  local status=$?
  cat /tmp/log
  echo "status $status"
}
