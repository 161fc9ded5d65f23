#!/bin/bash
# Everything that docs/performance.md says of GPUs, measured beside NVIDIA's library in one go.
#
#   bench/gpu/measure-all.sh OUT [GPUS [PATTERN]]    all GPUs; all parts, or those whose names match
#
# Of a checkout, or of a bundle (scripts/gpu-bundle.mjs). Each part leaves OUT/PART.txt, those with rows OUT/PART.json too;
# `node bench/gpu/charts.ts --out DIR OUT/*.json` draws them. A part that takes longer than its seconds is ended.
set -u
here=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)
home=$(cd "$here/../.." && pwd)
out=${1:?where to}
gpus=${2:-$(nvidia-smi -L | grep -c '^GPU ')}
pattern=${3:-.}
mkdir -p "$out"
out=$(cd "$out" && pwd)
export NCCLRUN_HOME=$home PATH=$home/bin:$PATH NCCL_NVLS_ENABLE=${NCCL_NVLS_ENABLE:-0}
bench=$here/bin
if [ ! -x "$bench/collectives" ]; then
  bench=$home/build-bench/gpu
  "$here/build.sh" "$bench" || exit 1
fi
rows=("$bench/collectives" --gpus "$gpus" --seconds 20)
part() {
  local name=$1 seconds=$2
  shift 2
  [[ $name =~ $pattern ]] || return 0
  echo "== $name"
  timeout -k 5 "$seconds" "$@" >"$out/$name.txt" 2>&1 || echo "   status $?"
  tail -n 4 "$out/$name.txt"
}

for mode in graph eager graph-window eager-window; do
  part "rows-$mode" 200 "${rows[@]}" --modes "$mode" --rounds 5 --milliseconds 4 --json "$out/rows-$mode.json"
done
# kernels where copy engines would be taken, and the other way round: where each begins to be faster
forms=("${rows[@]}" --only ours --sizes 1M:1G --modes eager,graph --rounds 3 --milliseconds 3)
part forms-kernels 100 env NCCL_ALGO=^copyengine "${forms[@]}" --json "$out/forms-kernels.json"
part forms-copies 100 env NCCL_ALGO=copyengine "${forms[@]}" --json "$out/forms-copies.json"
for sms in 8 16; do
  part "few-$sms" 60 env NCCLRUN_MAX_SMS=$sms "${rows[@]}" --only ours --collectives all_reduce,reduce_scatter \
    --sizes 64M,1G --modes eager --rounds 3 --milliseconds 5
done
part rooted 200 "${rows[@]}" --collectives reduce,gather,scatter,alltoall-in-place --sizes 32M:512M --modes eager,graph \
  --rounds 5 --milliseconds 5 --json "$out/rooted.json"
part barrier 60 "${rows[@]}" --barrier --rounds 9
part interference 120 "${rows[@]}" --interference --rounds 5
part enqueue 60 "${rows[@]}" --enqueue --rounds 51
part init 90 "${rows[@]}" --init --rounds 3
theirs=${NVIDIA_NCCL:-$(python3 -c 'import nvidia.nccl as n; print(list(n.__path__)[0] + "/lib/libnccl.so.2")')}
part one-thread 60 "$bench/one_thread" "$gpus" "$home/build/libnccl.so.2" "$theirs"
part torch-init 120 python3 "$here/torch/init.py" "$gpus" "$home/build/libnccl.so.2"
part tune 300 ncclrun tune -n "$gpus" --device cuda -f 4 --output "$out/tune.json"
