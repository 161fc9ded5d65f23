/** Options of mpiexec.hydra, of MPICH and of Intel MPI, that ncclrun does not have under that name. */
import { type ForeignRow, foreignTool } from './foreign-option.ts';

const own = 'ncclrun starts its agents itself; --rsh says how hosts are reached';
const noEnvironment = 'write ncclrun … env -i PROGRAM; ranks have the environment of their host';

const common: readonly ForeignRow[] = [
  ['-genv -env', 'K=V', 'means', '-x {1}', /^[^=]+=/u, 'there is a ='],
  ['-genvall -envall', '', 'means', '-x *'],
  ['-genvlist -envlist', 'LIST', 'each', '-x {1}'],
  ['-genvnone -envnone', '', 'instead', noEnvironment],
  ['-env', 'K V', 'means', '-x {1}={2}'],
  ['-perhost -grr', 'K', 'means', '-N {1}'],
  ['-rr', '', 'means', '-N 1'],
  ['-bootstrap -launcher', 'NAME', 'ignored', 'hosts are reached by ssh', /^ssh$/u],
  [
    '-bootstrap -launcher',
    'NAME',
    'ignored',
    'ncclrun takes the hosts of an allocation by itself',
    /^(slurm|pbs|pbsdsh|lsf|ll|sge)$/u,
  ],
  ['-bootstrap -launcher', 'NAME', 'instead', "write --rsh '{1}', the command that reaches a host"],
  ['-bootstrap-exec -launcher-exec', 'CMD', 'means', '--rsh {1}'],
  ['-bootstrap-exec-args', 'ARGS', 'instead', "write --rsh 'ssh {1}'"],
  ['-rmk', 'NAME', 'means', '--resource-manager {1}', /^(slurm|pbs|lsf)$/u],
  ['-rmk', 'NAME', 'means', '--resource-manager none', /^(user|none)$/u],
  ['-rmk', 'NAME', 'instead', 'write --resource-manager auto, slurm, pbs, lsf or none'],
  ['-iface', 'NIC', 'instead', 'write -x NCCL_SOCKET_IFNAME={1}'],
  ['-s', 'RANKS', 'means', '--stdin {1}', /^(all|none|[0-9][0-9,-]*)$/u, 'RANKS is all, none or a list of numbers'],
  ['-prepend-rank', '', 'means', '--tag-output'],
  [
    '-outfile-pattern',
    'FILE',
    'instead',
    'write --output file=FILE:nocopy; %r is the rank, %h its host, %t the stream',
  ],
  [
    '-errfile-pattern',
    'FILE',
    'instead',
    'write --output file=FILE:nocopy; %r is the rank, %h its host, %t the stream',
  ],
  [
    '-configfile',
    'FILE',
    'instead',
    "write the programs in one line, with ':' between them; options may stand in ncclrun.json",
  ],
  [
    '-bind-to',
    'HOW',
    'instead',
    'write --bind-to core (a whole core for each rank)',
    /^(core:[0-9]|rr|user)/u,
    'HOW is rr, user or core:N',
  ],
  ['-gpus-per-proc -gpu-subdevs-per-proc', 'N', 'ignored', 'each rank has a GPU of its own'],
  ['-membind', 'HOW', 'instead', 'write --bind-to numa'],
  ['-disable-auto-cleanup', '', 'instead', 'write --on-failure shrink'],
  ['-disable-hostname-propagation', '', 'ignored', own],
  ['-print-all-exitcodes', '', 'ignored', '--json has the exit status of every rank'],
  ['-info', '', 'instead', 'write ncclrun --version'],
  ['-order-nodes', 'ORDER', 'instead', 'write the hosts in the order that you want'],
  ['-demux -topolib -usize -pmi-port', 'VALUE', 'ignored', own],
  ['-enable-x -disable-x', '', 'ignored', own],
  ['-umask', 'MASK', 'instead', "write ncclrun … sh -c 'umask MASK; exec PROGRAM'"],
  ['-path', 'LIST', 'instead', 'write -x PATH=…, or the whole path of the program'],
];

const network = 'the network is chosen by itself: NCCL_IB_HCA, NCCL_SOCKET_IFNAME and NCCL_NET have a say';

export const mpich = foreignTool('MPICH', 'mpiexec.hydra', common);

export const intelMpi = foreignTool('Intel MPI', 'mpirun', [
  ['-machine', 'FILE', 'means', '--hostfile {1}'],
  ['-r', 'NAME', 'ignored', 'hosts are reached by ssh', /^ssh$/u],
  ['-gn -gnp', 'N', 'means', '-n {1}'],
  ['-ghost -ghosts', 'LIST', 'means', '-H {1}'],
  ['-gwdir', 'DIR', 'means', '--wdir {1}'],
  ['-gpath', 'LIST', 'instead', 'write -x PATH=…, or the whole path of the program'],
  ['-gumask', 'MASK', 'instead', "write ncclrun … sh -c 'umask {1}; exec PROGRAM'"],
  ['-gtool -gtoolfile', 'TOOL', 'instead', 'write the tool before the program: ncclrun … TOOL PROGRAM'],
  ['-ckpoint -ckpoint-interval -ckpointlib', 'VALUE', 'instead', 'write --on-failure restart'],
  ['-use-app-topology -nic-ppn', 'VALUE', 'ignored', own],
  ['-silent-abort', '', 'ignored', own],
  ['-hosts-group', 'LIST', 'means', '-H {1}'],
  ['-nolocal', '', 'instead', 'write --exclude with the name of this host, or leave it out of the hostfile'],
  ['-print-rank-map', '', 'instead', 'write --dry-run'],
  ['-prepend-pattern', 'TEXT', 'instead', 'write --tag-output or --tag-output=host'],
  ['-ordered-output', '', 'ignored', 'lines stay whole'],
  ['-branch-count', 'N', 'ignored', '--radix says how many agents an agent starts'],
  ['-tmpdir', 'DIR', 'instead', 'write -x TMPDIR={1}'],
  ['-ib -IB -rdma -RDMA -psm -PSM -psm2 -PSM2 -tmi -TMI -ofi -OFI -dapl -DAPL', '', 'ignored', network],
  ['-gdb -check_mpi -trace -aps -mps', '', 'instead', 'write the tool before the program: ncclrun … TOOL PROGRAM'],
  ['-noconf -parallel-startup -ilp64 -localonly', '', 'ignored', own],
  ['-gpus', 'LIST', 'instead', 'write -x CUDA_VISIBLE_DEVICES={1}'],
]);
