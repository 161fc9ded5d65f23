/** Options of torchrun and of DeepSpeed's launcher that ncclrun does not have under that name. */
import { type ForeignRow, foreignTool } from './foreign-option.ts';

const once = 'ncclrun is started once, for all hosts, and brings the ranks together itself';

const common: readonly ForeignRow[] = [
  ['--master-addr', 'HOST', 'ignored', "MASTER_ADDR is rank 0's host; -x MASTER_ADDR={1} overrides it"],
  ['--master-port', 'PORT', 'means', '-x MASTER_PORT={1}'],
  ['--node-rank', 'N', 'ignored', once, /^0$/u],
  ['--node-rank', 'N', 'instead', 'start ncclrun once, on one host, and name all hosts with -H or --hostfile'],
  ['-m --module', '', 'module', ''],
  ['--no-python', '', 'ignored', 'a program is started as it is; python3 starts those that end in .py'],
];

export const torchrun = foreignTool('PyTorch', 'torchrun', [
  ['--standalone', '', 'ignored', once],
  ['--nnodes', 'N', 'nodes', ''],
  ['--nproc-per-node', 'K', 'means', '', /^auto$/u],
  [
    '--nproc-per-node',
    'K',
    'instead',
    'write -n RANKS, with --isolate-gpus or NCCLRUN_DEVICE=host as you need',
    /^(cpu|xpu)$/u,
  ],
  ['--rdzv-backend --rdzv-endpoint --rdzv-id --rdzv-conf', 'VALUE', 'ignored', once],
  ...common,
  ['--monitor-interval --start-method --local-addr --role --event-log-handler', 'VALUE', 'ignored', once],
  ['--virtual-local-rank', '', 'ignored', 'each rank has a GPU of its own; --isolate-gpus makes it GPU 0'],
  ['--log-dir', 'DIR', 'means', '--output dir={1}'],
  ['-r --redirects', 'STREAMS', 'instead', 'write --output dir=D:nocopy'],
  ['--tee', 'STREAMS', 'instead', 'write --output dir=D'],
  ['-t', 'STREAMS', 'instead', 'write --output dir=D'],
  ['--local-ranks-filter', 'LIST', 'instead', 'write --output-ranks LIST, with ranks of the whole job'],
  ['--logs-specs', 'NAME', 'instead', 'write --output dir=D'],
  [
    '--signals-to-handle',
    'LIST',
    'ignored',
    'they end the job in any case',
    /^(SIG(TERM|INT|HUP|QUIT)(,|$))+$/u,
    'LIST has TERM, INT, HUP and QUIT alone',
  ],
  [
    '--signals-to-handle',
    'LIST',
    'instead',
    'write --forward-signals with those that the ranks shall get, such as USR1,USR2',
  ],
  ['--duplicate-stdout-filters --duplicate-stderr-filters', 'LIST', 'instead', 'write ncclrun … | grep WORD'],
  ['--numa-binding', 'HOW', 'means', '--bind-to numa', /^node$/u],
  ['--numa-binding', 'HOW', 'instead', 'write --bind-to numa, core or gpu'],
  ['--run-path', '', 'instead', 'leave it out: python3 starts programs that end in .py'],
  ['--use-env', '', 'ignored', 'ranks find LOCAL_RANK in their environment'],
]);

export const deepSpeed = foreignTool('DeepSpeed', 'deepspeed', [
  ['--num-gpus --num-accelerators', 'K', 'means', '-N {1}'],
  ['--num-nodes', 'N', 'nodes', ''],
  ['-H', 'FILE', 'means', '--hostfile {1}', /^[^^,]*\//u, 'FILE has a slash'],
  ['-i', 'HOSTS', 'means', '--include {1}'],
  ['-e', 'HOSTS', 'means', '--exclude {1}'],
  [
    '--launcher',
    'NAME',
    'ignored',
    'hosts are reached by ssh, or as --rsh says',
    /^(pdsh|openmpi|mpich|impi|mvapich|slurm)$/iu,
  ],
  ['--launcher-args', 'ARGS', 'instead', 'write the options themselves before the program'],
  ['--ssh-port', 'PORT', 'means', '--rsh "ssh -p {1}"'],
  ['--force-multi --no-ssh --no-ssh-check', '', 'ignored', once],
  ['--no-local-rank', '', 'ignored', 'ranks get no argument --local_rank; they find LOCAL_RANK in their environment'],
  ...common,
  ['--enable-each-rank-log', 'DIR', 'means', '--output dir={1}'],
  [
    '--bind-cores-to-rank',
    '',
    'instead',
    'write --bind-to numa (the cores of a NUMA node), or --bind-to core (one core)',
  ],
  ['--bind-core-list', 'LIST', 'instead', 'write ncclrun … taskset -c LIST PROGRAM'],
  ['--elastic-training', '', 'instead', 'write --on-failure restart; spare hosts stand in the hostfile'],
  [
    '--min-elastic-nodes --max-elastic-nodes',
    'N',
    'instead',
    'write --on-failure restart; spare hosts stand in the hostfile',
  ],
  ['--venv-script', 'FILE', 'instead', "write ncclrun … sh -c '. {1}; exec python3 PROGRAM'"],
  ['--autotuning', 'HOW', 'instead', 'run deepspeed itself for that'],
  ['--save-pid', '', 'ignored', 'ncclrun ps lists jobs with their processes'],
]);
