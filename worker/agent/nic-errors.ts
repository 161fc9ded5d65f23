/** Errors and drops that the kernel has counted of a host's NICs. */
import { MAX_HEALTH_NICS } from '../../control/messages/host-health.ts';
import type { NicErrors } from '../../control/messages/host-health.ts';
import { listDirectory, readText } from '../topology/system-files.ts';

/** Of /sys/class/net/NIC/statistics. */
const INTERFACE_COUNTERS = [
  'rx_errors',
  'tx_errors',
  'rx_dropped',
  'tx_dropped',
  'rx_crc_errors',
  'rx_missed_errors',
  'tx_carrier_errors',
];
/** Of /sys/class/infiniband/CARD/ports/PORT: the specification's, and those of RoCE. */
const PORT_COUNTERS = [
  'counters/symbol_error',
  'counters/link_error_recovery',
  'counters/link_downed',
  'counters/port_rcv_errors',
  'counters/port_xmit_discards',
  'counters/local_link_integrity_errors',
  'counters/excessive_buffer_overrun_errors',
  'counters/VL15_dropped',
  'hw_counters/out_of_sequence',
  'hw_counters/packet_seq_err',
  'hw_counters/local_ack_timeout_err',
  'hw_counters/rnr_nak_retry_err',
  'hw_counters/roce_adp_retrans',
];

/** `root`: `/`, or a test's directory. NICs without an error are left out. */
export function nicErrors(root = '/'): NicErrors[] {
  const interfaces = listDirectory(root, 'sys/class/net').filter((name) => name !== 'lo');
  const ports = listDirectory(root, 'sys/class/infiniband').flatMap((card) =>
    listDirectory(root, `sys/class/infiniband/${card}/ports`).map((port) => ({ card, port })),
  );
  const all = [
    ...interfaces.map((nic) => {
      const statistics = INTERFACE_COUNTERS.map((name) => `statistics/${name}`);
      return errorsOf(root, nic, `sys/class/net/${nic}`, [...statistics, 'carrier_down_count']);
    }),
    ...ports.map(({ card, port }) =>
      errorsOf(root, `${card}:${port}`, `sys/class/infiniband/${card}/ports/${port}`, PORT_COUNTERS),
    ),
  ];
  return all.filter(({ counters }) => Object.keys(counters).length > 0).slice(0, MAX_HEALTH_NICS);
}

function errorsOf(root: string, nic: string, directory: string, files: readonly string[]): NicErrors {
  const counters = files.flatMap((file) => {
    const text = readText(root, `${directory}/${file}`);
    const value = /^\d+$/.test(text) ? Number(text) : 0;
    return value > 0 && Number.isSafeInteger(value) ? [[file.slice(file.lastIndexOf('/') + 1), value] as const] : [];
  });
  return { nic: nic.slice(0, 64), counters: Object.fromEntries(counters) };
}
