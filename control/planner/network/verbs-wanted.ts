/** Whether a job uses InfiniBand or RoCE where there is some. */
import type { Environment } from '../input/variables.ts';
import { anyNumber, valueOf } from '../input/variables.ts';

/** Why the user wants none at all; null: no variable says so. Throws UnplannableError for a wrong one. */
export function whyVerbsAreUnwanted(environment: Environment): string | null {
  const disabled = anyNumber(environment, 'NCCL_IB_DISABLE') ?? 0;
  if (disabled !== 0) return `NCCL_IB_DISABLE=${disabled}`;
  return valueOf(environment, 'NCCL_NET')?.toLowerCase() === 'socket' ? 'NCCL_NET=Socket' : null;
}
