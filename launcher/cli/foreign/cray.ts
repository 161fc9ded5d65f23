/** Options of Cray's launchers, mpiexec of PALS and aprun, and of Fujitsu's mpiexec, that ncclrun does not have under that name. */
import { type ForeignRow, foreignTool } from './foreign-option.ts';

const inside = 'the allocation has decided it; --bind-to says which cores a rank may use';
const toCores = 'write --bind-to core (one core for each rank) or --bind-to numa (all of a NUMA node)';
const files = 'write --output file=FILE:nocopy; %r is the rank, %h its host, %t stdout or stderr';

const depth: ForeignRow = ['-d --depth', 'N', 'ignored', inside, /^[0-9]+$/u, 'N is a number'];

export const pals = foreignTool('Cray PALS', 'mpiexec', [
  depth,
  ['--cpu-bind', 'HOW', 'instead', toCores, /^(verbose,)?(depth|list:|mask:)/u, 'HOW is depth, list: or mask:'],
  ['--hostlist', 'LIST', 'means', '-H {1}'],
  ['--line-buffer', '', 'ignored', 'lines stay whole'],
  [
    '--no-vni --no-transfer --no-rlimits',
    '',
    'ignored',
    'ncclrun starts its agents itself; --rsh says how hosts are reached',
  ],
  ['--procinfo', '', 'ignored', 'ncclrun ps lists jobs with their processes'],
  ['--no-abort-on-failure', '', 'instead', 'write --on-failure shrink, with which the other ranks go on'],
  ['--abort-on-failure', '', 'ignored', 'a rank that fails ends the job'],
]);

export const aprun = foreignTool('Cray ALPS', 'aprun', [
  depth,
  ['-cc --cpu-binding', 'HOW', 'means', '--bind-to none', /^none$/u],
  ['-cc --cpu-binding', 'HOW', 'means', '--bind-to core', /^cpu$/u],
  ['-cc --cpu-binding', 'HOW', 'means', '--bind-to numa', /^numa_node$/u],
  ['-cc --cpu-binding', 'HOW', 'instead', toCores],
  ['-e', 'K=V', 'means', '-x {1}', /^[A-Za-z_][A-Za-z0-9_]*=/u, 'there is a ='],
  ['-j -sl', 'N', 'ignored', inside],
  ['-ss', '', 'ignored', inside],
  ['-S', 'N', 'instead', 'write --map-by ppr:{1}:numa (ranks on each NUMA node)'],
  ['-L --node-list', 'LIST', 'instead', 'write -H {1}'],
  ['-B --batch-args', '', 'ignored', 'ncclrun takes the hosts of an allocation by itself'],
]);

export const fujitsu = foreignTool('Fujitsu MPI', 'mpiexec', [
  ['--std --std-proc --stdout --stdout-proc --stderr --stderr-proc --of --of-proc', 'FILE', 'instead', files],
  ['--vcoordfile', 'FILE', 'instead', 'write a hostfile with a line for each rank, and --map-by seq'],
]);
