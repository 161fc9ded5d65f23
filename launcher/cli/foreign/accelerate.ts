/** Options of Hugging Face's `accelerate launch` that neither ncclrun nor torchrun has under that name. */
import { foreignTool } from './foreign-option.ts';

const once = 'ncclrun is started once, for all hosts, and brings the ranks together itself';
const plugin =
  'give Accelerator its plugin in the program (deepspeed_plugin=, fsdp_plugin=, megatron_lm_plugin=), or write -x ACCELERATE_…';
const otherDevice = 'run accelerate launch itself for that; NCCLRUN_DEVICE=host is for ranks without GPUs';

export const accelerate = foreignTool('Accelerate', 'accelerate launch', [
  ['--num-processes', 'N', 'means', '-n {1}'],
  ['--num-machines', 'N', 'nodes', ''],
  ['--machine-rank', 'N', 'ignored', once, /^0$/u],
  ['--machine-rank', 'N', 'instead', 'start ncclrun once, on one host, and name all hosts with -H or --hostfile'],
  ['--main-process-ip', 'HOST', 'ignored', "MASTER_ADDR is rank 0's host; -x MASTER_ADDR={1} overrides it"],
  ['--main-process-port', 'PORT', 'means', '-x MASTER_PORT={1}'],
  ['--multi-gpu --same-network', '', 'ignored', once],
  ['--gpu-ids', 'LIST', 'means', '', /^all$/u],
  ['--gpu-ids', 'LIST', 'instead', 'write -x CUDA_VISIBLE_DEVICES={1}'],
  ['--mixed-precision', 'TYPE', 'means', '-x ACCELERATE_MIXED_PRECISION={1}'],
  ['--num-cpu-threads-per-process', 'N', 'means', '-x OMP_NUM_THREADS={1}'],
  ['--enable-cpu-affinity', '', 'means', '--bind-to numa'],
  ['--dynamo-backend', 'NAME', 'means', '-x ACCELERATE_DYNAMO_BACKEND={1}'],
  ['--dynamo-mode', 'MODE', 'means', '-x ACCELERATE_DYNAMO_MODE={1}'],
  ['--dynamo-use-fullgraph', '', 'means', '-x ACCELERATE_DYNAMO_USE_FULLGRAPH=True'],
  ['--dynamo-use-dynamic', '', 'means', '-x ACCELERATE_DYNAMO_USE_DYNAMIC=True'],
  [
    '--config-file',
    'FILE',
    'instead',
    "write the options into ./ncclrun.json, and Accelerate's own as -x ACCELERATE_…",
  ],
  ['--use-deepspeed --use-fsdp --use-megatron-lm', '', 'instead', plugin],
  ['--deepspeed-config-file', 'FILE', 'instead', plugin],
  ['--zero-stage', 'N', 'instead', plugin],
  ['--deepspeed-hostfile --mpirun-hostfile', 'FILE', 'means', '--hostfile {1}'],
  ['--deepspeed-inclusion-filter', 'HOSTS', 'means', '--include {1}'],
  ['--deepspeed-exclusion-filter', 'HOSTS', 'means', '--exclude {1}'],
  ['--deepspeed-multinode-launcher', 'NAME', 'ignored', 'hosts are reached by ssh, or as --rsh says'],
  ['--gradient-accumulation-steps', 'N', 'means', '-x ACCELERATE_GRADIENT_ACCUMULATION_STEPS={1}'],
  ['--mpirun-ccl', 'N', 'ignored', once],
  ['--cpu --tpu --ipex --use-xpu --tpu-cluster --no-tpu-cluster --tpu-use-sudo', '', 'instead', otherDevice],
]);
