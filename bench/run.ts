/**
 * Side by side with the peers of the system's packages: `npm run bench -- [FIGURE…] [--samples N] [--json FILE]`.
 * Prints medians, the ratio to the faster peer, the goal and OK or MISS. Only ratios last: absolute times are this machine's, this minute's.
 */
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { type Figure, type Judged, judge, line } from './figure.ts';
import { batch } from './figures/batch.ts';
import { collectives, collectivesBetweenHosts } from './figures/collectives.ts';
import { collnet } from './figures/collnet.ts';
import { connectMany } from './figures/connect_many.ts';
import { crossing } from './figures/crossing.ts';
import { idleAgents } from './figures/idle_agents.ts';
import { launchLocal } from './figures/launch_local.ts';
import { launchMany } from './figures/launch_many.ts';
import { launchSsh } from './figures/launch_ssh.ts';
import { launchSsh2 } from './figures/launch_ssh2.ts';
import { nonblocking } from './figures/nonblocking.ts';
import { output } from './figures/output.ts';
import { recorder } from './figures/recorder.ts';
import { rest } from './figures/rest.ts';
import { restart } from './figures/restart.ts';
import { send } from './figures/send.ts';
import { simulatedAgents } from './figures/simulated_agents.ts';
import { slowLinks } from './figures/slow_links.ts';
import { sockets } from './figures/sockets.ts';
import { split } from './figures/split.ts';
import { staging } from './figures/staging.ts';
import { verbs } from './figures/verbs.ts';
import { wired } from './figures/wired.ts';
import { Programs } from './programs.ts';

const figures: readonly Figure[] = [
  launchLocal,
  launchSsh,
  launchSsh2,
  launchMany,
  batch,
  wired,
  connectMany,
  rest,
  idleAgents,
  simulatedAgents,
  restart,
  split,
  nonblocking,
  recorder,
  ...collectives,
  send,
  sockets,
  verbs,
  ...collectivesBetweenHosts,
  slowLinks,
  collnet,
  crossing,
  output,
  staging,
];

const { values, positionals } = parseArgs({
  options: { samples: { type: 'string', default: '7' }, json: { type: 'string' } },
  allowPositionals: true,
});
const unknown = positionals.filter((name) => !figures.some((figure) => figure.name === name));
if (unknown.length > 0) {
  process.stderr.write(
    `no figure ${unknown.join(', ')}; there are: ${figures.map((figure) => figure.name).join(', ')}\n`,
  );
  process.exit(2);
}

await using programs = await Programs.open();
const document: Record<string, { title: string; skipped: string | null; rows: Judged[] }> = {};
for (const figure of figures) {
  if (positionals.length > 0 && !positionals.includes(figure.name)) continue;
  const skipped = figure.unavailable();
  const rows: Judged[] = [];
  document[figure.name] = { title: figure.title, skipped, rows };
  process.stdout.write(`${figure.name}: ${figure.title}\n`);
  if (skipped !== null) {
    process.stdout.write(`  skipped: ${skipped}\n`);
    continue;
  }
  for await (const row of figure.run({ programs, samples: Number(values.samples) })) {
    rows.push(judge(row));
    process.stdout.write(`${line(judge(row))}\n`);
  }
}
if (values.json !== undefined)
  writeFileSync(values.json, `${JSON.stringify({ schemaVersion: 1, figures: document }, null, 2)}\n`);
const misses = Object.values(document).flatMap(({ rows }) => rows.filter((row) => row.verdict === 'MISS'));
process.stdout.write(`${misses.length === 0 ? 'every goal met' : `${misses.length} goals missed`}\n`);
