/** Options of nccl-tests' programs that `ncclrun perf` does not have under that name. */
import { foreignTool } from './foreign-option.ts';

const oneEach = 'write -n {1}: perf starts a rank for each GPU';

export const ncclTests = foreignTool('nccl-tests', 'all_reduce_perf', [
  ['-g --ngpus -t --nthreads', 'N', 'means', '', /^1$/u],
  ['-g --ngpus -t --nthreads', 'N', 'instead', oneEach],
  ['-c --check', '0|N', 'means', '', /^0$/u],
  ['-c --check', 'N', 'means', '--check', /^[1-9][0-9]*$/u, 'N is 1 or more'],
  ['-z --blocking', '0|1', 'means', '', /^0$/u],
  ['-z', '0|1', 'means', '--blocking', /^[12]$/u, 'it is 1 or 2'],
  ['-T', 'SECONDS', 'means', '--timeout {1}', /^[1-9][0-9]*$/u, 'SECONDS is 1 or more'],
  ['-T', 'SECONDS', 'means', '', /^0$/u],
  ['-G --cudagraph', 'N', 'means', '', /^0$/u],
  ['-G --cudagraph', 'N', 'instead', 'leave it out: perf launches operations on a stream, without graphs'],
  ['-m --agg_iters', 'N', 'means', '', /^1$/u],
  ['-m --agg_iters', 'N', 'instead', 'leave it out: perf does not gather operations into groups'],
  ['-R --local_register', '0|1', 'means', '', /^0$/u],
  ['-R --local_register', '0|1', 'instead', 'leave it out: perf measures buffers that are not registered'],
  ['-i --stepbytes', 'SIZE', 'instead', 'write -f 2: each size is the one before times this'],
  ['-u --cpu-list', 'LIST', 'instead', 'write --bind-to core, numa or gpu'],
  ['-a --average', '0|1|2|3', 'ignored', 'perf prints one time for each size'],
  ['-p --parallel_init', '0|1', 'ignored', 'ranks start side by side'],
  ['-C --report_cputime', '0|1', 'means', '', /^0$/u],
  ['-C --report_cputime', '0|1', 'instead', 'leave it out: perf reports the time of the operation'],
  ['-J --output_file', 'FILE', 'instead', 'write --json > FILE'],
  ['-D --device_implementation', 'N', 'means', '', /^0$/u],
  ['-D --device_implementation', 'N', 'instead', 'leave it out: perf calls the host interface'],
]);
