/** What programs need to reach GPUs of other hosts by NVLink: a channel of the driver, and NVIDIA's IMEX service. */
import { join } from 'node:path';
import type { HostReadings } from '../../control/readings.ts';
import { listDirectory } from '../topology/system-files.ts';
import { mayOpen } from './network.ts';
import { runTool } from './run-tool.ts';

const LIMIT_MS = 3000;
const DIRECTORY = 'dev/nvidia-caps-imex-channels';

/** The service is asked where GPUs belong to a fabric over several hosts only. */
export async function readImex(root: string, { devices }: HostReadings['gpus']): Promise<HostReadings['imex']> {
  const channels = listDirectory(root, DIRECTORY).filter((name) => /^channel\d+$/u.test(name));
  const usable = channels.filter((name) => mayOpen(join(root, DIRECTORY, name)));
  const isDomain = devices?.some(({ domain }) => domain !== null) === true;
  const answer = isDomain ? await runTool('nvidia-imex-ctl', ['-q'], LIMIT_MS) : null;
  return {
    channels: channels.length,
    usableChannels: usable.length,
    state: answer !== null && 'output' in answer ? answer.output.trim().slice(0, 200) : null,
  };
}
