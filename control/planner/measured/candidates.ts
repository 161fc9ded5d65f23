/** A plan for measuring: a row for every form that the engine has, so that each can be asked for by its number. */
import { COLLECTIVES } from '../../plan/layout.ts';
import type { AlgorithmName, CollectiveName, DeviceName, Form, ProtocolName, TuningRow } from '../../plan/types.ts';
import { formsOnGpus, LEAST_THREADS, THREADS } from '../device/gpu-tuning.ts';
import type { Among } from '../device/gpu-tuning.ts';
import { formOnHost, PROTOCOLS_ON_HOSTS } from '../device/host-tuning.ts';
import { POSSIBLE } from '../device/wish.ts';
import type { Way } from '../input/preferences.ts';
import { choicesFor } from '../tuning/choices.ts';
import type { Situation } from '../tuning/network.ts';

/** On processors, where two ranks fill one channel with what they have to say to each other. */
export const MOST_CHANNELS_ON_HOSTS = 2;
/** From here on, beyond all sizes that there are, a measuring plan has its numbered rows. */
export const NUMBERED_FROM = 2 ** 40;

interface SearchContext extends Among {
  readonly device: DeviceName;
  readonly situation: Situation;
}

/**
 * `planned`: rows made without a table. They stay where they are, since the engine makes some forms of other collectives, which it asks the
 * plan for by their own bytes. Row k of a collective serves NUMBERED_FROM + k bytes.
 */
export function measuringRows(planned: readonly TuningRow[], context: SearchContext): TuningRow[] {
  return COLLECTIVES.flatMap((collective) => {
    const own = planned.filter((row) => row.collective === collective);
    if (collective === 'barrier') return own;
    const kernel = own.at(-1)?.forms.at(-1);
    if (kernel === undefined) return own;
    const forms = distinct([
      ...own.flatMap(({ forms: [first] }) => (first === undefined ? [] : [first])),
      ...candidates(collective, context),
    ]);
    const numbered = forms.map(
      (form, place): TuningRow => ({
        collective,
        upToBytes: NUMBERED_FROM + place,
        forms: withFallback(form, kernel),
      }),
    );
    return [
      ...own.map((row): TuningRow => ({ ...row, upToBytes: row.upToBytes ?? NUMBERED_FROM - 1 })),
      ...numbered,
      // A plan says what it takes of any size.
      { collective, upToBytes: null, forms: [kernel] },
    ];
  });
}

/** Algorithm × protocol × channels. */
function candidates(collective: CollectiveName, { device, situation, ...among }: SearchContext): Form[] {
  if (device === 'host') {
    return waysOnHosts(collective).flatMap((way) =>
      channelCounts(way.algorithm === 'ring' ? MOST_CHANNELS_ON_HOSTS : 1).map((channels) => formOnHost(way, channels)),
    );
  }
  return choicesFor(collective, situation).flatMap(({ form: algorithm, protocol }) =>
    channelCounts(formsOnGpus.mostChannels(collective, { algorithm, protocol }, among)).flatMap((channels) =>
      threadCounts(protocol, channels).map((threads) =>
        formsOnGpus.form({ algorithm, protocol }, { channels, threads }, among.ranks),
      ),
    ),
  );
}

/** Forms of a table that came from elsewhere may be none of this device's. */
export function isPossible(collective: CollectiveName, way: Way, device: DeviceName, situation: Situation): boolean {
  const ways =
    device === 'host'
      ? waysOnHosts(collective)
      : choicesFor(collective, situation).map(({ form: algorithm, protocol }) => ({ algorithm, protocol }));
  return ways.some(({ algorithm, protocol }) => algorithm === way.algorithm && protocol === way.protocol);
}

function waysOnHosts(collective: CollectiveName): Way[] {
  // Sends and receives meet by their order alone (native/datapath/launch.cc).
  const protocols = collective === 'sendRecv' ? PROTOCOLS_ON_HOSTS.slice(0, 1) : PROTOCOLS_ON_HOSTS;
  return POSSIBLE[collective].flatMap((algorithm: AlgorithmName) =>
    protocols.map((protocol) => ({ algorithm, protocol })),
  );
}

/** Powers of two, and all that there are. */
function channelCounts(most: number): number[] {
  const counts: number[] = [];
  for (let channels = 1; channels < most; channels *= 2) counts.push(channels);
  return [...counts, most];
}

/** Fewer where they move one piece of few bytes. */
function threadCounts(protocol: ProtocolName, channels: number): number[] {
  if (protocol === 'simple' || channels > 1) return [THREADS];
  const counts: number[] = [];
  for (let threads = LEAST_THREADS; threads <= THREADS; threads *= 2) counts.push(threads);
  return counts;
}

function distinct(forms: readonly Form[]): Form[] {
  const known = new Map(forms.map((form) => [nameOf(form), form]));
  return [...known.values()];
}

function nameOf({ algorithm, protocol, channels, threads }: Form): string {
  return `${algorithm} ${protocol} ${channels} ${threads}`;
}

/** A row's last form must need nothing; `kernel`: one that does not, where ranks do not agree on copies. */
export function withFallback(form: Form, kernel: Form): Form[] {
  if (form.algorithm === 'copyEngine') return [{ ...form, requires: ['publishedAddresses'] }, kernel];
  if (form.protocol !== 'll128') return [{ ...form, requires: [] }];
  return [
    { ...form, requires: ['wholeLines'] },
    { ...form, protocol: 'simple', requires: [] },
  ];
}
