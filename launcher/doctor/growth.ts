/** What has grown while our own load ran: the readings before and after. Errors that come under load count more than those of years. */
import type { HostCounters } from '../../control/readings.ts';
import { markComplaints, waitComplaints } from './growth-congestion.ts';
import { discards, linkErrors, losses } from './grown-counters.ts';
import { fail, note, warn, type Complaint, type CountedHost, type Finding, type ReadHost } from './finding.ts';

const MANY = 100;
const MIN_SLOWED_SECONDS = 0.1;
const MAX_REPLAYS = 10;

type Port = HostCounters['infiniband'][number];

interface Pair {
  readonly host: string;
  readonly before: HostCounters;
  readonly after: HostCounters;
}

export function growthFindings(before: readonly ReadHost[], after: readonly CountedHost[]): Finding[] {
  const pairs = after.flatMap(({ name, counters }) => {
    const earlier = before.find((one) => one.name === name);
    return earlier === undefined ? [] : [{ host: name, before: earlier.readings, after: counters }];
  });
  return [
    ...ofEach('memory.growing-errors', pairs, memoryErrors),
    ...ofEach('network.errors', pairs, interfaceErrors),
    ...ofEach('infiniband.growing-errors', pairs, portErrors),
    ...ofEach('infiniband.congestion', pairs, (pair) => ofPorts(pair, 'InfiniBand', waitComplaints)),
    ...ofEach('roce.congestion', pairs, (pair) => ofPorts(pair, 'Ethernet', markComplaints)),
    ...ofEach('pci.growing-errors', pairs, pciErrors),
    ...ofEach('gpu.growing-errors', pairs, gpuErrors),
    ...ofEach('nvlink.growing-errors', pairs, nvlinkErrors),
  ];
}

function ofEach(check: string, pairs: readonly Pair[], of: (pair: Pair) => readonly Complaint[] | null): Finding[] {
  return pairs.flatMap((pair) => {
    const complaints = of(pair);
    if (complaints === null) return [];
    if (complaints.length === 0)
      return [{ check, answer: 'ok', host: pair.host, subject: '', message: '', remedy: null } as const];
    return complaints.map(({ subject = '', ...rest }) => ({ check, host: pair.host, subject, ...rest }));
  });
}

function memoryErrors({ before, after }: Pair): Complaint[] | null {
  const [then, now] = [before.memory, after.memory];
  if (now.correctedErrors === null || now.uncorrectedErrors === null) return null;
  const uncorrected = now.uncorrectedErrors - (then.uncorrectedErrors ?? now.uncorrectedErrors);
  const corrected = now.correctedErrors - (then.correctedErrors ?? now.correctedErrors);
  const remedy = 'replace the module that ras-mc-ctl --errors names (as root)';
  if (uncorrected > 0) return [fail(`main memory had ${uncorrected} uncorrected errors under load`, remedy)];
  return corrected > 0 ? [warn(`main memory corrected ${corrected} errors under load`, remedy)] : [];
}

function interfaceErrors({ before, after }: Pair): Complaint[] {
  return after.interfaces.flatMap((now) => {
    const then = before.interfaces.find(({ name }) => name === now.name);
    if (then === undefined) return [];
    const errors = now.receiveErrors + now.sendErrors - then.receiveErrors - then.sendErrors;
    const drops = now.receiveDrops + now.sendDrops - then.receiveDrops - then.sendDrops;
    const changes = (now.carrierChanges ?? 0) - (then.carrierChanges ?? 0);
    if (changes > 0) return [fail(`its link was lost under load`, 'reseat or replace its cable', now.name)];
    if (errors > 0)
      return [warn(`${errors} errors under load`, 'reseat or replace its cable; see ethtool -S', now.name)];
    return drops > MANY
      ? [
          note(
            `${drops} packets dropped under load`,
            'see ethtool -S, and the length of its rings (ethtool -g)',
            now.name,
          ),
        ]
      : [];
  });
}

function portErrors({ before, after }: Pair): Complaint[] | null {
  if (after.infiniband.length === 0) return null;
  return after.infiniband.flatMap((now) => {
    const then = before.infiniband.find(({ card, port }) => card === now.card && port === now.port);
    if (then === undefined) return [];
    const grown = (names: readonly string[]) =>
      names.flatMap((name) => {
        const by = (now.counters[name] ?? 0) - (then.counters[name] ?? 0);
        return by > 0 ? [{ name, by }] : [];
      });
    const subject = `${now.card} port ${now.port}`;
    const [errors, loss, dropped] = [grown(linkErrors), grown(losses), grown(discards)];
    return [
      ...(grown(['link_downed']).length > 0
        ? [fail('its link was lost under load', 'reseat or replace its cable', subject)]
        : []),
      ...(errors.length > 0
        ? [
            (errors.some(({ by }) => by > MANY) ? fail : warn)(
              `errors grew under load: ${grownText(errors)}`,
              'reseat or replace its cable',
              subject,
            ),
          ]
        : []),
      ...(dropped.length > 0
        ? [
            warn(
              `packets were dropped under load: ${grownText(dropped)}`,
              'see the routes of the subnet manager, and who sends into this port',
              subject,
            ),
          ]
        : []),
      ...(loss.length > 0
        ? [
            warn(
              `packets were lost under load: ${grownText(loss)}`,
              'see flow control (PFC) and ECN of the switch and of both ends',
              subject,
            ),
          ]
        : []),
    ];
  });
}

function ofPorts(
  { before, after }: Pair,
  layer: string,
  of: (then: Port, now: Port) => readonly Complaint[],
): Complaint[] | null {
  const ports = after.infiniband.filter(({ linkLayer }) => linkLayer === layer);
  if (ports.length === 0) return null;
  return ports.flatMap((now) => {
    const then = before.infiniband.find(({ card, port }) => card === now.card && port === now.port);
    return then === undefined ? [] : of(then, now);
  });
}

function grownText(all: readonly { readonly name: string; readonly by: number }[]): string {
  return all.map(({ name, by }) => `${name} by ${by}`).join(', ');
}

function pciErrors({ before, after }: Pair): Complaint[] | null {
  const known = after.pci.filter(({ correctableErrors }) => correctableErrors !== null);
  if (known.length === 0) return null;
  return known.flatMap((now) => {
    const then = before.pci.find((one) => one.address === now.address);
    if (then === undefined) return [];
    const by = (name: 'correctableErrors' | 'nonfatalErrors' | 'fatalErrors') => (now[name] ?? 0) - (then[name] ?? 0);
    const subject = `${now.kind === 'gpu' ? 'GPU' : 'NIC'} ${now.address}`;
    const uncorrected = by('nonfatalErrors') + by('fatalErrors');
    if (uncorrected > 0)
      return [
        fail(
          `PCIe had ${uncorrected} errors under load that it could not correct`,
          'reseat the card or its riser; if they come again, replace it',
          subject,
        ),
      ];
    const corrected = by('correctableErrors');
    return corrected > 0
      ? [warn(`PCIe corrected ${corrected} errors under load`, 'reseat the card or its riser', subject)]
      : [];
  });
}

type Gpu = NonNullable<HostCounters['gpus']['devices']>[number];

function ofGpus({ before, after }: Pair, of: (now: Gpu, then: Gpu) => readonly Complaint[]): Complaint[] | null {
  const now = after.gpus.devices ?? [];
  if (now.length === 0) return null;
  return now.flatMap((gpu) => {
    const then = before.gpus.devices?.find(({ busId }) => busId === gpu.busId);
    const subject = `GPU ${gpu.index} (${gpu.busId})`;
    return then === undefined ? [] : of(gpu, then).map((complaint) => ({ ...complaint, subject }));
  });
}

function gpuErrors(pair: Pair): Complaint[] | null {
  return ofGpus(pair, (now, then) => {
    const uncorrected = (now.uncorrectedErrors ?? 0) - (then.uncorrectedErrors ?? 0);
    const rows = (now.remappedRows ?? 0) - (then.remappedRows ?? 0);
    const slowed = ((now.throttledMicroseconds ?? 0) - (then.throttledMicroseconds ?? 0)) / 1e6;
    const replays = (now.pcieReplays ?? 0) - (then.pcieReplays ?? 0);
    return [
      ...(uncorrected > 0
        ? [
            fail(
              `its memory had ${uncorrected} uncorrected errors under load`,
              'reset it, and replace it if they come again',
            ),
          ]
        : []),
      ...(rows > 0 ? [warn(`${rows} rows of its memory were replaced under load`, 'reset it once it is idle')] : []),
      ...(slowed > MIN_SLOWED_SECONDS
        ? [
            fail(
              `heat or power lowered its clocks for ${slowed.toFixed(1)} s under load`,
              'see its cooling and its power supply',
            ),
          ]
        : []),
      ...(replays > MAX_REPLAYS
        ? [warn(`PCIe sent ${replays} packets again under load`, 'reseat the card or its riser')]
        : []),
    ];
  });
}

function nvlinkErrors(pair: Pair): Complaint[] | null {
  if (pair.after.gpus.devices?.some(({ nvlinkErrors: errors }) => errors !== null) !== true) return null;
  return ofGpus(pair, (now, then) => {
    const by = (now.nvlinkErrors ?? 0) - (then.nvlinkErrors ?? 0);
    if (by <= 0) return [];
    const remedy =
      'see nvidia-smi nvlink --errorcounters; reset the GPUs; if they come again, replace the GPU or its board';
    return [(by > MANY ? fail : warn)(`its NVLinks had ${by} errors under load`, remedy)];
  });
}
