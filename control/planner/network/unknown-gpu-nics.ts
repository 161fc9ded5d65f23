/** GPUDirect on a host whose topology is not known. */
import type { GpuDirectVerdict, GpuNic } from '../../plan/gpu-nics.ts';
import { valueOf, wholeNumber } from '../input/variables.ts';
import type { Environment } from '../input/variables.ts';
import { levelOf } from '../machine/level.ts';
import { distance } from '../machine/path.ts';

/** Every card may be as far away as can be: only NCCL_NET_GDR_LEVEL=SYS lets it. Throws UnplannableError. */
export function unknownGpuNics(localRanks: number, environment: Environment): GpuNic[] {
  const level = valueOf(environment, 'NCCL_NET_GDR_LEVEL');
  const isNear = distance(level === null ? 'P2C' : levelOf('NCCL_NET_GDR_LEVEL', level)) >= distance('SYS');
  const receives: GpuDirectVerdict = isNear ? 'allowed' : 'tooFar';
  const sends = isNear && wholeNumber(environment, 'NCCL_NET_GDR_READ', 0, 1) === 0 ? 'noReads' : receives;
  return Array.from({ length: localRanks }, (_, local) => ({ local, card: null, path: 'SYS', receives, sends }));
}
