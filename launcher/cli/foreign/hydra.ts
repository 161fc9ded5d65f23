/** Options of mpiexec.hydra, of MPICH and of Intel MPI, that ncclrun does not have under that name. */
import { type ForeignRow, foreignTool } from './foreign-option.ts';

const own = 'ncclrun starts its agents itself; --rsh says how hosts are reached';
const noEnvironment = 'write ncclrun … env -i PROGRAM; ranks have the environment of their host';
const withoutThisHost = 'write --exclude with the name of this host, or leave it out of the hostfile';
const allGpus = 'leave it out: each rank has a GPU of its own; --isolate-gpus hides the others';
const tool = 'write the tool before the program: ncclrun … TOOL PROGRAM';

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
  ['-prepend-pattern', 'TEXT', 'instead', 'write --tag-output or --tag-output=host'],
  [
    '-outfile-pattern -errfile-pattern -outfile -errfile',
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
  ['-machines -machinelist -hostlist', 'LIST', 'means', '-H {1}'],
  ['-binding', 'HOW', 'means', '--bind-to {1}'],
  [
    '-bind-to',
    'HOW',
    'instead',
    'write --bind-to core (a whole core for each rank)',
    /^(core:[0-9]|rr|user)/u,
    'HOW is rr, user or core:N',
  ],
  ['-membind', 'HOW', 'instead', 'write --bind-to numa'],
  ['-rankmap', 'MAP', 'instead', 'write a hostfile with a line for each rank, and --map-by seq'],
  ['-skip-launch-node', '', 'instead', withoutThisHost],
  ['-g -gpus-per-proc', 'N', 'ignored', 'each rank has a GPU of its own', /^(1|AUTO)$/u],
  ['-g -gpus-per-proc', 'N', 'instead', allGpus],
  ['-gpu-subdevs-per-proc', 'N', 'instead', allGpus],
  ['-hybrid-hosts', '', 'ignored', 'ncclrun finds its own files on every host'],
  ['-localhost', 'NAME', 'ignored', own],
  ['-nameserver', 'HOST:PORT', 'instead', 'leave it out: ncclrun does not serve MPI_Publish_name'],
  ['-disable-auto-cleanup', '', 'instead', 'write --on-failure shrink'],
  ['-enable-auto-cleanup', '', 'ignored', 'a rank that fails ends the job'],
  ['-enable-hostname-propagation -disable-hostname-propagation', '', 'ignored', own],
  ['-print-all-exitcodes', '', 'ignored', '--json has the exit status of every rank'],
  ['-info', '', 'instead', 'write ncclrun --version'],
  ['-order-nodes', 'ORDER', 'instead', 'write the hosts in the order that you want'],
  ['-demux -topolib -usize', 'VALUE', 'ignored', own],
  ['-pmi-port', '', 'ignored', own],
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
  ['-ckpoint -ckpoint-interval -ckpointlib', 'VALUE', 'instead', 'write --on-failure restart'],
  ['-use-app-topology -nic-ppn', 'VALUE', 'ignored', own],
  ['-hosts-group', 'LIST', 'means', '-H {1}'],
  ['-nolocal', '', 'instead', withoutThisHost],
  ['-genvexcl -envexcl', 'LIST', 'instead', 'write ncclrun … env -u NAME PROGRAM'],
  ['-gtool -gtoolfile', 'TOOL', 'instead', tool],
  ['-silent-abort', '', 'ignored', 'a rank that fails is named once'],
  ['-print-rank-map', '', 'instead', 'write --dry-run'],
  ['-ordered-output', '', 'ignored', 'lines stay whole'],
  ['-branch-count', 'N', 'ignored', '--radix says how many agents an agent starts'],
  ['-tmpdir', 'DIR', 'instead', 'write -x TMPDIR={1}'],
  ['-ib -IB -rdma -RDMA -psm -PSM -psm2 -PSM2 -tmi -TMI -ofi -OFI -dapl -DAPL', '', 'ignored', network],
  ['-gdb -check_mpi -trace -aps -mps', '', 'instead', tool],
  ['-noconf -parallel-startup -ilp64 -localonly', '', 'ignored', own],
  ['-gpus', 'LIST', 'instead', 'write -x CUDA_VISIBLE_DEVICES={1}'],
]);
