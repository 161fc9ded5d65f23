/** What doctor does with hosts: their readings, then our own load, then the counters that may have grown under it. */
import { allChecks } from '../doctor/checks/all.ts';
import type { ReadHost } from '../doctor/finding.ts';
import { growthFindings } from '../doctor/growth.ts';
import { pairFindings } from '../doctor/pairs.ts';
import { runChecks } from '../doctor/run-checks.ts';
import type { Examined } from '../doctor/verdict.ts';
import type { DoctorJobs } from './doctor-jobs.ts';
import { lookedTogether } from './looked-together.ts';
import { loadFindings } from './measured-load.ts';
import { measuredWays } from './measured-pairs.ts';
import { reachFindings } from './reach-findings.ts';
import { countersOf, type AskedHost } from './readings-of-hosts.ts';

/** passive: no load. quick: each pair of hosts for a moment. full: everything, for minutes. */
export type Depth = 'passive' | 'quick' | 'usual' | 'full';

export async function examine(jobs: DoctorJobs, asked: readonly AskedHost[], depth: Depth): Promise<Examined> {
  const read = asked.flatMap((one) => one.read ?? []);
  const findings = [...reachFindings(asked), ...runChecks(allChecks, read)];
  const loaded = depth === 'passive' ? null : await underLoad(jobs, read, depth === 'full');
  return {
    takenAt: Date.now(),
    hosts: asked.map(({ name }) => name),
    read,
    findings: [...findings, ...(loaded?.findings ?? [])],
    ways: loaded?.ways ?? [],
  };
}

/** Between the hosts that were reached, and on them. */
async function underLoad(
  jobs: DoctorJobs,
  read: readonly ReadHost[],
  full: boolean,
): Promise<Pick<Examined, 'findings' | 'ways'>> {
  const hosts = read.map(({ name }) => name);
  if (hosts.length < 2 && !full) return { findings: [], ways: [] };
  const together = hosts.length < 2 ? [] : await lookedTogether(jobs, read);
  const ways = hosts.length < 2 ? [] : await measuredWays(jobs, hosts);
  const load = full ? await loadFindings(jobs, read) : [];
  const counted = await countersOf(jobs, hosts);
  return { findings: [...together, ...pairFindings(ways), ...load, ...growthFindings(read, counted)], ways };
}
