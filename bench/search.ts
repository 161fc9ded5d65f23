/**
 * node bench/search.ts [DIRECTORY] [--samples N] [--json]: how long one machine's channels of all patterns take to find, for a job on it alone and for
 * one that goes on to others, where every NIC can reduce. Each sample is a process of its own, since a plan is made once per process, with nothing
 * compiled yet; Node's start, loading and reading the file are not counted.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { shapeOf } from '../control/planner/cluster/host-shape.ts';
import { buildMachine } from '../control/planner/machine/build.ts';
import { MachineRoutes } from '../control/planner/machine/routes.ts';
import { everyElement } from '../control/topology/element.ts';
import { readXml } from '../control/topology/read-xml.ts';
import { gpuElements, withRanks } from '../control/topology/used-gpus.ts';

const GOAL_MS = 50;

interface Sample {
  readonly routesMs: number;
  readonly searchMs: number;
}

interface Row extends Sample {
  readonly machine: string;
  readonly hosts: 1 | 2;
  readonly totalMs: number;
  readonly fastestMs: number;
}

function measure(path: string, hosts: number): Sample {
  const { root } = readXml(readFileSync(path, 'utf8'), path);
  for (const element of everyElement(root)) if (element.name === 'net') element.attributes.set('coll', '1');
  const system = withRanks(root, gpuElements(root).length);
  const start = performance.now();
  const routes = new MachineRoutes(buildMachine(system));
  const routed = performance.now();
  shapeOf(routes, hosts > 1);
  return { routesMs: routed - start, searchMs: performance.now() - routed };
}

/** In a process of its own. */
function sampleOf(path: string, hosts: number): Sample {
  const program = [...process.execArgv, import.meta.filename, '--one', path, '--hosts', String(hosts)];
  const [routesMs = 0, searchMs = 0] = execFileSync(process.execPath, program, { encoding: 'utf8' })
    .split(' ')
    .map(Number);
  return { routesMs, searchMs };
}

function medianOf(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? Number.NaN;
}

const { values, positionals } = parseArgs({
  options: {
    samples: { type: 'string', default: '5' },
    json: { type: 'boolean', default: false },
    one: { type: 'string' },
    hosts: { type: 'string', default: '1' },
  },
  allowPositionals: true,
});

if (values.one === undefined) {
  const directory = resolve(positionals[0] ?? join(import.meta.dirname, '../../shared/topologies'));
  if (existsSync(directory)) compare(directory, Math.max(1, Number(values.samples)));
  else process.stdout.write(`${directory} is not there: name a directory with topologies (*.xml)\n`);
} else {
  const { routesMs, searchMs } = measure(values.one, Number(values.hosts));
  process.stdout.write(`${routesMs} ${searchMs}`);
}

/** Round by round over all machines, so that a busy minute falls on none of them alone. */
function compare(directory: string, samples: number): void {
  const machines = readdirSync(directory).flatMap((file) => /^([^.]+)\.xml$/u.exec(file)?.[1] ?? []);
  const cases = machines.flatMap((machine) =>
    ([1, 2] as const).map((hosts) => ({ machine, hosts, samples: new Array<Sample>() })),
  );
  for (let round = 0; round < samples; round++) {
    for (const one of cases) one.samples.push(sampleOf(join(directory, `${one.machine}.xml`), one.hosts));
  }
  const rows = cases.map(({ machine, hosts, samples: all }): Row => {
    const totals = all.map(({ routesMs, searchMs }) => routesMs + searchMs);
    const routesMs = medianOf(all.map((sample) => sample.routesMs));
    const searchMs = medianOf(all.map((sample) => sample.searchMs));
    return { machine, hosts, routesMs, searchMs, totalMs: medianOf(totals), fastestMs: Math.min(...totals) };
  });
  if (values.json) process.stdout.write(`${JSON.stringify({ goalMs: GOAL_MS, rows })}\n`);
  else print(rows);
}

function print(rows: readonly Row[]): void {
  process.stdout.write('machine               hosts  routes ms  search ms  total ms  fastest ms\n');
  for (const { machine, hosts, routesMs, searchMs, totalMs, fastestMs } of rows) {
    const numbers = [
      [routesMs, 11],
      [searchMs, 11],
      [totalMs, 10],
      [fastestMs, 12],
    ] as const;
    const cells = numbers.map(([value, width]) => value.toFixed(1).padStart(width)).join('');
    process.stdout.write(`${machine.padEnd(21)}${String(hosts).padStart(6)}${cells}\n`);
  }
  const above = rows.filter(({ totalMs }) => totalMs > GOAL_MS).length;
  const middle = medianOf(rows.map(({ totalMs }) => totalMs));
  process.stdout.write(`${above} of ${rows.length} above ${GOAL_MS} ms; half of them within ${middle.toFixed(1)} ms\n`);
}
