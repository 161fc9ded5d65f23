/** argv → command → exit status. */
import type { Failure } from './job/failure.ts';
import { exitStatus, FailureError } from './job/failure-error.ts';

const commands: Readonly<Record<string, (argv: readonly string[]) => Promise<number>>> = {
  perf: async (argv) => (await import('./cli/commands/perf.ts')).perf(argv),
  help: async ([command]) => (await import('./cli/commands/help.ts')).help(command === 'perf' ? 'perf' : 'run'),
  version: async () => (await import('./cli/commands/version.ts')).version(),
};

async function main(argv: readonly string[]): Promise<number> {
  const [word = '', ...rest] = argv;
  const command = Object.hasOwn(commands, word) ? commands[word] : undefined;
  try {
    if (command !== undefined) return await command(rest);
    return await (await import('./cli/commands/run.ts')).run(argv);
  } catch (error) {
    return await report(error);
  }
}

/** One sentence, whatever happened; the stack only for those who ask. */
async function report(error: unknown): Promise<number> {
  const { standardStreams } = await import('./report/standard-streams.ts');
  const { failureBlock } = await import('./report/summary.ts');
  const { makePaint } = await import('./report/colour.ts');
  const { stderr, stderrIsTerminal } = standardStreams();
  const failure = failureOf(error);
  const stack = process.env['NCCLRUN_DEBUG'] === '1' && error instanceof Error ? `${error.stack}\n` : '';
  const text = stack + failureBlock(failure, makePaint(stderrIsTerminal(), process.env));
  // Nobody may be left to read it; the status still tells.
  await stderr.write(Buffer.from(text)).catch(() => {});
  return exitStatus(failure);
}

function failureOf(error: unknown): Failure {
  if (error instanceof FailureError) return error.failure;
  return { type: 'internal', message: error instanceof Error ? error.message : String(error) };
}

// A defect in a callback: say so and end. The hosts' leases and guardians end what runs there.
process.on('uncaughtException', (error) => void report(error).then((status) => process.exit(status)));
void main(process.argv.slice(2)).then((status) => process.exit(status));
