#!/bin/bash
# pid 1 of one host of a test cluster: own processes, name, /proc, /dev/shm, /tmp, /run and sshd. Usage: host.sh STATE REPOSITORY NAME
set -euo pipefail
state=$1 repository=$2 name=$3
read -r pid _ </proc/self/stat # still the machine's /proc: the pid by which a test may kill this host
echo "$pid" >"$state/$name/init.pid"
hostname "$name"
mount --make-rprivate /
mount -t proc proc /proc
mount -t tmpfs -o mode=1777,size=2g tmpfs /dev/shm
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -m 755 /run/sshd # sshd refuses to start without it
mount --bind "$state/etc_hosts" /etc/hosts
mount --bind "$state/nsswitch" /etc/nsswitch.conf
home=$(getent passwd "$(id -u)" | cut -d: -f6) # sshd's, whatever HOME is here
[ ! -e "$home/.bashrc" ] || mount --bind /dev/null "$home/.bashrc" # sourced at every connection, at 100 ms where it does much

# An own /tmp in which the repository stays visible if it lies there.
case $repository in
/tmp/*)
  mkdir -p "$state/$name/repository"
  mount --bind "$repository" "$state/$name/repository"
  mount -t tmpfs -o mode=1777 tmpfs /tmp
  mkdir -p "$repository"
  mount --move "$state/$name/repository" "$repository"
  ;;
*) mount -t tmpfs -o mode=1777 tmpfs /tmp ;;
esac

"$(command -v sshd || echo /usr/sbin/sshd)" -D -f "$state/$name/sshd_config" -E "$state/$name/sshd.log" &
wait "$!" # bash reaps what is orphaned meanwhile, as an init must
