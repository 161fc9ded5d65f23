/** RoCE: flow control, ECN and packets of its Ethernet interfaces, and the address that NCCL is told to use. */
import type { HostReadings } from '../../../control/readings.ts';
import { warn, type Check, type Complaint } from '../finding.ts';

type Roce = HostReadings['roce'][number];

/** For packets of RoCE with 4096 bytes, the most there are. */
const MIN_MTU = 4200;

const portName = ({ card, port }: Pick<Roce, 'card' | 'port'>): string => `${card} port ${port}`;
const listed = (priorities: readonly number[]): string => (priorities.length === 0 ? 'none' : priorities.join(', '));

/** Of ports that are up: what is set on others, nobody uses. */
function activeRoce({ roce, infiniband }: HostReadings): Roce[] {
  return roce.filter((one) =>
    infiniband.some(
      ({ card, port, state }) => card === one.card && port === one.port && state.toUpperCase() === 'ACTIVE',
    ),
  );
}

function flowText({ pausing, trust, notifying, reacting }: Roce): string | null {
  if (pausing === null) return null;
  const ecn =
    notifying === null || reacting === null
      ? ''
      : `, ECN ${listed(notifying.filter((priority) => reacting.includes(priority)))}`;
  return `flow control ${listed(pausing)}${trust === null ? '' : ` by ${trust}`}${ecn}`;
}

function flowComplaints(port: Roce): Complaint[] {
  const { interface: name, trust, pausing, paused, hasVlan, notifying, reacting } = port;
  const subject = portName(port);
  const found: Complaint[] = [];
  if (pausing !== null && pausing.length > 0) {
    const others = paused.filter((priority) => !pausing.includes(priority));
    if (trust === 'pcp' && !hasVlan && !pausing.includes(0))
      found.push(
        warn(
          `${name} takes priorities from VLAN tags and has no VLAN, so flow control of priority ${listed(pausing)} never applies`,
          `mlnx_qos -i ${name} --trust dscp (as root)`,
          subject,
        ),
      );
    if (others.length > 0)
      found.push(
        warn(
          `${name} has seen pauses of priority ${listed(others)}, and has flow control for ${listed(pausing)}`,
          `set the switch and mlnx_qos -i ${name} --pfc to the same priorities (as root)`,
          subject,
        ),
      );
  }
  if (notifying !== null && reacting !== null) {
    const half = notifying.filter((priority) => !reacting.includes(priority));
    const otherHalf = reacting.filter((priority) => !notifying.includes(priority));
    const lacks = [
      ...half.map((priority) => ({ priority, what: 'slows down (roce_rp)', file: 'roce_rp' })),
      ...otherHalf.map((priority) => ({ priority, what: 'reports marks (roce_np)', file: 'roce_np' })),
    ];
    found.push(
      ...lacks.map(({ priority, what, file }) =>
        warn(
          `ECN of priority ${priority} is half on: nobody ${what}`,
          `echo 1 > /sys/class/net/${name}/ecn/${file}/enable/${priority} (as root)`,
          subject,
        ),
      ),
    );
  }
  return found;
}

export const roceChecks: readonly Check[] = [
  {
    id: 'roce.flow-control',
    about: 'flow control by priority (PFC), trust and ECN of RoCE ports',
    ofHost: (readings) => {
      const known = activeRoce(readings).filter(({ pausing, notifying }) => pausing !== null || notifying !== null);
      return known.length === 0 ? null : known.flatMap(flowComplaints);
    },
    alike: {
      what: 'RoCE ports',
      value: (readings) => {
        const words = activeRoce(readings).map(flowText);
        const known = [...new Set(words.filter((text) => text !== null))].toSorted();
        return known.length === 0 ? null : known.join('; ');
      },
      answer: 'warn',
      remedy: 'set flow control, trust and ECN alike on all hosts and ports of the switch: mlnx_qos -i NAME (as root)',
    },
  },
  {
    id: 'roce.packet-size',
    about: 'whether the largest packets of RoCE fit its interfaces',
    ofHost: (readings) => {
      const known = activeRoce(readings).filter(({ mtu }) => mtu !== null);
      if (known.length === 0) return null;
      return known
        .filter(({ mtu }) => (mtu ?? 0) < MIN_MTU)
        .map((port) =>
          warn(
            `the MTU of ${port.interface} is ${port.mtu}, so packets of RoCE carry less than 4096 bytes`,
            `ip link set dev ${port.interface} mtu 9000 (as root), on the switch too`,
            portName(port),
          ),
        );
    },
  },
  {
    id: 'roce.address-index',
    about: 'whether NCCL_IB_GID_INDEX names an address for RoCE v2',
    ofHost: ({ infiniband, environment: { nccl } }) => {
      const ports = infiniband.filter(({ state, roceIndices }) => /^active$/iu.test(state) && roceIndices.length > 0);
      if (ports.length === 0) return null;
      const forced = nccl.find(({ name }) => name === 'NCCL_IB_GID_INDEX');
      if (forced === undefined || Number(forced.value) < 0) return [];
      return ports
        .filter(({ roceIndices }) => !roceIndices.includes(Number(forced.value)))
        .map((port) =>
          warn(
            `NCCL_IB_GID_INDEX=${forced.value} (${forced.source}) names no address for RoCE v2; those are ${port.roceIndices.join(', ')}`,
            'unset it: NCCL 2.21 and later choose by themselves',
            portName(port),
          ),
        );
    },
  },
];
