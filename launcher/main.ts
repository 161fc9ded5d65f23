/** argv → command → exit status. */
import { isCommandName, type CommandName } from './model/command-names.ts';
import type { Failure } from './model/failure.ts';
import { exitStatus } from './model/failure-error.ts';
import { failureOf as failureOfThrown } from './job/system-failure.ts';
import { dieOfInterrupt } from './job/signals.ts';
import { leave } from './local/host.ts';
import { takeNcclConfiguration } from '../control/nccl-configuration.ts';
import { systemArguments } from '../control/system-text.ts';

const commands: Readonly<Record<CommandName, (argv: readonly string[]) => Promise<number>>> = {
  perf: async (argv) => (await import('./cli/commands/perf.ts')).perf(argv),
  tune: async (argv) => (await import('./cli/commands/tune.ts')).tune(argv),
  plan: async (argv) => (await import('./cli/commands/plan.ts')).plan(argv),
  hosts: async (argv) => (await import('./cli/commands/hosts.ts')).hosts(argv),
  doctor: async (argv) => (await import('./cli/commands/doctor.ts')).doctor(argv),
  topo: async (argv) => (await import('./cli/commands/topo.ts')).topo(argv),
  ps: async (argv) => (await import('./cli/commands/ps.ts')).ps(argv),
  stop: async (argv) => (await import('./cli/commands/stop.ts')).stop(argv),
  logs: async (argv) => (await import('./cli/commands/logs.ts')).logs(argv),
  attach: async (argv) => (await import('./cli/commands/attach.ts')).attach(argv),
  stack: async (argv) => (await import('./cli/commands/stack.ts')).stack(argv),
  status: async (argv) => (await import('./cli/commands/status.ts')).status(argv),
  dump: async (argv) => (await import('./cli/commands/dump.ts')).dump(argv),
  replay: async (argv) => (await import('./cli/commands/replay.ts')).replay(argv),
  batch: async (argv) => (await import('./cli/commands/batch.ts')).batch(argv),
  submit: async (argv) => (await import('./cli/commands/submit.ts')).submit(argv),
  jobs: async (argv) => (await import('./cli/commands/jobs.ts')).jobs(argv),
  cancel: async (argv) => (await import('./cli/commands/change-tasks.ts')).changeTasks('cancel', argv),
  hold: async (argv) => (await import('./cli/commands/change-tasks.ts')).changeTasks('hold', argv),
  release: async (argv) => (await import('./cli/commands/change-tasks.ts')).changeTasks('release', argv),
  rerun: async (argv) => (await import('./cli/commands/change-tasks.ts')).changeTasks('rerun', argv),
  sbatch: async (argv) => (await import('./cli/commands/sbatch.ts')).sbatch(argv),
  bundle: async (argv) => (await import('./cli/commands/bundle.ts')).bundle(argv),
  build: async (argv) => (await import('./cli/commands/build.ts')).build(argv),
  prefix: async (argv) => (await import('./cli/commands/prefix.ts')).prefix(argv),
  config: async (argv) => (await import('./cli/commands/config.ts')).config(argv),
  completion: async (argv) => (await import('./cli/commands/completion.ts')).completion(argv),
  man: async (argv) => (await import('./cli/commands/man.ts')).man(argv),
  help: async (argv) => (await import('./cli/commands/help.ts')).helpCommand(argv),
  version: async (argv) => (await import('./cli/commands/version.ts')).versionCommand(argv),
};

/** Begins a launcher of a batch's tasks; for batch alone. */
const ATTEMPT_WORD = 'batch-attempt';
/** The same in an allocation of Slurm; for the scripts that batch submits. */
const SLURM_ATTEMPT_WORD = 'slurm-attempt';

async function main(argv: readonly string[]): Promise<number> {
  const [word = '', ...rest] = argv;
  try {
    if (isCommandName(word)) return await commands[word](rest);
    if (word === ATTEMPT_WORD) return await (await import('./cli/commands/batch-attempt.ts')).batchAttempt();
    if (word === SLURM_ATTEMPT_WORD) return await (await import('./cli/commands/slurm-attempt.ts')).slurmAttempt(rest);
    return await (await import('./cli/commands/run.ts')).run(argv);
  } catch (error) {
    const status = await report(error);
    await printResult(error, argv);
    return status;
  }
}

/** For --json. What had a result already does not end up here. */
async function printResult(error: unknown, argv: readonly string[]): Promise<void> {
  const isPerf = argv[0] === 'perf';
  const { printRefused } = await import('./cli/refused.ts');
  const { standardStreams } = await import('./report/standard-streams.ts');
  try {
    await printRefused(
      failureOf(error),
      isPerf ? 'perf' : 'run',
      isPerf ? argv.slice(1) : argv,
      standardStreams().stdout,
    );
  } catch {
    // Nobody is left to read it; the status still tells.
  }
}

/** One sentence, whatever happened; the stack only for those who ask. */
async function report(error: unknown): Promise<number> {
  const { standardStreams } = await import('./report/standard-streams.ts');
  const { failureBlock } = await import('./report/summary.ts');
  const { makePaint } = await import('./text/colour.ts');
  const streams = standardStreams();
  const failure = failureOf(error);
  const stack = process.env['NCCLRUN_DEBUG'] === '1' && error instanceof Error ? `${error.stack}\n` : '';
  const block = failureBlock(failure, makePaint(streams.stderrIsTerminal(), process.env));
  try {
    await streams.stderr.print(stack);
    await streams.stderr.printPainted(block);
  } catch {
    // Nobody is left to read it; the status still tells.
  }
  return exitStatus(failure);
}

function failureOf(error: unknown): Failure {
  const thrown = failureOfThrown(error);
  if (thrown.type === 'internal' && error instanceof Error && 'syscall' in error && error.syscall === 'uv_cwd') {
    return { type: 'usage', message: 'the directory that you stand in is gone', remedy: 'cd to one that exists' };
  }
  return thrown;
}

/** Whoever reads stderr may be gone; that is no reason to end. */
async function reportNotes(notes: readonly string[]): Promise<void> {
  const { standardStreams } = await import('./report/standard-streams.ts');
  const { makePaint } = await import('./text/colour.ts');
  const { ourLine } = await import('./report/summary.ts');
  const streams = standardStreams();
  const paint = makePaint(streams.stderrIsTerminal(), process.env);
  await streams.stderr.printPainted(notes.map((note) => ourLine(note, paint)).join('')).catch(() => {});
}

/** A defect in a callback: say so and end. The hosts' leases and guardians end what runs there. */
async function crash(error: unknown): Promise<void> {
  leave(await report(error));
}

async function start(): Promise<void> {
  const notes = takeNcclConfiguration();
  if (notes.length > 0) await reportNotes(notes);
  const status = await main(systemArguments());
  dieOfInterrupt(status);
  leave(status);
}

process.on('uncaughtException', (error) => void crash(error));
void start();
