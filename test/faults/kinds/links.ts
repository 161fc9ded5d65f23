/** What slows a job down and must not end it: its links, its output, who reads that, a host that sleeps for less than a lease. */
import { setTimeout as delay } from 'node:timers/promises';
import { LEASE_MS } from '../../../launcher/job/order.ts';
import type { Outcome } from '../../rig/command.ts';
import { fine, type Kind, type Scene } from '../kind.ts';
import { streams } from '../moment.ts';

const always: Kind['verdicts'] = { connecting: [fine], spawning: [fine], started: [fine], streaming: [fine] };
const running: Kind['verdicts'] = { started: [fine], streaming: [fine] };
const LINES = 40_000;
/** More than is under way to a reader anywhere. */
const FLOOD_LINES = 100_000;

/** The fault goes on for some seconds, or until the ranks have got somewhere in spite of it. */
async function endure(scene: Scene): Promise<void> {
  await delay(1000 + scene.random(2 * LEASE_MS));
  await streams(scene);
  scene.enough();
}

/** Every rank's lines are there, in their order. */
function everyLine(lines: number): NonNullable<Kind['check']> {
  return ({ stdout }: Outcome, result) => {
    const next = (result?.ranks ?? []).map(() => 0);
    for (const [, rank, number] of stdout.matchAll(/^\[(\d+)\] (\d{99})$/gm)) {
      if (next[Number(rank)] !== Number(number))
        return `rank ${rank} said ${Number(number)} after ${next[Number(rank)]} lines`;
      next[Number(rank)] = Number(number) + 1;
    }
    const short = next.findIndex((count) => count !== lines);
    return short < 0 ? null : `of rank ${short}'s ${lines} lines ${next[short]} came`;
  };
}

export const linkKinds: readonly Kind[] = [
  {
    name: 'delayed',
    class: 'goes on',
    verdicts: always,
    inject: ({ host, random }) => host.delay(1 + random(100), random(20)).then(() => true),
    after: endure,
    repair: ({ host }) => host.undelay(),
  },
  {
    name: 'lossy',
    class: 'goes on',
    verdicts: always,
    inject: ({ host, random }) => host.loss(0.01 + random(8) / 100).then(() => true),
    after: endure,
    repair: ({ host }) => host.accept(),
  },
  {
    name: 'slowed',
    class: 'goes on',
    verdicts: always,
    inject: ({ host, random }) => host.rate(`${2 + random(50)}mbit`).then(() => true),
    after: endure,
    repair: ({ host }) => host.unrate(),
  },
  {
    name: 'cut-for-a-moment',
    class: 'goes on',
    verdicts: running,
    async inject({ host, random }) {
      await host.cut();
      await delay(100 + random(400)); // TCP tries again after as long as it was cut
      await host.uncut();
      return true;
    },
    after: endure,
  },
  {
    name: 'frozen-for-a-moment',
    class: 'goes on',
    verdicts: running,
    async inject({ host, random }) {
      await host.freeze();
      await delay(100 + random(LEASE_MS - 2000));
      await host.thaw();
      return true;
    },
    after: endure,
  },
  {
    name: 'output-flood',
    class: 'goes on',
    verdicts: running,
    action: { ranks: 'all', what: 'flood', number: LINES },
    after: endure,
    check: everyLine(LINES),
  },
  {
    name: 'slow-reader',
    class: 'goes on',
    verdicts: running,
    action: { ranks: 'all', what: 'flood', number: FLOOD_LINES },
    async after(scene) {
      const { stdout } = scene.command.process;
      stdout?.pause();
      await delay(1.5 * LEASE_MS);
      stdout?.resume();
      await streams(scene);
      scene.enough();
    },
    check: everyLine(FLOOD_LINES),
  },
];
