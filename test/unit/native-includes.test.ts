/** The folders of native/ stand above one another: no include leads back up. */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';

const native = join(import.meta.dirname, '../../native');

/** Each folder with those it may include, beside itself and the public headers. What stands first is built on what follows. */
const mayInclude: Readonly<Record<string, readonly string[]>> = {
  perf: [],
  binding: ['plan', 'dl', 'base'],
  abi: ['aggregator', 'communicator', 'agent', 'dl', 'base'],
  communicator: ['cuda', 'host', 'net/measure', 'net/plugin', 'datapath', 'agent', 'plan', 'dl', 'base'],
  cuda: ['cuda/net', 'cuda/p2p', 'net/proxy', 'datapath', 'algorithm', 'plan', 'dl', 'base'],
  'cuda/net': ['net', 'net/proxy', 'plan', 'dl', 'base'],
  'cuda/p2p': ['plan', 'dl', 'base'],
  'cuda/kernels': ['algorithm', 'plan'],
  agent: ['host', 'dl', 'base'],
  host: ['host/shm', 'net', 'net/proxy', 'datapath', 'algorithm', 'plan', 'base'],
  'host/shm': ['net', 'datapath', 'plan'],
  'net/measure': ['net/proxy', 'net', 'plan', 'base'],
  'net/proxy': ['aggregator', 'net', 'net/oob', 'net/plugin', 'net/socket', 'net/verbs', 'datapath', 'plan', 'base'],
  aggregator: ['net', 'net/socket', 'datapath', 'base'],
  'net/oob': ['net', 'net/socket', 'base'],
  'net/plugin': ['net', 'base'],
  'net/verbs': ['net', 'net/socket', 'dl', 'base'],
  'net/socket': ['net', 'base'],
  net: ['datapath', 'plan', 'base'],
  datapath: ['plan', 'dl', 'base'],
  algorithm: ['base'],
  plan: ['base'],
  dl: ['base'],
  guardian: ['stack', 'base'],
  stack: ['base'],
  watchdog: ['base'],
  unpack: ['base'],
  dial: [],
  base: [],
};

interface Include {
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

function includes(): Include[] {
  const files = readdirSync(native, { recursive: true, encoding: 'utf8' }).filter(
    (file) => /\.(cc|h|cu|cuh)$/.test(file) && !/^(test|release)\//.test(file),
  );
  const known = new Set(files);
  const found: Include[] = [];
  for (const file of files) {
    for (const [, target = ''] of readFileSync(join(native, file), 'utf8').matchAll(/^\s*#\s*include\s+"([^"]+)"/gm)) {
      const path = [target, join(target)].find((each) => known.has(each));
      if (path !== undefined) found.push({ file, from: dirname(file), to: dirname(path) });
    }
  }
  return found;
}

function allowed({ from, to }: Include): boolean {
  return to === 'include' || from === to || (mayInclude[from]?.includes(to) ?? false);
}

describe('includes of the native code', () => {
  const all = includes();

  it('every include leads to a folder that its own folder may include', () => {
    expect(all.length).toBeGreaterThan(500);
    expect(all.filter((each) => !allowed(each))).toEqual([]);
  });

  it('every permitted include is used, and none leads upward', () => {
    const above = Object.keys(mayInclude);
    for (const [from, folders] of Object.entries(mayInclude)) {
      for (const to of folders) {
        expect(
          all.some((include) => include.from === from && include.to === to),
          `${from} → ${to}`,
        ).toBe(true);
        expect(above.indexOf(to) > above.indexOf(from), `${to} stands below ${from}`).toBe(true);
      }
    }
  });
});
