/** What has grown while our own load ran: the readings before and after. Errors that come under load count more than those of years. */
import type { HostCounters } from '../../control/readings.ts';
import { fail, note, warn, type Complaint, type CountedHost, type Finding, type ReadHost } from './finding.ts';

/** Counters of InfiniBand ports that stand still on a good link, and those of RoCE that tell of lost packets. */
const linkErrors = [
  'symbol_error',
  'link_error_recovery',
  'port_rcv_errors',
  'local_link_integrity_errors',
  'excessive_buffer_overrun_errors',
] as const;
const losses = [
  'out_of_sequence',
  'packet_seq_err',
  'local_ack_timeout_err',
  'rnr_nak_retry_err',
  'roce_adp_retrans',
] as const;
const MANY = 100;

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
    ...ofEach('network.errors', pairs, interfaceErrors),
    ...ofEach('infiniband.growing-errors', pairs, portErrors),
    ...ofEach('pci.growing-errors', pairs, pciErrors),
  ];
}

interface GrownCounter {
  readonly subject: string;
  readonly name: string;
  readonly by: number;
}

/** Errors of any kind that are more than before, for a comparison with another run. */
export function grownCounters(before: HostCounters, after: HostCounters): GrownCounter[] {
  const grown: GrownCounter[] = [];
  const add = (
    subject: string,
    name: string,
    then: number | null | undefined,
    now: number | null | undefined,
  ): void => {
    const by = (now ?? 0) - (then ?? 0);
    if (by > 0 && then !== null && then !== undefined) grown.push({ subject, name, by });
  };
  for (const now of after.interfaces) {
    const then = before.interfaces.find(({ name }) => name === now.name);
    add(now.name, 'errors', then && then.receiveErrors + then.sendErrors, now.receiveErrors + now.sendErrors);
    if (now.hardware) add(now.name, 'changes of the link', then?.carrierChanges, now.carrierChanges);
  }
  for (const now of after.infiniband) {
    const then = before.infiniband.find(({ card, port }) => card === now.card && port === now.port);
    for (const name of [...linkErrors, ...losses, 'link_downed'])
      add(`${now.card} port ${now.port}`, name, then?.counters[name], now.counters[name]);
  }
  for (const now of after.pci) {
    const then = before.pci.find(({ address }) => address === now.address);
    const subject = `${now.kind === 'gpu' ? 'GPU' : 'NIC'} ${now.address}`;
    add(subject, 'corrected errors of PCIe', then?.correctableErrors, now.correctableErrors);
    add(subject, 'nonfatal errors of PCIe', then?.nonfatalErrors, now.nonfatalErrors);
    add(subject, 'fatal errors of PCIe', then?.fatalErrors, now.fatalErrors);
  }
  for (const now of after.gpus.devices ?? []) {
    const then = before.gpus.devices?.find(({ busId }) => busId === now.busId);
    const subject = `GPU ${now.index} (${now.busId})`;
    add(subject, 'uncorrected errors', then?.uncorrectedErrors, now.uncorrectedErrors);
    add(subject, 'corrected errors', then?.correctedErrors, now.correctedErrors);
    add(subject, 'remapped rows', then?.remappedRows, now.remappedRows);
    add(subject, 'errors of NVLinks', then?.nvlinkErrors, now.nvlinkErrors);
  }
  return grown;
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
    const [errors, loss] = [grown(linkErrors), grown(losses)];
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

function grownText(all: readonly { readonly name: string; readonly by: number }[]): string {
  return all.map(({ name, by }) => `${name} by ${by}`).join(', ');
}

function pciErrors({ before, after }: Pair): Complaint[] | null {
  const known = after.pci.filter(({ correctableErrors }) => correctableErrors !== null);
  if (known.length === 0) return null;
  return known.flatMap(({ address, kind, correctableErrors }) => {
    const by = (correctableErrors ?? 0) - (before.pci.find((one) => one.address === address)?.correctableErrors ?? 0);
    if (by <= 0) return [];
    const subject = `${kind === 'gpu' ? 'GPU' : 'NIC'} ${address}`;
    return [warn(`PCIe corrected ${by} errors under load`, 'reseat the card or its riser', subject)];
  });
}
