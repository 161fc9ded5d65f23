/** node test/rig/write-plan.ts PLAN.json DIRECTORY: writes DIRECTORY/host-0.plan, host-1.plan, …: the HostPlans that native tests read. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { assembleHostPlan, encodePlan } from '../../control/plan/encode.ts';
import { bindChannels } from '../../control/planner/plan.ts';
import { planFromJson } from '../../control/plan/json.ts';
import type { CommPlan } from '../../control/plan/types.ts';

/** The paths written, by host. */
export function writeHostPlans(plan: CommPlan, directory: string): string[] {
  mkdirSync(directory, { recursive: true });
  const encoded = encodePlan(plan);
  return plan.hosts.map((_, index) => {
    const path = join(directory, `host-${index}.plan`);
    writeFileSync(path, assembleHostPlan(encoded.body, encoded.host(index).bytes));
    return path;
  });
}

if (import.meta.main) {
  const [source, directory] = process.argv.slice(2);
  if (source === undefined || directory === undefined) {
    process.stderr.write('usage: node test/rig/write-plan.ts PLAN.json DIRECTORY\n');
    process.exitCode = 2;
  } else {
    const written = planFromJson(readFileSync(source, 'utf8'), source);
    const channels = bindChannels(written, written.channels).map((channel) => ({
      ...channel,
      rail: channel.rail ?? 0,
    }));
    const plan = { ...written, channels, aggregators: null };
    for (const path of writeHostPlans(plan, directory)) {
      process.stdout.write(`${path}\n`);
    }
  }
}
