# The verbs backend (ours), verbs alone (raw) and perftest in turns over rxa and rxb, in a guest with rdma_rxe. Prints
# lines "CONTESTANT WHAT VALUE": microseconds one way, MB/s, and microseconds of all_reduce.
#
#   verbs_in_guest.sh ROUNDS NET_TRANSFERS RAW_VERBS NCCLRUN
set -u
rounds=$1 transfers=$2 raw=$3 ncclrun=$4
from=verbs,rxa,::ffff:10.8.0.1 to=verbs,rxb,::ffff:10.8.0.2
pings=400

# Waits for the first line of a file.
first() {
  until [ -s "$1" ]; do sleep 0.05; done
  head -n 1 "$1"
}

ours() {
  "$transfers" pong $to $pings >/tmp/listens &
  echo "ours latency-8 $("$transfers" ping $from "$(first /tmp/listens)" $pings)"
  wait
  for load in "65536 400" "1048576 50"; do
    rm -f /tmp/listens
    # The receiver sleeps, as that of ib_write_bw: two processors have the kernel's work, too.
    "$transfers" receive $to sleep $load >/tmp/listens &
    "$transfers" send $from "$(first /tmp/listens)" spin $load
    wait
    echo "ours bandwidth-${load% *} $(tail -n 1 /tmp/listens)"
  done
  rm -f /tmp/listens
}

raw() {
  RAW_VERBS_ROUNDS=$pings "$raw" libibverbs.so.1 rxa rxb | sed -n \
    -e 's/^ *8 B  one way *\([0-9.]*\).*/raw latency-8 \1/p' \
    -e 's/^ *8 B  advertised *\([0-9.]*\).*/advertised latency-8 \1/p' \
    -e 's/^ *\([0-9]*\) B *\([0-9.]*\) MB.*/raw bandwidth-\1 \2/p'
}

# PROGRAM DEVICE BYTES MESSAGES [PEER]: prints the row of its table
perftest() { "$1" -F -d "$2" -s "$3" -n "$4" ${5-} 2>/dev/null | grep "^ *$3 "; }

peers() {
  perftest ib_write_lat rxb 8 $pings >/dev/null &
  sleep 1
  echo "perftest latency-8 $(perftest ib_write_lat rxa 8 $pings 10.8.0.2 | awk '{ print $5 }')"
  wait
  for load in "65536 400" "1048576 50"; do
    perftest ib_write_bw rxb $load >/dev/null &
    sleep 1
    # Its MB are MiB.
    echo "perftest bandwidth-${load% *} $(perftest ib_write_bw rxa $load 10.8.0.2 | awk '{ print $4 * 1.048576 }')"
    wait
  done
}

# NETWORK: rows of an all_reduce of two hosts
sums() {
  "$ncclrun" perf all_reduce --device host -n 2 --simulate-hosts 2 -b 64K -e 64M -f 32 --warmup 2 --iters 3 \
    -x NCCL_NET="$1" -x NCCL_IB_TIMEOUT=20 -x NCCL_IB_HCA=rxa,rxb --json |
    grep -o '"bytes":[0-9]*,[^}]*"inPlace":false[^}]*"timeUs":[0-9.]*' |
    sed "s/\"bytes\":\([0-9]*\).*\"timeUs\":\([0-9.]*\)/$1 all_reduce-\1 \2/"
}

for ((round = 0; round < rounds; round++)); do
  ours
  raw
  peers
  [ $round -gt 2 ] && continue
  sums IB
  sums Socket
done
