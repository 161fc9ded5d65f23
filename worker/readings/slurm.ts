/** What Slurm's controller says of this host, where Slurm is set up. */
import { hostname } from 'node:os';
import type { HostReadings } from '../../control/readings.ts';
import { listDirectory } from '../topology/system-files.ts';
import { runTool } from './run-tool.ts';
import { numberOf } from './whole-numbers.ts';

const LIMIT_MS = 3000;
/** Usual places of slurm.conf. */
const directories = ['etc/slurm', 'etc/slurm-llnl', 'run/slurm/conf'];

/** Null: there is no Slurm here, or its controller does not answer or does not know this host. */
export async function readSlurm(root: string): Promise<HostReadings['slurm']> {
  const isThere =
    process.env['SLURM_CONF'] !== undefined ||
    directories.some((directory) => listDirectory(root, directory).includes('slurm.conf'));
  if (!isThere) return null;
  const name = hostname().split('.', 1)[0] ?? '';
  const answer = await runTool('scontrol', ['show', 'node', name, '--oneliner'], LIMIT_MS);
  return 'output' in answer ? nodeIn(answer.output) : null;
}

/** `NodeName=a … Gres=gpu:h100:8(S:0-1) … State=IDLE+DRAIN … Reason=bad GPU [root@2026-01-01T00:00:00]` */
export function nodeIn(text: string): HostReadings['slurm'] {
  const state = /\bState=(\S+)/u.exec(text)?.[1];
  if (state === undefined) return null;
  const gpus = Array.from(/\bGres=(\S+)/u.exec(text)?.[1]?.matchAll(/gpu(?::[^:,(]+)?:(\d+)/gu) ?? [], ([, count]) =>
    numberOf(count),
  );
  return {
    state,
    reason: /\bReason=(.*?)(?:\s+\[|\s+\w+=|\s*$)/u.exec(text)?.[1]?.slice(0, 200) ?? null,
    gpus: gpus.length === 0 ? null : gpus.reduce<number>((sum, count) => sum + (count ?? 0), 0),
  };
}
