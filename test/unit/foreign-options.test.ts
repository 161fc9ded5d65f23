/** Command lines of other launchers: what is translated, what is ignored with a note, and what is refused with what to write instead. */
import { describe, expect, test } from 'vitest';
import { foreignTools } from '../../launcher/cli/foreign/tables.ts';
import { jsonAsked } from '../../launcher/cli/json-asked.ts';
import { jobRequest } from '../../launcher/cli/job-request.ts';
import { normalisedCommand, shellLine } from '../../launcher/cli/normalise.ts';
import { type JobOptionName, perfCommandLine, runCommandLine } from '../../launcher/cli/options.ts';
import { readCommandLine } from '../../launcher/cli/read-command-line.ts';
import { failureFrom } from './failure-from.ts';

const nowhere = { XDG_CONFIG_HOME: '/nonexistent' };

function understood(text: string, line = runCommandLine): { readonly command: string; readonly notes: string } {
  const argv = text.split(' ');
  const { settings, words, further, notes } = readCommandLine<JobOptionName>(argv, line, nowhere);
  jobRequest(settings, words, further);
  const [, ...command] = normalisedCommand(line, settings, words, further);
  return { command: shellLine(command), notes: notes.join('\n') };
}

function refused(text: string, line = runCommandLine): string {
  const failure = failureFrom(() => understood(text, line));
  if (failure.type !== 'usage') throw new Error(`a failure of type ${failure.type}`);
  return `${failure.message}\n${failure.remedy ?? ''}`;
}

test.each([
  [
    '--allow-run-as-root -np 8 -bind-to none -map-by slot -x LD_LIBRARY_PATH p',
    '-n 8 -x LD_LIBRARY_PATH --map-by slot --bind-to none p',
  ],
  ['-np 2 --mca rmaps_base_oversubscribe 1 --mca btl ^openib p', '-n 2 --oversubscribe p'],
  ['-n 4 -genvall -genvlist A,B -env C 1 p', "-n 4 -x '*' -x A -x B -x C=1 p"],
  ['-genv A=1 -genv B 2 -env C=x=y -s all -n 2 p', '-n 2 -x A=1 -x B=2 -x C=x=y --stdin all p'],
  ['--mpi -np 2 p', '-n 2 p'],
  ['--mpi=pmix --distribution=block:block -n 2 p', '-n 2 --map-by slot p'],
  ['-n 8 -perhost 4 -f hosts p', '-n 8 -N 4 --hostfile hosts p'],
  ['--export=ALL,FOO=1 -n 2 p', "-n 2 -x '*' -x FOO=1 p"],
  ['--nodes=2 --ntasks-per-node=8 --mpi=pmix --kill-on-bad-exit=1 p', '-n 16 -N 8 p'],
  ['--nodes=2 -n 8 --cpu-bind=none p', '-n 8 -N 4 --bind-to none p'],
  [
    '--nnodes 2 --nproc_per_node=8 --rdzv_backend=c10d --rdzv-endpoint h:29400 train.py --lr 1',
    '-n 16 -N 8 train.py --lr 1',
  ],
  ['--standalone --nproc_per_node gpu -m pkg.train -m x', '-N gpu python3 -m pkg.train -m x'],
  ['--nproc-per-node auto --node_rank 0 t.py', 't.py'],
  ['--num_gpus 4 --master_port 29501 ds.py --deepspeed', '-N 4 -x MASTER_PORT=29501 ds.py --deepspeed'],
  ['-H /job/hostfile --include a:0 ds.py', '--hostfile /job/hostfile --include a:0 ds.py'],
  [
    '-np 4 -H a:2,b:2 -p 2222 --start-timeout 60 python train.py',
    "-n 4 -H a:2,b:2 --rsh 'ssh -p 2222' --spawn-timeout 60 python train.py",
  ],
  [
    '--nrs 12 --tasks_per_rs 1 --cpu_per_rs 7 --gpu_per_rs 1 --rs_per_host 6 --latency_priority CPU-CPU -d packed -b packed:1 p -a 2',
    '-n 12 -N 6 --map-by slot --bind-to core p -a 2',
  ],
  [
    '--np 4 -a 1 -E A=1 --bind none --stdio_mode prepended -X 1 -M -gpu --exclude_hosts h1 p',
    '-n 4 -x A=1 --bind-to none --exclude h1 --tag-output=rank p',
  ],
  [
    '--num_processes 8 --num_machines 2 --machine_rank 0 --main_process_ip a --main_process_port 29501 t.py',
    '-n 8 -N 4 -x MASTER_PORT=29501 t.py',
  ],
  [
    '--multi_gpu --num_processes=2 --mixed_precision bf16 --gpu_ids all --dynamo_backend no -m pkg.train',
    '-n 2 -x ACCELERATE_MIXED_PRECISION=bf16 -x ACCELERATE_DYNAMO_BACKEND=no python3 -m pkg.train',
  ],
  [
    '--num_processes 4 --deepspeed_hostfile h --deepspeed_inclusion_filter a --enable_cpu_affinity t.py',
    '-n 4 --bind-to numa --hostfile h --include a t.py',
  ],
  ['-n 4 -pmi-port -localhost a -g AUTO -enable-auto-cleanup -hybrid-hosts -binding core p', '-n 4 --bind-to core p'],
  ['-machinelist a,b -n 2 p', '-n 2 -H a,b p'],
  [
    '-np 2 --tcp --no-autotune --stall-check --autotune-warmup-samples 3 --log-without-timestamp p',
    '-n 2 -x NCCL_IB_DISABLE=1 -x HOROVOD_AUTOTUNE=0 -x HOROVOD_STALL_CHECK_DISABLE=0 -x HOROVOD_AUTOTUNE_WARMUP_SAMPLES=3 -x HOROVOD_LOG_HIDE_TIME=1 p',
  ],
  [
    '-np 2 --stall-check-warning-time-seconds 9 --gloo-timeout-seconds 8 -prefix-timestamp p',
    '-n 2 -x HOROVOD_STALL_CHECK_TIME_SECONDS=9 -x HOROVOD_GLOO_TIMEOUT_SECONDS=8 --timestamp-output p',
  ],
  ['-n 2 -l gpu-cpu p', '-n 2 p'],
  ['-n 2 -l p', '-n 2 --tag-output=rank p'],
  ['--num_accelerators 4 ds.py', '-N 4 ds.py'],
])('"%s" is read as "%s"', (typed, command) => {
  expect(understood(typed).command).toBe(command);
});

test('what is ignored is noted, with a line for each reason', () => {
  expect(understood('--allow-run-as-root --mca btl self --mca pml ob1 -n 1 p').notes.split('\n')).toEqual([
    '--allow-run-as-root is ignored: root may start jobs',
    expect.stringMatching(/^--mca btl self, --mca pml ob1 are ignored: /u),
  ]);
});

test('an option that means different things is that of the tool of the other options on the line', () => {
  expect(refused('-c 4 p')).toMatch(
    /-c has different meanings .*\n.*as in Open MPI: write -n 4; as in Slurm: leave it out/u,
  );
  expect(understood('-c 4 --map-by ppr:2:numa --display-map p').command).toContain('-n 4 ');
  expect(understood('-c 4 --cpu-bind=cores --ntasks=2 --gres-flags=x p').command).not.toContain('-n 4');
});

test('no tool has two answers for one option', () => {
  const twice = foreignTools.flatMap(({ name, options }) => {
    const flags = options.flatMap((option) => (option.when === null ? option.flags : []));
    return flags.filter((flag, at) => flags.indexOf(flag) !== at).map((flag) => `${name} ${flag}`);
  });
  expect(twice).toEqual([]);
});

test('all options that cannot be used are named at once, each with what to write instead', () => {
  const text = refused('--rankfile f --zzz 3 --nproc_per_node=2 --npersocket 2 p --gres x');
  expect(text).toContain('3 options cannot be used as they stand: --rankfile, --zzz, --npersocket\n');
  expect(text).toContain('\n--npersocket: write --map-by ppr:2:numa');
  expect(text).not.toContain('--gres');
});

test.each([
  ['--nnodes 1:4 --nproc-per-node 2 p', /--nnodes 1:4 does not say how many ranks there are/u],
  ['--nodes 2 p', /write -n RANKS/u],
  ['--nodes 2 -n 7 p', /does not say/u],
  ['--node_rank 1 --nproc-per-node 2 p', /start ncclrun once/u],
  ['--export=NONE p', /env -i PROGRAM/u],
  ['--output=log.%t -n 2 p', /--output file=FILE:nocopy/u],
  ['--gres=gpu:8 -n 8 p', /ncclrun sbatch/u],
  ['-N 2 --ntasks-per-node=8 p', /-N 2 and --ntasks-per-node 8 are the same option with two values\n.*srun/u],
  ['-N 2 -n 2 --mpi=pmix --gpu-bind x p', /write --nodes 2 for the number of hosts, --npernode 2/u],
  ['-N 2 --label -n 2 p', /-N 2 beside --label, which is an option of srun, has two meanings/u],
  ['-N2 p', /For srun it is --nodes 2/u],
  ['--launcher -n 2 p', /--launcher needs a value/u],
  ['--bind-to socket p', /write --bind-to numa/u],
  ['-np 4 --ntasks 2 p', /-np 4 and --ntasks 2 are the same option/u],
  ['--on-failure shrink --max-restarts 2 p', /contradict each other/u],
  ['--on-failure abort --on-hang restart p', /contradict each other/u],
  ['-n 2 -a 6 -c 42 -g 6 -r 1 p', /-a: write -n RANKS, the number of resource sets times 6/u],
  ['-n 2 -r 6 p', /-r has different meanings in Slurm, LSF and PyTorch\n.*as in LSF: write -N 6/u],
  ['-n 2 -c 7 p', /as in LSF: leave it out/u],
  ['--gpu_per_rs 6 p', /leave it out: each rank has a GPU/u],
  ['--erf_input f p', /write a hostfile with a line for each rank, and --map-by seq/u],
  ['--exit_on_error 0 p', /--on-failure shrink/u],
  ['--use_fsdp --num_processes 2 t.py', /give Accelerator its plugin/u],
  ['--machine_rank 1 --num_processes 2 t.py', /start ncclrun once/u],
  ['--num_machines 2 t.py', /does not say how many ranks/u],
  ['--config_file c.yaml t.py', /different meanings in Accelerate and Horovod/u],
  ['--signals-to-handle SIGTERM,SIGUSR1 t.py', /write --forward-signals/u],
  ['--duplicate-stdout-filters a,b t.py', /grep WORD/u],
  ['-rankmap v p', /--map-by seq/u],
  ['-skip-launch-node p', /--exclude with the name of this host/u],
  ['-gpus-per-proc 2 p', /--isolate-gpus/u],
  ['-nameserver a:1 p', /does not serve MPI_Publish_name/u],
  ['-genvexcl A,B p', /env -u NAME PROGRAM/u],
  ['-outfile f p', /--output file=FILE:nocopy/u],
  ['--blacklist-cooldown-range 1 2 -np 2 p', /--on-failure restart/u],
  ['--elastic-timeout 3 -np 2 p', /--on-failure restart/u],
  ['-x node[1-3] p', /write --exclude node\[1-3\]; -x passes one variable/u],
  ['-x node1,node2 p', /write --exclude node1,node2/u],
  ['--rankmap=v p', /^--rankmap is an option of MPICH/u],
  ['--mca', /--mca needs a value\nwrite --mca K V/u],
])('"%s" is refused', (typed, message) => {
  expect(refused(typed)).toMatch(message);
});

describe('perf takes the options of nccl-tests', () => {
  test('values with which nothing changes are taken', () => {
    const typed = 'all_reduce -w 7 -b 8 -e 1G -f 2 -g 1 -t 1 -z 0 -c 1 -m 1 -G 0 -R 0 -a 1';
    expect(understood(typed, perfCommandLine).command).toBe('-b 8 -e 1G -f 2 -w 7 --check all_reduce');
  });

  test('--check may have a number, as in nccl-tests', () => {
    expect(understood('all_reduce --check 1 --ngpus 1', perfCommandLine).command).toBe('--check all_reduce');
    expect(understood('--check all_reduce', perfCommandLine).command).toBe('--check all_reduce');
  });

  test('others are refused together', () => {
    const text = refused('all_reduce -g 8 -m 5 -G 2', perfCommandLine);
    expect(text).toContain('3 options cannot be used as they stand: -g, -m, -G\n-g: write -n 8');
  });
});

test('the words of every translation are options of a job or of perf', () => {
  for (const { name, options } of foreignTools) {
    const line = name === 'nccl-tests' ? perfCommandLine : runCommandLine;
    const known = new Set(line.options.flatMap(({ flags }) => flags));
    for (const { treatment, text } of options) {
      if (!['means', 'each', 'exports'].includes(treatment) || text === '') continue;
      expect(known, `${name}: ${text}`).toContain(text.split(/[ =]/u)[0]);
    }
  }
});

test('every entry says something, and its number of values is plain', () => {
  for (const { options } of foreignTools) {
    for (const { flags, treatment, text, argument } of options) {
      expect(argument.split(' ').length, flags.join(' ')).toBeLessThan(3);
      if (treatment === 'ignored' || treatment === 'instead') expect(text.length, flags.join(' ')).toBeGreaterThan(10);
    }
  }
  expect(foreignTools.flatMap(({ options }) => options.flatMap(({ flags }) => flags)).length).toBeGreaterThan(200);
});

test("-x '*' passes the environment without what describes this login", async () => {
  const { exportedEnvironment } = await import('../../launcher/job/order.ts');
  const ours = { PATH: '/bin', LC_ALL: 'C', PWD: '/here', SSH_CLIENT: 'x', HOSTNAME: 'here', NCCLRUN_NP: '2' };
  expect(exportedEnvironment(['*', 'A=1'], ours)).toEqual({ PATH: '/bin', LC_ALL: 'C', A: '1' });
});

test.each([
  ['--mca a b --json --rankfile f p', true],
  ['--mca=a b --json --rankfile f p', true],
  ['--allow-run-as-root p --json', false],
  ['--rankfile f p --json', false],
])('whether "%s" asks for JSON is %s', (typed, asked) => {
  expect(jsonAsked(typed.split(' '), runCommandLine, {})).toBe(asked);
});
