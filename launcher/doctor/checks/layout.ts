/** Where cards sit, and what joins the GPUs of several hosts. */
import type { HostReadings } from '../../../control/readings.ts';
import { fail, note, unknown, warn, type Check, type Complaint, type ReadHost } from '../finding.ts';

type Domain = NonNullable<NonNullable<HostReadings['gpus']['devices']>[number]['domain']>;

/** A host without switches of PCIe has no card near a GPU; of those that have, each GPU should. */
function cardsNear(readings: HostReadings): { readonly address: string; readonly cards: number }[] {
  const ports = new Set(readings.infiniband.map(({ address }) => address));
  const cards = readings.pci.filter(({ kind, address }) => kind === 'nic' && ports.has(address));
  const gpus = readings.pci.filter(({ kind }) => kind === 'gpu');
  return gpus.map(({ address, bridges }) => ({
    address,
    cards: cards.filter((card) => card.bridges.some((bridge) => bridges.includes(bridge))).length,
  }));
}

function domainsOf({ gpus }: HostReadings): Domain[] {
  return (gpus.devices ?? []).flatMap(({ domain }) => domain ?? []);
}

function imexComplaints({ imex, system }: HostReadings): Complaint[] {
  const { channels, usableChannels, state } = imex;
  const why = 'so programs cannot use NVLinks between hosts';
  if (channels === 0)
    return [
      fail(
        `there is no /dev/nvidia-caps-imex-channels/channel0, ${why}`,
        'load the driver with NVreg_CreateImexChannel0=1, or make it with mknod (as root)',
      ),
    ];
  if (usableChannels === 0)
    return [
      fail(
        `this user may open no channel of IMEX, ${why}`,
        'chmod 666 /dev/nvidia-caps-imex-channels/channel0 (as root)',
      ),
    ];
  if (state === null)
    return system.container
      ? []
      : [
          unknown(
            'nvidia-imex-ctl cannot be asked for the state of IMEX',
            'install nvidia-imex, and run doctor as root',
          ),
        ];
  if (/^READY\b/iu.test(state)) return [];
  return [
    fail(
      `IMEX is not ready (${state.split('\n', 1)[0]}), ${why}`,
      'systemctl restart nvidia-imex (as root), and see /etc/nvidia-imex/nodes_config.cfg',
    ),
  ];
}

function cliqueComplaints(own: readonly Domain[], others: readonly ReadHost[]): Complaint[] {
  const cliques = new Set(own.map(({ clique }) => clique));
  const usual = new Set(others.flatMap(({ readings }) => domainsOf(readings)).map(({ clique }) => clique));
  if (usual.size !== 1 || [...cliques].every((clique) => usual.has(clique))) return [];
  const message = `its GPUs are in clique ${[...cliques].join(', ')} of their NVLink domain, others in ${[...usual].join()}`;
  return [warn(message, 'see the partitions of the NVLink switches: only GPUs of one clique reach each other')];
}

export const layoutChecks: readonly Check[] = [
  {
    id: 'pci.payload',
    about: 'how much network cards send at once; root',
    ofHost: ({ pci }) => {
      const cards = pci.filter(({ kind, payloadBytes }) => kind === 'nic' && payloadBytes !== null);
      if (cards.length === 0) return null;
      const sizes = cards.map(({ payloadBytes }) => payloadBytes ?? 0);
      const fastest = cards.filter(({ speed }) => speed === Math.max(...cards.map((card) => card.speed ?? 0)));
      const most = Math.max(...fastest.map(({ payloadBytes }) => payloadBytes ?? 0));
      if (new Set(sizes).size === 1) return [];
      return fastest
        .filter(({ payloadBytes }) => (payloadBytes ?? 0) < most)
        .map(({ address, payloadBytes }) =>
          note(
            `it sends ${payloadBytes} bytes at once at most, others here ${most}`,
            'boot the kernel with pci=pcie_bus_perf (as root)',
            `NIC ${address}`,
          ),
        );
    },
  },
  {
    id: 'pci.placement',
    about: 'GPUs without a network card below the same bridge',
    ofHost: (readings) => {
      // In a virtual machine the bus is made up.
      const near = readings.system.virtual === true ? [] : cardsNear(readings);
      if (near.length < 2) return null;
      const bare = near.filter(({ cards }) => cards === 0);
      if (bare.length * 2 >= near.length) return [];
      return bare.map(({ address }) =>
        note(
          'no InfiniBand or RoCE card is below its bridge, as with the other GPUs here',
          'see ncclrun topo: a card may be missing, or in another slot',
          `GPU ${address}`,
        ),
      );
    },
    alike: {
      what: 'cards near its GPUs:',
      value: (readings) => {
        const near = readings.system.virtual === true ? [] : cardsNear(readings);
        return near.length === 0 ? null : near.map(({ cards }) => cards).join(', ');
      },
      answer: 'note',
      remedy: 'see ncclrun topo, there and here: a card may be missing, or in another slot',
    },
  },
  {
    id: 'nvlink.domain',
    about: 'whether GPUs of several hosts may reach each other by NVLink (IMEX)',
    ofHost: (readings, hosts) => {
      const own = domainsOf(readings);
      if (own.length === 0) return null;
      const others = hosts.filter(
        (host) =>
          host.readings !== readings &&
          domainsOf(host.readings).some(({ cluster }) => own.some((domain) => domain.cluster === cluster)),
      );
      // One host alone reaches its own GPUs without IMEX.
      return others.length === 0 ? [] : [...imexComplaints(readings), ...cliqueComplaints(own, others)];
    },
  },
];
