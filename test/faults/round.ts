/** One job, one fault, and whether all is as it should be afterwards. */
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { LEASE_MS } from '../../launcher/job/order.ts';
import type { JobResult } from '../../launcher/model/types.ts';
import type { Cluster } from '../rig/cluster.ts';
import { Command, type Outcome } from '../rig/command.ts';
import { parseResult } from '../rig/result.ts';
import { until } from '../rig/until.ts';
import type { Draw } from './draw.ts';
import { judge } from './judge.ts';
import { fine, type JobSetup, type Moment, type Scene } from './kind.ts';
import { reach, streams } from './moment.ts';
import { Remains } from './remains.ts';
import { messageOf } from '../../control/message-of.ts';

/** From the fault to the end of a job that is to end, and until nothing of it is left anywhere: what the campaign holds jobs to. */
export const END_MS = 10_000;
/** For one that goes on, or has to wait for something first; for all, where no time is held to. */
export const TIMEOUT_MS = 60_000;
/** Between looks at everything that there is. */
const LOOK_MS = 50;

export interface RoundResult {
  readonly draw: Draw;
  /** What is wrong; empty: the round has passed. */
  readonly wrongs: readonly string[];
  /** From the fault until the command had ended and nothing was left, in milliseconds; without the time that a frozen host was kept so. */
  readonly endMs: number;
  /** What the command said. */
  readonly outcome: Outcome | null;
}

/** `program`: stream.c, compiled; `endMs`: what a job that is to end has. A cluster that has a round behind it which failed is not to be used again. */
export async function playRound(cluster: Cluster, program: string, drawn: Draw, endMs: number): Promise<RoundResult> {
  const directory = await mkdtemp('/var/tmp/ncclrun-faults-');
  const host = cluster.hosts[drawn.host];
  if (host === undefined) throw new Error(`there is no host ${drawn.host}`);
  const { rank, random, kind } = drawn;
  const enough = (): void => writeFileSync(join(directory, 'enough'), '');
  const setup: JobSetup = { cluster, host, rank, random, directory, enough };
  try {
    await mkdir(join(directory, 'work'));
    await kind.prepare?.(setup);
    const remains = new Remains(setup, kind.silences !== true);
    await using command = Command.start(words(setup, program, drawn), { cluster });
    const scene: Scene = { ...setup, command };
    const end = await awaitEnd(drawn, scene, endMs);
    await kind.lift?.(scene);
    const clean = await awaitClean(drawn, scene, remains, end, endMs);
    await kind.repair?.(scene);
    return { draw: drawn, wrongs: [...end.wrongs, ...clean.wrongs], endMs: end.ms + clean.ms, outcome: end.outcome };
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

function words(setup: JobSetup, program: string, { slots, rsh, kind, moment, rank, operation }: Draw): string[] {
  const { cluster, directory } = setup;
  const hosts = cluster.hosts.map(({ name }, index) => `${name}:${slots[index] ?? 1}`).join(',');
  const options = ['-v', '--rsh', rsh, '--report', reportOf(setup), '--wdir', join(directory, 'work'), '-H', hosts];
  const { action } = kind;
  const when = kind.inject === undefined ? (actionMoments[moment] ?? 'start') : 'start';
  const who = action?.ranks === 'all' ? 'all' : String(rank);
  const misbehaviour =
    action === undefined ? [] : [who, when, String(operation), action.what, String(action.number ?? 0)];
  return [...options, ...(kind.options?.(setup) ?? []), program, directory, ...misbehaviour];
}

/** As stream.c calls them. */
const actionMoments: Partial<Record<Moment, string>> = { started: 'start', streaming: 'stream', teardown: 'end' };

interface End {
  readonly wrongs: readonly string[];
  readonly ms: number;
  readonly outcome: Outcome | null;
}

async function awaitEnd({ kind, moment }: Draw, scene: Scene, endMs: number): Promise<End> {
  const { command, host, rank } = scene;
  const verdicts = kind.verdicts[moment] ?? [];
  let since = performance.now();
  const ms = (): number => performance.now() - since;
  try {
    since = await strike(kind, moment, scene);
    if (kind.after !== undefined) await kind.after(scene);
    else if (verdicts.includes(fine)) scene.enough();
    const limit = kind.class === 'ends' ? endMs - ms() : TIMEOUT_MS;
    const outcome = await within(limit, command.outcome, 'the job had not ended');
    const ended = ms();
    const result = resultOf(scene);
    const wrong = judge(verdicts, outcome, result, { host: host.name, rank });
    const beyond = wrong ?? kind.check?.(outcome, result, scene) ?? null;
    return { wrongs: beyond === null ? [] : [beyond], ms: ended, outcome };
  } catch (error) {
    const ended = ms();
    command.process.kill('SIGKILL'); // what it has said so far tells more than nothing
    const outcome = await within(TIMEOUT_MS, command.outcome, 'its streams had not ended').catch(() => null);
    return { wrongs: [messageOf(error)], ms: ended, outcome };
  }
}

/** Resolves to when the fault was. */
async function strike(kind: Draw['kind'], moment: Moment, scene: Scene): Promise<number> {
  if (kind.inject !== undefined) {
    await reach(moment, scene);
    await kind.meets?.(scene);
    const since = performance.now();
    const struck = await kind.inject(scene);
    if (!struck && moment !== 'teardown') throw new Error('there was nobody to strike');
    return since;
  }
  if (moment === 'teardown') {
    await streams(scene);
    scene.enough();
  }
  const file = join(scene.directory, `act-${scene.rank}`);
  await until('the rank has misbehaved', () => existsSync(file), TIMEOUT_MS);
  return performance.now() - (Date.now() - statSync(file).mtimeMs);
}

async function awaitClean(
  { kind }: Draw,
  scene: Scene,
  remains: Remains,
  end: End,
  endMs: number,
): Promise<Omit<End, 'outcome'>> {
  const started = performance.now();
  const limit = kind.class === 'ends' ? endMs - end.ms : endMs;
  const left = (): string[] => remains.of(scene.command, jobIdOf(end.outcome));
  const max = kind.lift === undefined ? limit : LEASE_MS;
  const nothing = until('nothing left', () => left().length === 0, max, LOOK_MS);
  const wrongs = await nothing.then(
    () => [],
    () => [`left behind: ${left().join('; ')}`],
  );
  return { wrongs, ms: performance.now() - started };
}

function reportOf({ directory }: JobSetup): string {
  return join(directory, 'result.json');
}

function resultOf(setup: JobSetup): JobResult | null {
  const report = reportOf(setup);
  const text = existsSync(report) ? readFileSync(report, 'utf8') : '';
  return text === '' ? null : parseResult(text);
}

function jobIdOf(outcome: Outcome | null): string | null {
  return /^ncclrun: job ([0-9a-f]{12}): /m.exec(outcome?.stderr ?? '')?.[1] ?? null;
}

async function within<T>(ms: number, promise: Promise<T>, what: string): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`${what} ${(ms / 1000).toFixed(1)} s later`)), Math.max(ms, 0));
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
