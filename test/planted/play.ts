/** Plants one fault in a job and compares its verdicts with what is right. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readRanges } from './ranks.ts';
import type { JobResult } from '../../launcher/model/types.ts';
import type { Verdict } from '../../launcher/model/hang.ts';
import { Command } from '../rig/command.ts';
import { freezeProcess } from '../rig/freezer.ts';
import { SilentFile } from '../rig/silent-file.ts';
import type { Collective, Fault } from './fault.ts';

export const RANKS = 4;
/** The planted call, beyond those that all ranks compare with each other at once. */
export const STEP = 5;
const HANG_AFTER_S = 0.5;

export interface Case {
  readonly fault: Fault;
  readonly collective: Collective;
  readonly rank: number;
  readonly replays: boolean;
}

export interface Played {
  readonly case: Case;
  /** What is wrong; none: all is right. */
  readonly wrongs: readonly string[];
  readonly verdicts: readonly Verdict[];
  readonly seconds: number;
}

/** How a job finds the device that it runs on. */
export interface Device {
  readonly options: readonly string[];
  readonly environment: NodeJS.ProcessEnv;
}

export async function play(program: string, one: Case, device: Device): Promise<Played> {
  const directory = await mkdtemp(join(tmpdir(), 'ncclrun-planted-'));
  const report = join(directory, 'report.json');
  const { fault, collective, rank, replays } = one;
  const words = [collective, fault.name, String(rank), String(STEP), ...(replays ? ['graph'] : [])];
  const options = ['-n', String(RANKS), '--hang-after', String(HANG_AFTER_S), '--on-hang', 'abort', '--report', report];
  await using file = fault.name === 'disk' ? await SilentFile.mount() : null;
  const given = file === null ? [] : ['-x', `FAULTY_FILE=${file.path}`];
  const started = performance.now();
  await using command = Command.start([...options, ...given, ...device.options, program, ...words], {
    environment: device.environment,
  });
  const thaw = fault.name === 'freeze' ? await freezeWhenAsked(command) : null;
  const outcome = await command.outcome;
  await thaw?.();
  const seconds = (performance.now() - started) / 1000;
  const text = await readFile(report, 'utf8');
  await rm(directory, { recursive: true });
  const result: JobResult = JSON.parse(text);
  const wrongs = wrongsOf(one, result);
  return {
    case: one,
    wrongs: wrongs.length === 0 ? [] : [...wrongs, outcome.stderr.split('\n').slice(0, 3).join(' | ')],
    verdicts: result.verdicts,
    seconds,
  };
}

async function freezeWhenAsked(command: Command): Promise<(() => Promise<void>) | null> {
  const line = await command.line('stdout', /freeze \d+/);
  const pid = Number(/freeze (\d+)/.exec(line)?.[1]);
  return freezeProcess(pid, `ncclrun-planted-${pid}`);
}

function wrongsOf({ fault, collective, rank, replays }: Case, { verdicts, recorder }: JobResult): string[] {
  const [first, ...others] = verdicts;
  if (first === undefined) return ['there is no verdict'];
  const wrongs: string[] = [];
  if (others.length > 0) wrongs.push(`${verdicts.length} verdicts: ${verdicts.map(({ kind }) => kind).join(', ')}`);
  if (!fault.kinds.includes(first.kind)) wrongs.push(`kind ${first.kind}`);
  const blamed = first.blamed.flatMap(({ ranks }) => readRanges(ranks));
  const isRight = fault.name === 'deadlock' ? blamed.includes(rank) : blamed.join() === String(rank);
  if (!isRight) wrongs.push(`blames ${blamed.join() || 'nobody'}`);
  if (fault.name === 'disk') wrongs.push(...wrongsOfSleep(first));
  const named = recorder?.communicators.find(({ name }) => name === 'planted');
  if (fault.name !== 'deadlock' && named?.id !== first.communicator?.id)
    wrongs.push(`communicator ${first.communicator?.id ?? 'unknown'}, not ${named?.id ?? 'recorded'}`);
  const operation = first.operation ?? first.blamed[0]?.last ?? null;
  const isDead = fault.kinds.includes('rank-dead');
  const number = operation?.number ?? -1;
  const most = collective === 'sendRecv' ? 2 * STEP : STEP; // a send and a receive
  const least = replays ? 1 : isDead ? STEP - 1 : STEP; // a graph repeats its operation under one number
  if (fault.name !== 'deadlock' && (number < least || ((fault.exact || isDead) && number > most)))
    wrongs.push(`operation ${number}`);
  const isOther = operation?.collective !== collective && number <= most && fault.name !== 'deadlock';
  if (isOther) wrongs.push(`in ${operation?.collective}`);
  return wrongs;
}

/** A rank that the kernel holds is named with what it waits in, and nothing was attached to its thread there. */
function wrongsOfSleep({ blamed, stacks }: Verdict): string[] {
  const [rank] = blamed;
  const because = (kind: string): string => String(rank?.because.find((one) => one.kind === kind)?.value ?? 'nothing');
  const wrongs: string[] = [];
  if (rank?.where !== 'uninterruptible') wrongs.push(`is ${rank?.where ?? 'nowhere'}`);
  if (!/^read of \/.*\/data$/.test(because('sleeps-in'))) wrongs.push(`sleeps in ${because('sleeps-in')}`);
  if (!/^[a-z_][\w.]*$/.test(because('wait-channel'))) wrongs.push(`waits in ${because('wait-channel')}`);
  const traced = stacks.filter(
    ({ ranks, thread }) => thread === 'main thread' && readRanges(ranks).includes(Number(rank?.ranks)),
  );
  if (traced.length > 0) wrongs.push('has a stack of the thread that sleeps');
  return wrongs;
}
