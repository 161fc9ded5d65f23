/** Errors that hosts count, by name, and those that are more than at an earlier time. */
import type { HostCounters } from '../../control/readings.ts';

/** Counters of InfiniBand ports that stand still on a good link, and those of RoCE that tell of lost packets. */
export const linkErrors = [
  'symbol_error',
  'link_error_recovery',
  'port_rcv_errors',
  'local_link_integrity_errors',
  'excessive_buffer_overrun_errors',
] as const;
export const losses = [
  'out_of_sequence',
  'packet_seq_err',
  'local_ack_timeout_err',
  'rnr_nak_retry_err',
  'roce_adp_retrans',
] as const;
/** Packets that a port had no room for. */
export const discards = ['port_xmit_discards', 'VL15_dropped'] as const;

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
  add('main memory', 'corrected errors', before.memory.correctedErrors, after.memory.correctedErrors);
  add('main memory', 'uncorrected errors', before.memory.uncorrectedErrors, after.memory.uncorrectedErrors);
  for (const now of after.interfaces) {
    const then = before.interfaces.find(({ name }) => name === now.name);
    add(now.name, 'errors', then && then.receiveErrors + then.sendErrors, now.receiveErrors + now.sendErrors);
    if (now.hardware) add(now.name, 'changes of the link', then?.carrierChanges, now.carrierChanges);
  }
  for (const now of after.infiniband) {
    const then = before.infiniband.find(({ card, port }) => card === now.card && port === now.port);
    for (const name of [...linkErrors, ...losses, ...discards, 'link_downed'])
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
    add(subject, 'uncorrected errors of on-chip memory', then?.sramErrors, now.sramErrors);
    add(subject, 'errors of NVLinks', then?.nvlinkErrors, now.nvlinkErrors);
  }
  return grown;
}
