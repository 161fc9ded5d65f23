/** Events as lines for --verbose, and the line that tells whom a job waits for. */
import type { JobEvent } from '../model/event.ts';
import { failureText } from './failure-text.ts';
import { ranges } from '../text/ranges.ts';
import { signalWithMeaning } from './signal-name.ts';
import { unreachableEvent } from './unreachable-event.ts';
import { counted } from '../text/counted.ts';

/** Names shown before the rest becomes a number. */
const shownNames = 6;

/** null where the plain reporter says it anyway. */
export function verboseText(event: JobEvent): string | null {
  switch (event.type) {
    case 'job-started':
      return `job ${event.jobId}: ${counted(event.ranks, 'rank')} of ${event.programs.map((argv) => argv.join(' ')).join(' : ')} on ${nameList(event.hosts)}`;
    case 'phase':
      return `phase: ${event.phase}`;
    case 'host-connecting':
      return `${event.host}: connecting`;
    case 'host-staging':
      return `${event.host}: gets a copy of ncclrun, ${megabytes(event.bytes)}`;
    case 'host-step':
      return `${event.host}: ${event.step}`;
    case 'host-remote-shell':
      return `${event.host}: ${event.message}`;
    case 'host-up':
      return `${event.host}: up, ${counted(event.cores, 'core')}, ${counted(event.gpus, 'GPU')}, agent pid ${event.pid}`;
    case 'host-ended':
      return `${event.host}: ended`;
    case 'rank-started':
      return `rank ${event.rank} on ${event.host}: started, pid ${event.pid}`;
    case 'rank-exited': {
      const how = event.signal === null ? `status ${event.exitCode ?? 'unknown'}` : signalWithMeaning(event.signal);
      return `rank ${event.rank} on ${event.host}: ended, ${how}`;
    }
    case 'communicator':
      return `communicator of ${counted(event.ranks, 'rank')} on ${counted(event.hosts, 'host')} wired up`;
    case 'tuning':
      return event.measured
        ? `${event.host}: the variants of ${counted(event.ranks, 'rank')} are those of ${event.file}`
        : `${event.host}: the variants of ${counted(event.ranks, 'rank')} are measured for ${event.file}`;
    case 'signal':
      return `${event.signal} ${event.forwarded ? 'forwarded to the ranks' : 'received'}`;
    case 'failure':
      return event.primary ? null : `also: ${failureText(event.failure).sentence}`;
    case 'job-ended':
      return `job ended: ${event.reason}, status ${event.exitCode}`;
    case 'network':
      return event.message;
    case 'notice':
    case 'waiting':
    case 'binding':
    case 'hang':
    case 'hang-stacks':
    case 'verdict':
    case 'xid':
    case 'restart':
    case 'shrink':
      return null;
    default:
      return unreachableEvent(event);
  }
}

export function waitingText(event: Extract<JobEvent, { type: 'waiting' }>): string {
  return `${event.what}: waiting for ${nameList(event.missing)} (${event.seconds} s)`;
}

type Binding = Omit<Extract<JobEvent, { type: 'binding' }>, 'type' | 'time'>;

export function bindingText({ rank, host, bound, cpus, numa, gpu }: Binding): string {
  const list = `CPU${cpus.length === 1 ? '' : 's'} ${ranges(cpus)}`;
  const where = bound ? `bound to ${list}` : `not bound, ${list}`;
  return `rank ${rank} on ${host}: ${where}${numa === null ? '' : `, NUMA node ${numa}`}${gpu === null ? '' : `, GPU ${gpu}`}`;
}

function nameList(names: readonly string[]): string {
  const shown = names.slice(0, shownNames).join(', ');
  return names.length > shownNames ? `${shown} and ${names.length - shownNames} more` : shown;
}

/** Of which a host gets a copy. */
export function megabytes(bytes: number): string {
  return `${Math.ceil(bytes / 1e6)} MB`;
}
