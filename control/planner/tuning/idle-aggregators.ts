/** Why a communicator leaves the job's aggregators idle, in words. */
import { isCollnet } from '../../plan/possible.ts';
import { isPreferred } from '../input/preferences.ts';
import type { Preferences } from '../input/preferences.ts';
import { bestOf, choicesFor, isConditional, timeOf } from './choices.ts';
import { collnetLimit } from './collnet-limit.ts';
import { binarySize } from '../../size-text.ts';
import type { Situation } from './situation.ts';

/** The size whose times are given: of large gradients. */
const BYTES = 64 * 2 ** 20;

/** A clause; null: there are no aggregators. `nameOf`: of a host of the communicator. */
export function whyIdle(
  situation: Situation,
  preferences: Preferences,
  nameOf: (host: number) => string,
): string | null {
  const { between } = situation;
  if (between?.reduction.by !== 'aggregators') return null;
  const all = choicesFor('allReduce', situation);
  const forms = all.filter(({ algorithm }) => isCollnet(algorithm));
  const collnet = bestOf('allReduce', forms, BYTES);
  const other = bestOf(
    'allReduce',
    all.filter((choice) => !isConditional(choice)),
    BYTES,
  );
  if (collnet === null || other === null) return null;
  if (!forms.some((form) => isPreferred('allReduce', form, preferences)))
    return 'NCCL_ALGO or NCCL_PROTO asks for others';
  const [byNetwork, byRanks] = [timeOf(collnet, BYTES), timeOf(other, BYTES)];
  if (byNetwork < byRanks) return 'by the times that ncclrun tune has measured the ranks alone are faster';
  const times = `${milliseconds(byNetwork)} ms instead of ${milliseconds(byRanks)}`;
  const limit = collnetLimit(collnet, { situation, between }, BYTES, nameOf);
  return `through them ${binarySize(BYTES)} would take ${times} (${limit}); NCCL_ALGO=collnet uses them all the same`;
}

/** With three digits. */
function milliseconds(microseconds: number): string {
  return String(Number((microseconds / 1000).toPrecision(3)));
}
