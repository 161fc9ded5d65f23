/** Congestion under our own load: how long ports waited to send, and marks of ECN that nobody follows. */
import type { HostCounters } from '../../control/readings.ts';
import { note, warn, type Complaint } from './finding.ts';

type Port = HostCounters['infiniband'][number];

/** Of what a port sent and could have sent. */
const MAX_WAITING = 0.1;
/** Words of 4 bytes; less is a moment. */
const MIN_WORDS = 2 ** 18;

const grownBy = (name: string, before: Port, after: Port): number =>
  (after.counters[name] ?? 0) - (before.counters[name] ?? 0);

/** `port_xmit_wait` counts ticks in which a port had data and no credit to send it, `port_xmit_data` words that it sent. */
export function waitComplaints(before: Port, after: Port): Complaint[] {
  const [waited, sent] = [grownBy('port_xmit_wait', before, after), grownBy('port_xmit_data', before, after)];
  const part = waited / (waited + sent);
  if (waited < MIN_WORDS || part <= MAX_WAITING) return [];
  return [
    note(
      `it waited ${Math.round(part * 100)} % of the time to send under load`,
      'see who else sends through its switches, and the routes of the subnet manager',
      `${after.card} port ${after.port}`,
    ),
  ];
}

/** The receiver of a marked packet reports it (np), the sender slows down (rp). */
export function markComplaints(before: Port, after: Port): Complaint[] {
  const subject = `${after.card} port ${after.port}`;
  const marked = grownBy('np_ecn_marked_roce_packets', before, after);
  const ignored = grownBy('rp_cnp_ignored', before, after);
  return [
    ...(marked > 0 && grownBy('np_cnp_sent', before, after) <= 0
      ? [
          warn(
            `it reported none of ${marked} packets under load that switches had marked for congestion`,
            'switch ECN on at this end: echo 1 > /sys/class/net/NAME/ecn/roce_np/enable/PRIORITY (as root)',
            subject,
          ),
        ]
      : []),
    ...(ignored > 0
      ? [
          warn(
            `it ignored ${ignored} reports of congestion under load`,
            'switch ECN on at this end: echo 1 > /sys/class/net/NAME/ecn/roce_rp/enable/PRIORITY (as root)',
            subject,
          ),
        ]
      : []),
  ];
}
