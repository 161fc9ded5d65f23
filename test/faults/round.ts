/** One job, one fault, and whether all is as it should be afterwards. Everything that is drawn comes of the seed. */
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { JobResult } from '../../launcher/job/types.ts';
import { LEASE_MS } from '../../launcher/job/order.ts';
import type { Cluster } from '../rig/cluster.ts';
import { Command, type Outcome } from '../rig/command.ts';
import { type Random, seededRandom } from '../rig/random.ts';
import { parseResult } from '../rig/result.ts';
import { until } from '../rig/until.ts';
import { judge } from './judge.ts';
import { type Kind, type Moment, type Scene, fine, moments } from './kind.ts';
import { reach, streams } from './moment.ts';
import { Remains } from './remains.ts';

/** From the fault to the end of the job, and until nothing of it is left anywhere. */
const END_MS = 10_000;
/** A job that is not to end by itself, or has to wait for something first. */
const PATIENCE_MS = 60_000;
const ways = ['ssh2', 'openssh'] as const;

/** What a round is. */
export interface Draw {
  readonly seed: number;
  readonly kind: Kind;
  readonly moment: Moment;
  readonly slots: readonly number[];
  readonly host: number;
  readonly rank: number;
  readonly rsh: (typeof ways)[number];
  /** For what is drawn later. */
  readonly random: Random;
}

export interface RoundResult {
  readonly draw: Draw;
  /** What is wrong; empty: the round has passed. */
  readonly wrongs: readonly string[];
  /** From the fault until the command had ended and nothing was left, in milliseconds. */
  readonly endMs: number;
  /** What the command said, for those that failed. */
  readonly outcome: Outcome | null;
}

export function draw(seed: number, among: readonly Kind[], only: readonly Moment[] = moments): Draw {
  const random = seededRandom(seed);
  random(2); // seeds that follow each other begin alike
  const kind = pick(among, random);
  const possible = only.filter((moment) => kind.verdicts[moment] !== undefined);
  const moment = pick(
    possible.length === 0 ? moments.filter((one) => kind.verdicts[one] !== undefined) : possible,
    random,
  );
  const slots = [0, 1, 2, 3].map(() => 1 + random(2));
  const host = random(slots.length);
  const rank = slots.slice(0, host).reduce((sum, count) => sum + count, 0) + random(slots[host] ?? 1);
  return { seed, kind, moment, slots, host, rank, rsh: pick(ways, random), random };
}

function pick<Item>(items: readonly Item[], random: Random): Item {
  const item = items[random(items.length)];
  if (item === undefined) throw new Error('nothing to draw from');
  return item;
}

/** `program`: stream.c, compiled. A cluster that has a round behind it which failed is not to be used again. */
export async function playRound(cluster: Cluster, program: string, drawn: Draw): Promise<RoundResult> {
  const directory = await mkdtemp('/var/tmp/ncclrun-faults-');
  try {
    return await play(cluster, program, drawn, directory);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

async function play(cluster: Cluster, program: string, drawn: Draw, directory: string): Promise<RoundResult> {
  const { kind, moment, slots, rank, random } = drawn;
  const host = cluster.hosts[drawn.host];
  if (host === undefined) throw new Error(`no host ${drawn.host}`);
  const place = { cluster, host, rank, directory, random, enough: () => writeFileSync(join(directory, 'enough'), '') };
  const wrongs: string[] = [];
  await mkdir(join(directory, 'work'));
  await kind.prepare?.(place);
  const remains = new Remains(cluster);
  const report = join(directory, 'result.json');
  const hosts = cluster.hosts.map(({ name }, index) => `${name}:${slots[index] ?? 1}`).join(',');
  const options = ['-v', '--rsh', drawn.rsh, '--report', report, '--wdir', join(directory, 'work'), '-H', hosts];
  const words = [...options, ...(kind.options?.(place) ?? []), program, directory, ...deedWords(drawn)];
  await using command = Command.start(words, { cluster });
  const scene: Scene = { ...place, command };
  const verdicts = kind.verdicts[moment] ?? [];

  let since = performance.now();
  let outcome: Outcome | null = null;
  try {
    since = await strike(drawn, scene);
    if (kind.after !== undefined) await kind.after(scene);
    else if (verdicts.includes(fine)) scene.enough();
    const limit = kind.class === 'ends' ? END_MS - (performance.now() - since) : PATIENCE_MS;
    outcome = await within(limit, command.outcome, 'the job had not ended');
    const result = resultOf(report);
    const wrong = judge(verdicts, outcome.status, result, { host: host.name, rank });
    const beyond = wrong === null ? (kind.check?.(outcome, result, scene) ?? null) : null;
    wrongs.push(...[wrong, beyond].filter((one) => one !== null));
    if (outcome.status === 0 && !/^\[0\] all right$/m.test(outcome.stdout)) wrongs.push('the result is missing');
  } catch (error) {
    wrongs.push(error instanceof Error ? error.message : String(error));
  }
  if (wrongs.length > 0 && outcome === null) {
    command.process.kill('SIGKILL'); // what it has said so far tells more than nothing
    outcome = await within(END_MS, command.outcome, 'its streams had not ended').catch(() => null);
  }
  let endMs = performance.now() - since;
  if (kind.lift !== undefined) await kind.lift(scene);
  const lifted = performance.now();
  const left = (): string[] => remains.of(command, jobIdOf(outcome), kind.silences === undefined ? null : host);
  const cleanMs = kind.lift === undefined ? END_MS - endMs : LEASE_MS;
  try {
    await until('nothing left', () => left().length === 0, Math.max(cleanMs, 1000));
  } catch {
    wrongs.push(`left behind: ${left().join('; ')}`);
  }
  endMs += performance.now() - lifted;
  if (kind.repair !== undefined) await kind.repair(scene);
  return { draw: drawn, wrongs, endMs, outcome: wrongs.length > 0 ? outcome : null };
}

/** Resolves to when the fault was. */
async function strike({ kind, moment }: Draw, scene: Scene): Promise<number> {
  if (kind.deed !== undefined && kind.inject === undefined) {
    if (moment === 'teardown') {
      await streams(scene);
      scene.enough();
    }
    const file = join(scene.directory, `deed-${scene.rank}`);
    await until('the rank has misbehaved', () => existsSync(file), 30_000);
    const ago = Date.now() - statSync(file).mtimeMs;
    return performance.now() - ago;
  }
  await reach(moment, scene);
  const since = performance.now();
  const struck = (await kind.inject?.(scene)) ?? true;
  if (!struck && moment !== 'teardown') throw new Error('there was nobody to strike');
  return since;
}

const deedMoments: Partial<Record<Moment, string>> = { started: 'start', streaming: 'stream', teardown: 'end' };

function deedWords({ kind, moment, rank, random }: Draw): string[] {
  const { deed } = kind;
  if (deed === undefined) return [];
  const who = deed.ranks === 'all' ? 'all' : String(rank);
  const when = kind.inject === undefined ? (deedMoments[moment] ?? 'start') : 'start';
  return [who, when, String(11 + random(100)), deed.what, String(deed.number ?? 0)];
}

function resultOf(report: string): JobResult | null {
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
