/** What a recorded operation was called with. */
import { NO_PEER, RecordFlag, type RecorderEntry } from '../../control/messages/recorder.ts';
import { COLLECTIVE_ARGUMENTS, COLLECTIVES } from '../../control/collectives.ts';
import { ALGORITHMS, PROTOCOLS } from '../../control/plan/layout.ts';

/** ncclDataType_t, and the bytes of each. */
const TYPES = [
  ['int8', 1],
  ['uint8', 1],
  ['int32', 4],
  ['uint32', 4],
  ['int64', 8],
  ['uint64', 8],
  ['float16', 2],
  ['float32', 4],
  ['float64', 8],
  ['bfloat16', 2],
  ['float8e4m3', 1],
  ['float8e5m2', 1],
] as const;
/** ncclRedOp_t; the last stands for every operator of the user's. */
const OPERATORS = ['sum', 'prod', 'max', 'min', 'avg', 'premulsum'] as const;
const MESSAGE = COLLECTIVES.indexOf('sendRecv');
const BARRIER = COLLECTIVES.indexOf('barrier');

export function isMessage({ collective }: RecorderEntry): boolean {
  return collective === MESSAGE;
}

export function isSend({ flags }: RecorderEntry): boolean {
  return (flags & RecordFlag.send) !== 0;
}

/** Of the call's count: what a rank gives to an all-gather, gets from a reduce-scatter. */
export function bytesOf({ count, call }: RecorderEntry): number {
  return count * (TYPES[call % 16]?.[1] ?? 1);
}

/** `allReduce float32 sum`, `broadcast int8 from 3`, `send float32 to 1`. Equal for all ranks that called the same. */
export function callText(entry: RecorderEntry): string {
  const { collective, call, peer } = entry;
  if (collective === BARRIER) return 'barrier';
  const type = TYPES[call % 16]?.[0] ?? 'unknown';
  if (isMessage(entry)) return `${isSend(entry) ? 'send' : 'receive'} ${type}`;
  const name = COLLECTIVES[collective] ?? 'barrier';
  const has = COLLECTIVE_ARGUMENTS[name];
  const operator = has.operator ? ` ${OPERATORS[Math.floor(call / 16)] ?? 'unknown'}` : '';
  return `${name} ${type}${operator}${has.root && peer !== NO_PEER ? ` root ${peer}` : ''}`;
}

/** `ring simple, 2 channels` */
export function variantText({ algorithm, protocol, channels }: RecorderEntry): string {
  return `${ALGORITHMS[algorithm] ?? 'unknown'} ${PROTOCOLS[protocol] ?? 'unknown'}, ${channels} channel${channels === 1 ? '' : 's'}`;
}

/** How far it came, for people. `called`: copy engines run it, or a kernel that records nothing: nobody sees how far that is. */
type State = 'ended' | 'failed' | 'running' | 'queued' | 'called' | 'captured' | 'cancelled';

export function stateOf({ startedNs, endedNs, flags }: RecorderEntry): State {
  if ((flags & RecordFlag.cancelled) !== 0) return 'cancelled';
  if ((flags & (RecordFlag.failed | RecordFlag.aborted)) !== 0) return 'failed';
  if (endedNs !== 0) return 'ended';
  if (startedNs !== 0) return 'running';
  if ((flags & RecordFlag.captured) !== 0) return 'captured';
  return (flags & RecordFlag.onGpu) === 0 || (flags & RecordFlag.gpuStamp) !== 0 ? 'queued' : 'called';
}
