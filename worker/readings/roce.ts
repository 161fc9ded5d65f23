/**
 * How RoCE ports avoid losses. Flow control and trust are known to the tools mlnx_qos (of NVIDIA's drivers) and dcb (of iproute2), pauses to
 * ethtool, ECN to files of NVIDIA's drivers. A tool that is not there leaves its readings null.
 */
import type { HostReadings } from '../../control/readings.ts';
import { listDirectory, readText } from '../topology/system-files.ts';
import { runTool } from './run-tool.ts';
import { numberIn } from './whole-numbers.ts';

type RoceReading = HostReadings['roce'][number];
type FlowControl = Pick<RoceReading, 'trust' | 'pausing'>;

const LIMIT_MS = 3000;
const UNKNOWN: FlowControl = { trust: null, pausing: null };

export async function readRoce(root: string, ports: HostReadings['infiniband']): Promise<RoceReading[]> {
  const ethernet = ports.filter(({ linkLayer }) => linkLayer === 'Ethernet');
  const found = await Promise.all(
    ethernet.map(async ({ card, port }) => {
      const name = interfaceOf(root, card, port);
      return name === null ? [] : [{ card, port, ...(await readingOf(root, name)) }];
    }),
  );
  return found.flat();
}

/** Each address of the port names the interface that it belongs to. */
function interfaceOf(root: string, card: string, port: number): string | null {
  const directory = `sys/class/infiniband/${card}/ports/${port}/gid_attrs/ndevs`;
  const names = listDirectory(root, directory).map((index) => readText(root, `${directory}/${index}`));
  // That of a VLAN is named after the one below it.
  const [first] = names.filter((name) => name !== '').toSorted((one, other) => one.length - other.length);
  return first ?? null;
}

async function readingOf(root: string, name: string): Promise<Omit<RoceReading, 'card' | 'port'>> {
  const path = `sys/class/net/${name}`;
  const [flow, counters] = await Promise.all([flowControlOf(name), runTool('ethtool', ['-S', name], LIMIT_MS)]);
  return {
    interface: name,
    mtu: numberIn(root, `${path}/mtu`),
    hasVlan: listDirectory(root, path).some((entry) => entry.startsWith('upper_')),
    ...flow,
    paused: 'output' in counters ? pausedIn(counters.output) : [],
    notifying: enabledIn(root, `${path}/ecn/roce_np/enable`),
    reacting: enabledIn(root, `${path}/ecn/roce_rp/enable`),
  };
}

async function flowControlOf(name: string): Promise<FlowControl> {
  const told = await runTool('mlnx_qos', ['-i', name], LIMIT_MS);
  if ('output' in told) return flowControlOfMlnxQos(told.output);
  const [flow, applications] = await Promise.all([
    runTool('dcb', ['pfc', 'show', 'dev', name], LIMIT_MS),
    runTool('dcb', ['app', 'show', 'dev', name], LIMIT_MS),
  ]);
  if (!('output' in flow)) return UNKNOWN;
  return flowControlOfDcb(flow.output, 'output' in applications ? applications.output : null);
}

/** `Priority trust state: dscp`; below `PFC configuration:` the line `enabled 0 0 0 1 0 0 0 0`. */
export function flowControlOfMlnxQos(text: string): FlowControl {
  const trust = /^Priority trust state: (dscp|pcp)\b/mu.exec(text)?.[1];
  const enabled = /^\s*enabled((?:\s+[01])+)\s*$/mu.exec(text)?.[1]?.trim().split(/\s+/u);
  return { trust: trust === 'dscp' || trust === 'pcp' ? trust : null, pausing: enabled ? placesOf(enabled) : null };
}

/** `prio-pfc 0:off 1:off 2:off 3:on …`. The driver trusts DSCP as soon as a priority is set for one: `dscp-prio AF31:3`. */
export function flowControlOfDcb(flow: string, applications: string | null): FlowControl {
  const enabled = Array.from(/^.*\bprio-pfc((?:\s+\d:(?:on|off))+)/mu.exec(flow)?.[1]?.matchAll(/\d:(on|off)/gu) ?? []);
  const trust = applications === null ? null : /\bdscp-prio\s+\S+:\d/u.test(applications) ? 'dscp' : 'pcp';
  if (enabled.length === 0) return { trust, pausing: null };
  return { trust, pausing: placesOf(enabled.map(([, state]) => (state === 'on' ? '1' : '0'))) };
}

function placesOf(states: readonly string[]): number[] {
  return states.flatMap((state, priority) => (state === '1' ? [priority] : []));
}

/** `rx_prio3_pause: 12` of mlx5, `tx_priority_3_xoff.nic: 12` of ice. */
export function pausedIn(text: string): number[] {
  const lines = text.matchAll(/^\s*[rt]x_prio(?:rity_)?(\d)_(?:pause|xoff(?:\.nic)?): (\d+)$/gmu);
  const moved = Array.from(lines, ([, priority, frames]) => (Number(frames) > 0 ? [Number(priority)] : [])).flat();
  return [...new Set(moved)].toSorted((one, other) => one - other);
}

function enabledIn(root: string, directory: string): number[] | null {
  const priorities = listDirectory(root, directory).toSorted();
  if (priorities.length === 0) return null;
  return priorities.filter((priority) => readText(root, `${directory}/${priority}`) === '1').map(Number);
}
