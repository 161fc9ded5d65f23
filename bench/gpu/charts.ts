/**
 * From results to pictures and tables:
 *
 *   node bench/gpu/charts.ts [--out DIRECTORY] [--about WORDS] FILE...
 *
 * WORDS: the machine and the day, say.
 * FILE: what `collectives --json` wrote (bench/gpu/collectives.c), or times of NVIDIA's library alone as {"what", "collectives": {collective:
 * {"plain-graph" …: {bytes: [microseconds, GB/s]}}}}. Of what several files have, the first counts. Into the directory (docs/charts) go an SVG for
 * each collective, in graphs and eager, and README.md with them and the tables.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { parseArgs } from 'node:util';
import { curvesOf } from './charts/curves.ts';
import { MEASURED_COLLECTIVES, read, Results, TIMINGS } from './charts/results.ts';
import type { MeasuredCollective, Timing } from './charts/results.ts';
import { chartSvg } from './charts/svg.ts';
import { tableOf } from './charts/table.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { out: { type: 'string', default: 'docs/charts' }, about: { type: 'string' } },
});
if (positionals.length === 0) throw new Error('charts.ts [--out DIRECTORY] [--about WORDS] FILE...');

const results = new Results();
for (const path of positionals) read(results, readFileSync(path, 'utf8'), basename(path));

mkdirSync(values.out, { recursive: true });
const sections = MEASURED_COLLECTIVES.flatMap((collective) => TIMINGS.map((timing) => section(collective, timing)));
const page = ['# Collectives on GPUs, in curves', head(), ...sections.filter((words) => words !== '')];
writeFileSync(join(values.out, 'README.md'), `${page.join('\n\n').trimEnd()}\n`);

function section(collective: MeasuredCollective, timing: Timing): string {
  const curves = curvesOf(results, collective, timing);
  if (curves.length === 0) return '';
  const title = `${collective}, ${timing === 'graph' ? 'in a graph' : 'eager'}`;
  const picture = `${collective}-${timing}.svg`;
  writeFileSync(join(values.out, picture), chartSvg(title, curves));
  return `## ${title}\n\n![${title}](${picture})\n\n${tableOf(results, collective, timing)}`;
}

function head(): string {
  const { limits, about } = results;
  const machine =
    limits === null
      ? []
      : [
          `${limits.ranks} GPUs; an empty kernel ${limits.launch.graph} µs in a graph, ${limits.launch.eager} eager; every GPU to the next: copy ` +
            `engines ${limits.copies} GB/s, stores of SMs ${limits.stores}. The floor is the larger of the launch and of the bytes at ` +
            'the ceiling that applies: stores for reductions, else the faster of the two.',
        ];
  const legend =
    'Ratios are ours to NCCL’s, less is faster. GB/s: bus bandwidth as nccl-tests count it, ours on plain buffers.';
  const words = new Set([...(values.about === undefined ? [] : [values.about]), ...about]); // every file says it
  return [...Array.from(words, (line) => `- ${line}`), '', ...machine, legend].join('\n');
}
