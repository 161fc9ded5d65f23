/** Network interfaces, InfiniBand and RoCE ports, as the kernel has them. */
import { accessSync, constants, realpathSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { basename, join } from 'node:path';
import * as v from 'valibot';
import type { HostReadings, InterfaceReading } from '../../control/readings.ts';
import { listDirectory, readText } from '../topology/system-files.ts';
import { runTool } from './run-tool.ts';
import { numberIn, numberOf } from './whole-numbers.ts';

const LIMIT_MS = 3000;

/** What `ip -json -statistics link show` says of an interface, as far as it is of use here. */
const link = v.object({
  ifname: v.string(),
  mtu: v.number(),
  operstate: v.optional(v.string(), 'UNKNOWN'),
  address: v.optional(v.string(), ''),
  stats64: v.optional(
    v.object({
      rx: v.object({ errors: v.number(), dropped: v.number() }),
      tx: v.object({ errors: v.number(), dropped: v.number() }),
    }),
  ),
});
type Link = v.InferOutput<typeof link>;
type Listed = NodeJS.Dict<readonly { readonly address: string; readonly cidr?: string | null }[]>;

/** This process's interfaces: in a container /sys may be that of the host. Empty where there is no `ip`. */
export async function askedLinks(): Promise<readonly Link[]> {
  const answer = await runTool('ip', ['-json', '-statistics', 'link', 'show'], LIMIT_MS);
  return 'output' in answer ? parseLinks(answer.output) : [];
}

export function parseLinks(text: string): readonly Link[] {
  try {
    return v.parse(v.array(link), JSON.parse(text));
  } catch {
    return [];
  }
}

/** `links`: as `ip` tells; where it is not there, what /sys has. */
export function readInterfaces(
  root: string,
  links: readonly Link[],
  listed: Listed = networkInterfaces(),
): InterfaceReading[] {
  const known = links.length > 0 ? links : listDirectory(root, 'sys/class/net').map((name) => linkInSys(root, name));
  return known
    .filter(({ ifname, mtu }) => ifname !== 'lo' && mtu > 0)
    .toSorted((one, other) => (one.ifname < other.ifname ? -1 : 1))
    .map(({ ifname, mtu, operstate, address, stats64 }) => {
      const path = `sys/class/net/${ifname}`;
      // The same interface in /sys as in this network namespace.
      const isSame = address === '' || readText(root, `${path}/address`) === address;
      const inSys = (file: string): string => (isSame ? readText(root, `${path}/${file}`) : '');
      const speedMbps = numberOf(inSys('speed'));
      const duplex = inSys('duplex');
      return {
        name: ifname,
        addresses: (listed[ifname] ?? []).map((one) => one.address),
        networks: (listed[ifname] ?? []).flatMap(({ cidr }) => (cidr == null ? [] : (networkOf(cidr) ?? []))),
        mtu,
        speedMbps: speedMbps === 0 ? null : speedMbps,
        up: operstate.toUpperCase() === 'UP' || inSys('carrier') === '1',
        duplex: duplex === '' || duplex === 'unknown' ? null : duplex,
        carrierChanges: numberOf(inSys('carrier_changes')),
        receiveErrors: stats64?.rx.errors ?? 0,
        sendErrors: stats64?.tx.errors ?? 0,
        receiveDrops: stats64?.rx.dropped ?? 0,
        sendDrops: stats64?.tx.dropped ?? 0,
        hardware: isSame && listDirectory(root, `${path}/device`).length > 0,
      };
    });
}

/** `10.0.1.7/24` → `10.0.1.0/24`. Null: it is none of IPv4. */
function networkOf(cidr: string): string | null {
  const [, address = '', digits] = /^(\d+\.\d+\.\d+\.\d+)\/(\d+)$/u.exec(cidr) ?? [];
  if (digits === undefined) return null;
  const value = address.split('.').reduce((sum, byte) => sum * 256 + Number(byte), 0);
  const size = 2 ** (32 - Number(digits));
  const first = Math.floor(value / size) * size;
  const bytes = [24, 16, 8, 0].map((shift) => Math.floor(first / 2 ** shift) % 256);
  return `${bytes.join('.')}/${digits}`;
}

/** Bonded interfaces, and which of their slaves are down (the kernel's Documentation/networking/bonding.rst). */
export function readBonds(root: string): HostReadings['bonds'] {
  return listDirectory(root, 'proc/net/bonding').map((name) => {
    const parts = readText(root, `proc/net/bonding/${name}`)
      .split(/^Slave Interface: /mu)
      .slice(1);
    const slaves = parts.map((text) => ({
      name: text.split('\n', 1)[0] ?? '',
      up: /^MII Status: up$/mu.test(text),
    }));
    return {
      name,
      slaves: slaves.map((slave) => slave.name),
      down: slaves.flatMap((slave) => (slave.up ? [] : [slave.name])),
    };
  });
}

/** Without one that it may open a program cannot use InfiniBand or RoCE. */
export function readVerbsDevices(root: string): HostReadings['verbsDevices'] {
  const names = listDirectory(root, 'dev/infiniband').filter((name) => /^uverbs\d+$/u.test(name));
  const usable = names.filter((name) => mayOpen(join(root, 'dev/infiniband', name)));
  return { present: names.length, usable: usable.length };
}

export function mayOpen(path: string): boolean {
  try {
    accessSync(path, constants.R_OK | constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

function linkInSys(root: string, name: string): Link {
  const path = `sys/class/net/${name}`;
  const counter = (file: string): number => numberIn(root, `${path}/statistics/${file}`) ?? 0;
  return {
    ifname: name,
    mtu: numberIn(root, `${path}/mtu`) ?? 0,
    operstate: readText(root, `${path}/operstate`),
    address: '',
    stats64: {
      rx: { errors: counter('rx_errors'), dropped: counter('rx_dropped') },
      tx: { errors: counter('tx_errors'), dropped: counter('tx_dropped') },
    },
  };
}

export function readInfiniband(root: string): HostReadings['infiniband'] {
  return listDirectory(root, 'sys/class/infiniband')
    .toSorted()
    .flatMap((card) =>
      listDirectory(root, `sys/class/infiniband/${card}/ports`)
        .toSorted()
        .map((port) => portOf(root, card, port)),
    );
}

function portOf(root: string, card: string, port: string): HostReadings['infiniband'][number] {
  const device = `sys/class/infiniband/${card}`;
  const path = `${device}/ports/${port}`;
  const text = (file: string): string | null => {
    const found = readText(root, file);
    return found === '' ? null : found;
  };
  // "4: ACTIVE"
  const state = (file: string): string => readText(root, `${path}/${file}`).replace(/^\d+: /u, '');
  const isEthernet = readText(root, `${path}/link_layer`) === 'Ethernet';
  const indices = isEthernet ? roceIndices(root, path) : [];
  const gigabits = numberIn(root, `${path}/rate`);
  const lid = (file: string): number | null => {
    const found = Number.parseInt(readText(root, `${path}/${file}`), 16);
    return Number.isNaN(found) ? null : found;
  };
  return {
    card,
    address: addressOf(root, device),
    port: Number(port),
    state: state('state'),
    physicalState: state('phys_state'),
    rateMbps: gigabits === null ? null : gigabits * 1000,
    linkLayer: readText(root, `${path}/link_layer`),
    firmware: text(`${device}/fw_ver`),
    board: text(`${device}/board_id`),
    lid: lid('lid'),
    subnetManagerLid: lid('sm_lid'),
    roceAddress: isEthernet ? indices.length > 0 : null,
    roceIndices: indices,
    counters: Object.fromEntries(
      ['counters', 'hw_counters'].flatMap((group) =>
        listDirectory(root, `${path}/${group}`).flatMap((name) => {
          const value = numberOf(readText(root, `${path}/${group}/${name}`));
          return value === null || !Number.isInteger(value) ? [] : [[name, value]];
        }),
      ),
    ),
  };
}

/** Places of addresses whose kind is RoCE v2 and that are an IPv4 address, or one of IPv6 that is not only the link's. */
function roceIndices(root: string, port: string): number[] {
  return listDirectory(root, `${port}/gid_attrs/types`)
    .filter((index) => {
      const address = readText(root, `${port}/gids/${index}`);
      const isOfLink = address.startsWith('fe80:') || /^[0:]*$/u.test(address);
      return readText(root, `${port}/gid_attrs/types/${index}`) === 'RoCE v2' && !isOfLink;
    })
    .map(Number)
    .toSorted((one, other) => one - other);
}

/** `device` of a card is a link to its directory on the PCI bus. */
function addressOf(root: string, card: string): string | null {
  try {
    const name = basename(realpathSync(join(root, card, 'device')));
    return /^[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$/u.test(name) ? name : null;
  } catch {
    return null;
  }
}
