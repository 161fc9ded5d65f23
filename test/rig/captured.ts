/** A command of ncclrun that runs in this process, and what it prints. */
import { Writable } from 'node:stream';
import { FailureError } from '../../launcher/model/failure-error.ts';

interface Captured {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs it with streams of ours as standard output and standard error, which are no terminals. */
export async function captured(run: () => Promise<number>): Promise<Captured> {
  const printed = { stdout: '', stderr: '' };
  const names = ['stdout', 'stderr'] as const;
  const own = names.map((name) => Object.getOwnPropertyDescriptor(process, name) ?? {});
  for (const name of names) {
    const value = new Writable({
      write(bytes: Buffer, _encoding, taken) {
        printed[name] += bytes.toString('utf8');
        taken();
      },
    });
    Object.defineProperty(process, name, { value, configurable: true });
  }
  try {
    const status = await run();
    return { status, ...printed };
  } finally {
    for (const [index, name] of names.entries()) Object.defineProperty(process, name, own[index] ?? {});
  }
}

/** Runs a command that refuses its command line; resolves with its message and its remedy. */
export async function refusal(run: () => Promise<number>): Promise<string> {
  const error: unknown = await captured(run).catch((thrown: unknown) => thrown);
  if (!(error instanceof FailureError) || !('message' in error.failure))
    throw new Error('it did not refuse', { cause: error });
  const { message, ...rest } = error.failure;
  return `${message}; ${'remedy' in rest ? rest.remedy : ''}`;
}
