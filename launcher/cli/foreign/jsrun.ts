/** Options of jsrun, of IBM's Job Step Manager under LSF, that ncclrun does not have under that name. Its -n counts resource sets. */
import { foreignTool } from './foreign-option.ts';

const inside = 'the allocation has decided it';
const files = 'write --output file=FILE:nocopy; %r is the rank, %h its host, %t stdout or stderr';
const ownGpu = 'each rank has a GPU of its own';
const allGpus = 'leave it out: each rank has a GPU of its own; --isolate-gpus hides the others';
const placement = 'write a hostfile with a line for each rank, and --map-by seq';
const allocation = 'it belongs to an allocation: give it to bsub';
const binding = 'write --bind-to none, core, numa or gpu';

export const jsrun = foreignTool('LSF', 'jsrun', [
  ['--nrs', 'N', 'means', '-n {1}'],
  ['-a --tasks-per-rs', 'N', 'ignored', 'a resource set of one task is a rank', /^1$/u],
  [
    '-a --tasks-per-rs',
    'N',
    'instead',
    'write -n RANKS, the number of resource sets times {1}, and -N for the ranks on each host',
  ],
  ['-c --cpu-per-rs', 'N', 'ignored', `${inside}; --bind-to says which cores a rank may use`],
  ['-g --gpu-per-rs', 'N', 'ignored', ownGpu, /^1$/u],
  ['-g --gpu-per-rs', 'N', 'instead', allGpus],
  ['--memory-per-rs', 'MB', 'ignored', inside],
  ['-r --rs-per-host', 'N', 'means', '-N {1}'],
  ['--rs-per-socket', 'N', 'instead', 'write --map-by ppr:{1}:numa (ranks on each NUMA node)'],
  ['-b --bind', 'HOW', 'means', '--bind-to none', /^none$/u],
  ['-b --bind', 'HOW', 'means', '--bind-to core', /^(proportional-)?packed(:1)?$/u, 'HOW is packed or packed:1'],
  ['-b --bind', 'HOW', 'instead', binding],
  ['-d --launch-distribution', 'HOW', 'means', '--map-by slot', /^packed$/u],
  ['-d --launch-distribution', 'HOW', 'instead', 'write --map-by slot, node, numa or gpu'],
  [
    '-l',
    'ORDER',
    'ignored',
    inside,
    /^(cpu|gpu|memory)-(cpu|gpu|mem(ory)?)/iu,
    'ORDER is CPU-CPU, gpu-cpu or its like',
  ],
  ['--latency-priority', 'ORDER', 'ignored', inside],
  ['-M --smpiargs', 'ARGS', 'ignored', 'it concerns MPI itself'],
  ['-E', 'K[=V]', 'means', '-x {1}'],
  ['-F --env-eval', 'K=V', 'instead', "write ncclrun … sh -c 'K=V exec PROGRAM'"],
  ['--env-no-propagate', 'K', 'instead', 'write ncclrun … env -u {1} PROGRAM'],
  ['--stdio-mode', 'MODE', 'means', '--tag-output', /^prepended$/u],
  ['--stdio-mode', 'MODE', 'ignored', 'ncclrun passes lines on as they come', /^collected$/u],
  ['--stdio-mode', 'MODE', 'instead', 'write --output dir=D:nocopy'],
  ['--stdio-stdout --stdio-stderr -k', 'FILE', 'instead', files],
  ['--stdio-input', 'FILE', 'instead', 'write < FILE, and --stdin all, none or a list of ranks'],
  ['-X --exit-on-error', '0|1', 'instead', 'write --on-failure shrink, with which the other ranks go on', /^0$/u],
  ['-X --exit-on-error', '0|1', 'ignored', 'a rank that fails ends the job', /^1$/u],
  ['--erf-input -U --use-resources', 'FILE', 'instead', placement],
  ['--erf-output --print-placement', 'VALUE', 'instead', 'write --dry-run, which prints where each rank would run'],
  ['--appfile', 'FILE', 'instead', "write the programs in one line, with ':' between them"],
  ['--exclude-hosts', 'LIST', 'means', '--exclude {1}'],
  ['--pre-post-exec -P', 'FILE', 'instead', "write ncclrun … sh -c 'BEFORE; PROGRAM; AFTER'"],
  ['--use-spindle -L', 'N', 'ignored', 'programs are read from where they are'],
  ['--allocate-only -J --use-reservation -S --save-resources', 'VALUE', 'instead', allocation],
  ['--launch-node-task', 'PROGRAM', 'instead', 'start it yourself: ncclrun runs on the launch node'],
  ['-Z --progress', 'VALUE', 'ignored', 'ncclrun ps lists jobs with their ranks'],
]);
