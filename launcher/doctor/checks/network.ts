/** Network interfaces, InfiniBand and RoCE ports, and the PCI links of cards. */
import type { HostReadings } from '../../../control/readings.ts';
import { fail, note, warn, type Check } from '../finding.ts';

type Port = HostReadings['infiniband'][number];

/** A cable that was lost so often since the host started is loose, or its other end is. */
const MAX_CARRIER_CHANGES = 20;

const portName = ({ card, port }: Port): string => `${card} port ${port}`;
const isUp = ({ state }: Port): boolean => state.toUpperCase() === 'ACTIVE';
const inUse = (readings: HostReadings) => readings.interfaces.filter(({ up, addresses }) => up && addresses.length > 0);

/** Once for all where they are equal: `2 × 400 Gb/s`. */
function counted(words: readonly string[]): string | null {
  const groups = new Map<string, number>();
  for (const word of words) groups.set(word, (groups.get(word) ?? 0) + 1);
  const text = [...groups]
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
    .map(([word, count]) => `${count} × ${word}`);
  return text.length === 0 ? null : text.join(', ');
}

export const networkChecks: readonly Check[] = [
  {
    id: 'network.mtu',
    about: 'the size of packets',
    alike: {
      what: 'MTU of its interfaces',
      value: (readings) => counted(inUse(readings).map(({ mtu }) => String(mtu))),
      answer: 'warn',
      remedy: 'packets that are too large for one end are lost: ip link set dev NAME mtu N (as root)',
    },
  },
  {
    id: 'network.speed',
    about: 'the speed of Ethernet cards',
    ofHost: ({ interfaces }) => {
      const cards = interfaces.filter(({ hardware, up }) => hardware && up);
      return cards.flatMap(({ name, duplex }) =>
        duplex === 'half' ? [fail('runs half duplex', 'see the cable, and the settings of the switch', name)] : [],
      );
    },
    alike: {
      what: 'Ethernet cards',
      value: (readings) =>
        counted(
          inUse(readings)
            .filter(({ hardware, speedMbps }) => hardware && speedMbps !== null)
            .map(({ speedMbps }) => `${(speedMbps ?? 0) / 1000} Gb/s`),
        ),
      answer: 'fail',
      remedy: 'see ethtool NAME, the cable, and the port of the switch',
    },
  },
  {
    id: 'network.carrier',
    about: 'cables that come and go',
    ofHost: ({ interfaces }) =>
      interfaces.flatMap(({ name, hardware, carrierChanges }) =>
        hardware && carrierChanges !== null && carrierChanges > MAX_CARRIER_CHANGES
          ? [
              warn(
                `its link was lost and found ${carrierChanges} times since the host started`,
                'reseat or replace its cable',
                name,
              ),
            ]
          : [],
      ),
  },
  {
    id: 'infiniband.state',
    about: 'InfiniBand and RoCE ports that are down',
    ofHost: ({ infiniband }) => {
      if (infiniband.length === 0) return null;
      const anyUp = infiniband.some(isUp);
      return infiniband
        .filter((port) => !isUp(port))
        .map((port) => {
          const state = `${port.state}, ${port.physicalState}`.toLowerCase();
          const remedy = /init/iu.test(port.state)
            ? 'no subnet manager has set it up: see sminfo, and opensm or the switch'
            : 'see the cable and the port of the switch';
          return anyUp && /disabled|polling/iu.test(port.physicalState)
            ? note(`is down (${state})`, remedy, portName(port))
            : fail(`is down (${state})`, remedy, portName(port));
        });
    },
    alike: {
      what: 'active InfiniBand and RoCE ports',
      value: ({ infiniband }) => String(infiniband.filter(isUp).length),
      answer: 'fail',
      remedy: 'see ibstat there: a cable, a port of the switch, or a card that has failed',
    },
  },
  {
    id: 'infiniband.rate',
    about: 'the rate of the ports',
    ofHost: ({ infiniband }) => {
      const active = infiniband.filter(isUp);
      if (active.length < 2) return active.length === 0 ? null : [];
      const best = Math.max(...active.map(({ rateMbps }) => rateMbps ?? 0));
      const ofCompute = active.filter(({ linkLayer }) => linkLayer === 'InfiniBand');
      return ofCompute
        .filter(({ rateMbps }) => rateMbps !== null && rateMbps < best)
        .map((port) =>
          fail(
            `runs at ${(port.rateMbps ?? 0) / 1000} Gb/s, others here at ${best / 1000}`,
            'reseat or replace its cable',
            portName(port),
          ),
        );
    },
    alike: {
      what: 'ports',
      value: ({ infiniband }) =>
        counted(
          infiniband.filter(isUp).map(({ rateMbps, linkLayer }) => `${(rateMbps ?? 0) / 1000} Gb/s ${linkLayer}`),
        ),
      answer: 'fail',
      remedy: 'see ibstat there, and the cables',
    },
  },
  {
    id: 'infiniband.firmware',
    about: 'firmware of the cards',
    alike: {
      what: 'firmware of its cards',
      value: ({ infiniband }) =>
        counted(infiniband.map(({ firmware, board }) => `${firmware ?? '?'} (${board ?? '?'})`)),
      answer: 'warn',
      remedy: 'bring all to one version: mlxfwmanager --online -u (as root)',
    },
  },
  {
    id: 'infiniband.subnet-manager',
    about: 'whether a subnet manager has set the ports up',
    ofHost: ({ infiniband }) => {
      const active = infiniband.filter((port) => isUp(port) && port.linkLayer === 'InfiniBand');
      if (active.length === 0) return null;
      return active
        .filter(({ lid, subnetManagerLid }) => lid === 0 || subnetManagerLid === 0)
        .map((port) => fail('has no subnet manager', 'start opensm, or the one of the switch', portName(port)));
    },
  },
  {
    id: 'infiniband.downed',
    about: 'links that come and go',
    ofHost: ({ infiniband }) => {
      if (infiniband.length === 0) return null;
      return infiniband
        .filter(({ counters }) => (counters['link_downed'] ?? 0) >= 5)
        .map((port) =>
          warn(
            `its link was lost ${port.counters['link_downed']} times since its counters began`,
            'reseat or replace its cable',
            portName(port),
          ),
        );
    },
  },
  {
    id: 'infiniband.errors',
    about: 'errors that the ports have counted',
    ofHost: ({ infiniband }) => {
      if (infiniband.length === 0) return null;
      return infiniband.flatMap((port) => {
        const bad = [
          'symbol_error',
          'link_error_recovery',
          'local_link_integrity_errors',
          'port_rcv_errors',
          'excessive_buffer_overrun_errors',
        ].filter((name) => (port.counters[name] ?? 0) > 0);
        if (bad.length === 0) return [];
        const values = bad.map((name) => `${name} ${port.counters[name]}`).join(', ');
        return [
          note(`has counted ${values}; what grows under load counts`, 'reseat or replace its cable', portName(port)),
        ];
      });
    },
  },
  {
    id: 'pci.width',
    about: "lanes of the cards' links",
    ofHost: ({ pci }) => {
      const known = pci.filter(({ width, maximumWidth }) => width !== null && maximumWidth !== null);
      if (known.length === 0) return null;
      return known
        .filter(({ width, maximumWidth }) => (width ?? 0) < (maximumWidth ?? 0))
        .map(({ kind, address, width, maximumWidth }) => {
          const message = `its PCIe link has ${width} lanes of ${maximumWidth}`;
          const remedy = 'reseat the card or its riser; see the slot in the manual of the machine';
          // A card of 16 lanes may sit in a slot of 8: then all of its kind do.
          const ofKind = known.filter((one) => one.kind === kind);
          const usual = ofKind.length > 1 && ofKind.every((one) => one.width === width);
          return (usual ? note : fail)(message, remedy, `${kind === 'gpu' ? 'GPU' : 'NIC'} ${address}`);
        });
    },
  },
  {
    id: 'pci.speed',
    about: "generation of the cards' links",
    ofHost: ({ pci }) => {
      // The links of idle GPUs are slow to save power; those of network cards are not.
      const known = pci.filter(
        ({ kind, speed, maximumSpeed }) => kind === 'nic' && speed !== null && maximumSpeed !== null,
      );
      if (known.length === 0) return null;
      return known
        .filter(({ speed, maximumSpeed }) => (speed ?? 0) < (maximumSpeed ?? 0))
        .map(({ address, speed, maximumSpeed }) =>
          (known.every((one) => one.speed === speed) && known.length > 1 ? note : warn)(
            `its PCIe link runs at ${speed} GT/s of ${maximumSpeed}`,
            'reseat the card or its riser; see the settings of the slot in the firmware',
            `NIC ${address}`,
          ),
        );
    },
  },
  {
    id: 'pci.errors',
    about: 'errors on PCIe',
    ofHost: ({ pci }) => {
      const known = pci.filter(({ fatalErrors }) => fatalErrors !== null);
      if (known.length === 0) return null;
      return known.flatMap(({ kind, address, fatalErrors, nonfatalErrors, correctableErrors }) => {
        const subject = `${kind === 'gpu' ? 'GPU' : 'NIC'} ${address}`;
        const remedy = 'reseat the card or its riser; if they come again, replace it';
        if ((fatalErrors ?? 0) + (nonfatalErrors ?? 0) > 0)
          return [
            fail(
              `PCIe has counted ${fatalErrors} fatal and ${nonfatalErrors} other uncorrected errors`,
              remedy,
              subject,
            ),
          ];
        return (correctableErrors ?? 0) > 100
          ? [note(`PCIe has corrected ${correctableErrors} errors`, remedy, subject)]
          : [];
      });
    },
  },
];
