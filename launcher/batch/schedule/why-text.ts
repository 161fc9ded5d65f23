/** Why a task waits, in words. */
import { counted } from '../../text/counted.ts';
import { foldNames } from '../../text/fold-names.ts';
import { clockTime } from './clock-time.ts';
import { lackText } from './lack-text.ts';
import type { Lack } from './lack.ts';
import type { FreeSlots, WaitReason } from './why.ts';

/** Tasks that are named. */
const MAX_NAMES = 3;
const MINUTE = 60;
const HOUR = 60 * MINUTE;

export function whyText(reason: WaitReason, now: number): string {
  switch (reason.kind) {
    case 'ready':
      return 'starts next';
    case 'never-fits':
      return `never fits: ${lackText(reason.lack, 'ever')}`;
    case 'hosts-held': {
      const { hosts, until } = reason;
      const who = `${hosts.length === 1 ? 'host' : 'hosts'} ${foldNames(hosts).join(',')} ${hosts.length === 1 ? 'is' : 'are'}`;
      return `${who} quarantined until ${until === null ? 'somebody releases them' : clockTime(until, now)}`;
    }
    case 'first': {
      const { lack, room, startBy, endless } = reason;
      const when =
        startBy === null
          ? `cannot say when it starts: ${namesText(endless)} ${endless.length === 1 ? 'has' : 'have'} no time limit`
          : startBy <= now
            ? 'can start at any moment'
            : `can start at ${clockTime(startBy, now)} at the latest`;
      return `${roomText(lack, room)}; ${when}`;
    }
    case 'full':
      return roomText(reason.lack, reason.room);
    case 'behind': {
      const { task, startBy, sufficientLimitSeconds } = reason;
      const when = startBy === null ? '' : ` for ${clockTime(startBy, now)}`;
      const limit = sufficientLimitSeconds;
      const advice = limit === null ? '' : `; with a time limit of ${limitText(limit)} it could start now`;
      return `behind ${task}, which has the reservation${when}${advice}`;
    }
    default:
      return unknownReason(reason);
  }
}

/** `wants 8 slots; 2 of 16 are free` where any slots will do. */
function roomText(lack: Lack, { free, total }: FreeSlots): string {
  if (lack.kind !== 'sum' || lack.of !== 'slots' || lack.hosts !== null) return lackText(lack, 'now');
  return `wants ${counted(lack.wanted, 'slot')}; ${free} of ${total} slots ${free === 1 ? 'is' : 'are'} free`;
}

function namesText(names: readonly string[]): string {
  if (names.length === 0) return 'a running task';
  if (names.length <= MAX_NAMES) return names.join(', ');
  return `${names.slice(0, MAX_NAMES).join(', ')} and ${names.length - MAX_NAMES} more`;
}

/** Rounded down: `2 h 5 min`, `7 min`, `30 s` */
function limitText(seconds: number): string {
  if (seconds < MINUTE) return `${seconds} s`;
  const minutes = Math.floor((seconds % HOUR) / MINUTE);
  if (seconds < HOUR) return `${minutes} min`;
  return minutes === 0 ? `${Math.floor(seconds / HOUR)} h` : `${Math.floor(seconds / HOUR)} h ${minutes} min`;
}

function unknownReason(reason: never): never {
  throw new TypeError(`a reason of unknown kind: ${JSON.stringify(reason)}`);
}
