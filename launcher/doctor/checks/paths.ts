/** The ways between GPUs and network cards: PCIe bridges, the IOMMU, GPUDirect; and what programs need to use InfiniBand and RoCE. */
import type { HostReadings } from '../../../control/readings.ts';
import { fail, note, warn, type Check } from '../finding.ts';

/** NVIDIA's cards reach their bandwidth with this. */
const READ_REQUEST_BYTES = 4096;
const GEN4_SPEED = 16;
const MAX_NAMED = 4;

const isActive = ({ state }: HostReadings['infiniband'][number]): boolean => state.toUpperCase() === 'ACTIVE';
const hasGpus = ({ gpus }: HostReadings): boolean => (gpus.devices?.length ?? 0) > 0;
const nameOf = ({ kind, address }: HostReadings['pci'][number]): string =>
  `${kind === 'gpu' ? 'GPU' : 'NIC'} ${address}`;

export const pathChecks: readonly Check[] = [
  {
    id: 'pci.bottleneck',
    about: 'bridges that are slower than the cards below them',
    ofHost: ({ pci }) => {
      if (pci.length === 0) return null;
      return pci.flatMap((device) => {
        const { bottleneck, kind } = device;
        if (bottleneck === null) return [];
        const { address, width, speed } = bottleneck;
        const message = `bridge ${address} above it has ${width} lanes of ${speed} GT/s, less than its own link`;
        const ofKind = pci.filter((one) => one.kind === kind);
        // A machine that is made so has no fault.
        const usual = ofKind.length > 1 && ofKind.every((one) => one.bottleneck !== null);
        return [(usual ? note : warn)(message, 'reseat the riser or the board of the bridge', nameOf(device))];
      });
    },
  },
  {
    id: 'pci.redirected',
    about: 'bridges that send what GPUs and cards say to each other through the processor (ACS)',
    ofHost: (readings) => {
      const { redirecting } = readings.pciBus;
      // In a virtual machine the host decides, and bridges are not the real ones.
      if (readings.system.virtual === true || !hasGpus(readings) || readings.pci.length < 2) return null;
      if (redirecting === null)
        return [note('whether bridges redirect GPUs’ traffic (ACS) only root may read', 'run doctor as root')];
      if (redirecting.length === 0) return [];
      const shown = redirecting.slice(0, MAX_NAMED).join(', ');
      const more = redirecting.length > MAX_NAMED ? ` and ${redirecting.length - MAX_NAMED} more` : '';
      return [
        warn(
          `access control (ACS) of ${shown}${more} sends traffic between GPUs and cards through the processor`,
          'switch ACS off in the firmware, or setpci -s BRIDGE ECAP_ACS+6.w=0000 after each start (as root)',
        ),
      ];
    },
  },
  {
    id: 'pci.iommu',
    about: 'whether devices’ accesses are translated',
    ofHost: (readings) => {
      if (readings.system.virtual === true || !hasGpus(readings)) return null;
      return readings.pciBus.iommu === 'translated'
        ? [
            warn(
              'the IOMMU translates every access of GPUs and cards, which slows down GPUDirect or breaks it',
              'add iommu=pt to the kernel’s command line, and restart (as root)',
            ),
          ]
        : [];
    },
  },
  {
    id: 'pci.read-request',
    about: 'how much network cards ask for at once',
    ofHost: ({ pci, infiniband }) => {
      if (infiniband.length === 0) return null;
      const cards = pci.filter(
        ({ kind, speed, readRequestBytes }) =>
          kind === 'nic' && (speed ?? 0) >= GEN4_SPEED && readRequestBytes !== null,
      );
      return cards
        .filter(({ readRequestBytes }) => (readRequestBytes ?? 0) < READ_REQUEST_BYTES)
        .map((card) =>
          note(
            `it reads ${card.readRequestBytes} bytes at once at most, usual: ${READ_REQUEST_BYTES}`,
            'setpci -s ADDRESS CAP_EXP+8.w=5000:7000 (as root), or the setting of the firmware',
            nameOf(card),
          ),
        );
    },
  },
  {
    id: 'gpudirect.rdma',
    about: 'whether network cards may read and write the GPUs’ memory',
    ofHost: (readings) => {
      const { gpus, infiniband } = readings;
      if (!hasGpus(readings) || !infiniband.some(isActive)) return null;
      return gpus.peerMemory || gpus.openDriver
        ? []
        : [
            warn(
              'network cards cannot reach the GPUs’ memory: nvidia-peermem is not loaded, and the kernel modules are not the open ones',
              'modprobe nvidia-peermem (as root)',
            ),
          ];
    },
  },
  {
    id: 'infiniband.device-files',
    about: 'whether this user may use the ports',
    ofHost: ({ infiniband, verbsDevices: { present, usable } }) => {
      if (infiniband.length === 0) return null;
      if (present === 0)
        return [
          fail(
            'there is no /dev/infiniband/uverbs0, so no program can use the ports',
            'modprobe ib_uverbs (as root); in a container --device /dev/infiniband',
          ),
        ];
      return usable === present
        ? []
        : [
            fail(
              `this user may open ${usable} of ${present} files /dev/infiniband/uverbs*`,
              'see their owner and mode: rdma-core’s udev rules make them readable and writable for all',
            ),
          ];
    },
  },
  {
    id: 'roce.address',
    about: 'whether RoCE ports have an address for RoCE v2',
    ofHost: ({ infiniband }) => {
      const ports = infiniband.filter((port) => isActive(port) && port.roceAddress !== null);
      if (ports.length === 0) return null;
      return ports
        .filter(({ roceAddress }) => roceAddress === false)
        .map(({ card, port }) =>
          fail(
            'has no address for RoCE v2: its interface has no IP address',
            'give its interface an address, and see show_gids',
            `${card} port ${port}`,
          ),
        );
    },
  },
  {
    id: 'network.bond',
    about: 'bonded interfaces with a slave that is down',
    ofHost: ({ bonds }) => {
      if (bonds.length === 0) return null;
      return bonds
        .filter(({ down }) => down.length > 0)
        .map(({ name, slaves, down }) =>
          warn(
            `${down.join(', ')} of its ${slaves.length} slaves is down`,
            'see its cable and the port of the switch',
            name,
          ),
        );
    },
  },
  {
    id: 'network.shared-subnet',
    about: 'several cards in one subnet, of which one carries all traffic',
    ofHost: ({ interfaces, kernelSettings: { reversePathFilter, arpIgnore } }) => {
      const cards = interfaces.filter(({ hardware, up }) => hardware && up);
      const groups = Map.groupBy(
        cards.flatMap(({ name, networks }) => networks.map((network) => ({ name, network }))),
        ({ network }) => network,
      );
      const shared = [...groups].filter(([, members]) => new Set(members.map(({ name }) => name)).size > 1);
      if (shared.length === 0 || (reversePathFilter !== 1 && arpIgnore !== 0)) return [];
      return shared.map(([network, members]) =>
        warn(
          `${members.map(({ name }) => name).join(', ')} are in ${network}, and the kernel answers and sends by one of them alone`,
          'sysctl -w net.ipv4.conf.all.rp_filter=2 net.ipv4.conf.all.arp_ignore=1 net.ipv4.conf.all.arp_announce=2 (as root), or a subnet for each',
        ),
      );
    },
  },
  {
    id: 'memory.numa-balancing',
    about: 'whether the kernel moves memory between NUMA nodes by itself',
    ofHost: ({ kernelSettings: { numaBalancing }, memory: { numaNodeBytes } }) =>
      numaBalancing === 1 && numaNodeBytes.length > 1
        ? [
            note(
              'the kernel moves memory between NUMA nodes by itself, which makes ranks that are bound uneven',
              'sysctl -w kernel.numa_balancing=0 (as root)',
            ),
          ]
        : [],
  },
  {
    id: 'memory.huge-pages',
    about: 'transparent huge pages',
    alike: {
      what: 'transparent huge pages',
      value: ({ kernelSettings: { hugePages } }) => hugePages,
      answer: 'note',
      remedy: 'set /sys/kernel/mm/transparent_hugepage/enabled alike (as root)',
    },
  },
];
