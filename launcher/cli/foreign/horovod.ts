/** Options of horovodrun that ncclrun does not have under that name. */
import { foreignTool } from './foreign-option.ts';

const elastic = 'write -n RANKS and --on-failure restart; spare hosts stand in the hostfile';

export const horovod = foreignTool('Horovod', 'horovodrun', [
  ['--num-proc', 'N', 'means', '-n {1}'],
  ['-p', 'PORT', 'means', '--rsh "ssh -p {1}"', /^[0-9]+$/u, 'PORT is a number'],
  ['--ssh-port', 'PORT', 'means', '--rsh "ssh -p {1}"'],
  ['--ssh-identity-file', 'FILE', 'means', '--rsh "ssh -i {1}"'],
  ['--start-timeout', 'SECONDS', 'means', '--spawn-timeout {1}'],
  ['--network-interface --network-interfaces --nics', 'LIST', 'means', '-x NCCL_SOCKET_IFNAME={1}'],
  ['--gloo --mpi --use-gloo --use-mpi --tcp --jsrun --disable-cache', '', 'ignored', 'ncclrun starts the ranks itself'],
  ['--cpu-operations', 'HOW', 'ignored', 'ncclrun starts the ranks itself'],
  ['--mpi-args --binding-args', 'ARGS', 'instead', 'write the options themselves before the program'],
  ['--prefix-output-with-timestamp', '', 'means', '--timestamp-output'],
  ['--config-file', 'FILE', 'instead', "write the options into ./ncclrun.json, Horovod's own as -x HOROVOD_…"],
  ['--fusion-threshold-mb', 'MB', 'instead', 'write -x HOROVOD_FUSION_THRESHOLD=BYTES'],
  ['--cycle-time-ms', 'MS', 'means', '-x HOROVOD_CYCLE_TIME={1}'],
  ['--cache-capacity', 'N', 'means', '-x HOROVOD_CACHE_CAPACITY={1}'],
  ['--hierarchical-allreduce', '', 'means', '-x HOROVOD_HIERARCHICAL_ALLREDUCE=1'],
  ['--hierarchical-allgather', '', 'means', '-x HOROVOD_HIERARCHICAL_ALLGATHER=1'],
  ['--autotune', '', 'means', '-x HOROVOD_AUTOTUNE=1'],
  ['--autotune-log-file', 'FILE', 'means', '-x HOROVOD_AUTOTUNE_LOG={1}'],
  ['--timeline-filename', 'FILE', 'means', '-x HOROVOD_TIMELINE={1}'],
  ['--timeline-mark-cycles', '', 'means', '-x HOROVOD_TIMELINE_MARK_CYCLES=1'],
  ['--no-stall-check', '', 'means', '-x HOROVOD_STALL_CHECK_DISABLE=1'],
  ['--log-level', 'LEVEL', 'means', '-x HOROVOD_LOG_LEVEL={1}'],
  ['--num-nccl-streams', 'N', 'means', '-x HOROVOD_NUM_NCCL_STREAMS={1}'],
  ['--thread-affinity', 'N', 'means', '-x HOROVOD_THREAD_AFFINITY={1}'],
  ['--min-np --max-np --min-num-proc --max-num-proc --slots-per-host --reset-limit', 'N', 'instead', elastic],
  ['--host-discovery-script', 'FILE', 'instead', 'write --hostfile FILE, with the hosts that the script prints'],
  ['--check-build -cb', '', 'instead', 'run horovodrun itself for that'],
]);
