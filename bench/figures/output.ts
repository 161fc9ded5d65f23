import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { repository } from '../../test/rig/cluster.ts';
import type { Figure } from '../figure.ts';
import { median } from '../measure.ts';

const RANKS = 4;
const BYTES_PER_RANK = 250_000_000;

interface Sample {
  readonly megabytesPerSecond: number;
  readonly peakMegabytes: number;
}

function peakMegabytes(pid: number): number {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    return Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024;
  } catch {
    return 0;
  }
}

/** A launcher's stdout goes through a real pipe into the checker; null unless every line of the checked ranks came whole and in order. */
async function sample(
  argv: readonly string[],
  environment: NodeJS.ProcessEnv,
  checker: string,
  checkedRanks: number,
): Promise<Sample | null> {
  const fifo = join(checker, '../fifo');
  execFileSync('mkfifo', [fifo]);
  try {
    const check = spawn(
      'sh',
      ['-c', 'exec "$@" <"$FIFO"', 'sh', checker, String(checkedRanks), String(BYTES_PER_RANK)],
      {
        env: { ...process.env, FIFO: fifo },
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    );
    let verdict = '';
    check.stdout.on('data', (bytes: Buffer) => (verdict += bytes.toString()));
    const started = performance.now();
    const launcher = spawn('sh', ['-c', 'exec "$@" >"$FIFO"', 'sh', ...argv], {
      env: { ...process.env, ...environment, FIFO: fifo },
      stdio: ['ignore', 'ignore', 'inherit'],
      detached: true,
    });
    const limit = setTimeout(() => process.kill(-(launcher.pid ?? 0), 'SIGKILL'), 60_000);
    let peak = 0;
    const sampling = setInterval(() => (peak = Math.max(peak, peakMegabytes(launcher.pid ?? 0))), 20);
    await Promise.all([once(check, 'close'), once(launcher, 'close')]);
    clearInterval(sampling);
    clearTimeout(limit);
    if (check.exitCode !== 0 || launcher.exitCode !== 0) {
      process.stderr.write(`  ${argv[0] ?? ''}: status ${launcher.exitCode}; ${verdict.trim()}\n`);
      return null;
    }
    const seconds = (performance.now() - started) / 1000;
    return { megabytesPerSecond: (RANKS * BYTES_PER_RANK) / 1e6 / seconds, peakMegabytes: peak };
  } finally {
    await rm(fifo);
  }
}

/** 1 GB of lines of 100 bytes from four ranks through the launcher's stdout. */
export const output: Figure = {
  name: 'output',
  title: '1 GB of lines through 4 ranks, every line checked',
  unavailable: () => null,
  async *run({ programs, samples }) {
    const [write, check] = await Promise.all([programs.plain('lines_write'), programs.plain('lines_check')]);
    const command = ['-n', String(RANKS), write, String(BYTES_PER_RANK)];
    const rates = new Map([['ours', new Array<number | null>()]]);
    const peaks: (number | null)[] = [];
    for (let round = 0; round < Math.min(samples, 7); round++) {
      const mine = await sample([join(repository, 'bin/ncclrun'), ...command], {}, check, RANKS);
      rates.get('ours')?.push(mine?.megabytesPerSecond ?? 0);
      peaks.push(mine?.peakMegabytes ?? null);
      if (round > 2) continue; // the peers take long and are only for comparison
      for (const peer of programs.peers) {
        const theirs = await sample(
          [...peer.launch(RANKS, [], RANKS), write, String(BYTES_PER_RANK)],
          peer.environment,
          check,
          0,
        );
        rates.set(peer.name, [...(rates.get(peer.name) ?? []), theirs?.megabytesPerSecond ?? 0]);
      }
    }
    const { ours: mine = null, ...peers } = Object.fromEntries(
      [...rates].map(([name, values]) => [name, median(values)]),
    );
    yield { what: 'rate', unit: 'MB/s', ours: mine, peers, goal: { kind: 'at-least', bound: 200 } };
    yield { what: 'launcher peak', unit: 'MB', ours: median(peaks), peers: {}, goal: { kind: 'at-most', bound: 200 } };
  },
};
