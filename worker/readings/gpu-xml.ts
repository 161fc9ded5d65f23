/**
 * What `nvidia-smi -q -x` says of each GPU: NVIDIA adds elements from driver to driver, and an element that is missing is a reading that is not there.
 * Names as in nvsmi_device_v12.dtd and v13.
 */
import type { GpuReading } from '../../control/readings.ts';
import { numberOf } from './whole-numbers.ts';

type XmlGpu = Omit<GpuReading, 'activeNvlinks' | 'nvlinkSpeeds' | 'nvlinkErrors'>;

const MEBIBYTE = 2 ** 20;
/** Reasons for low clocks that say something is wrong, or limited. Drivers before 535 call them throttle reasons. */
const reasons = [
  'hw_slowdown',
  'hw_thermal_slowdown',
  'hw_power_brake_slowdown',
  'sw_thermal_slowdown',
  'sw_power_cap',
];

export function gpusInXml(text: string): XmlGpu[] {
  return Array.from(text.matchAll(/<gpu id="([^"]*)">(.*?)<\/gpu>/gsu), ([, busId = '', body = ''], index) =>
    gpuOf(index, busId, body),
  );
}

function gpuOf(index: number, busId: string, gpu: string): XmlGpu {
  const volatile = inner(inner(gpu, 'ecc_errors'), 'volatile');
  const lasting = inner(inner(gpu, 'ecc_errors'), 'aggregate');
  const rows = inner(gpu, 'remapped_rows');
  const ecc = inner(gpu, 'ecc_mode');
  const power = inner(gpu, 'gpu_power_readings') || inner(gpu, 'power_readings');
  const memory = inner(gpu, 'fb_memory_usage');
  const clocks = inner(gpu, 'clocks_event_reasons') || inner(gpu, 'clocks_throttle_reasons');
  const counters = inner(gpu, 'clocks_event_reasons_counters');
  const errors = inner(gpu, 'ecc_errors');
  const current = flag(ecc, 'current_ecc');
  const pending = flag(ecc, 'pending_ecc');
  return {
    index,
    busId,
    name: word(gpu, 'product_name') ?? '',
    vbios: word(gpu, 'vbios_version'),
    eccEnabled: current,
    eccPending: current === null || pending === null ? null : current !== pending,
    uncorrectedErrors:
      sumIn(volatile, /<(?:sram_uncorrectable\w*|dram_uncorrectable)>/gu) ?? totalOf(volatile, 'double_bit'),
    correctedErrors: sumIn(volatile, /<[sd]ram_correctable>/gu) ?? totalOf(volatile, 'single_bit'),
    sramErrors: sumIn(lasting, /<sram_uncorrectable\w*>/gu),
    sramWornOut: flag(lasting, 'sram_threshold_exceeded'),
    repairsPending: ['channel_repair_pending', 'tpc_repair_pending', 'unrepairable_memory'].filter(
      (name) => flag(errors, name) === true,
    ),
    remappedRows: sumIn(rows, /<remapped_row_(?:corr|unc)>/gu),
    remapPending: flag(rows, 'remapped_row_pending'),
    remapFailed: flag(rows, 'remapped_row_failure'),
    retiredPages: whole(inner(gpu, 'double_bit_retirement'), 'retired_count'),
    recoveryAction: word(gpu, 'gpu_recovery_action'),
    persistence: flag(gpu, 'persistence_mode'),
    computeMode: word(gpu, 'compute_mode'),
    migEnabled: flag(inner(gpu, 'mig_mode'), 'current_mig'),
    fabric: fabricOf(inner(gpu, 'fabric')),
    domain: domainOf(inner(gpu, 'fabric')),
    temperature: number(gpu, 'gpu_temp'),
    temperatureMargin: signed(gpu, 'gpu_temp_tlimit'),
    powerLimitWatts: number(power, 'current_power_limit') ?? number(power, 'power_limit'),
    defaultPowerLimitWatts: number(power, 'default_power_limit'),
    smClockMhz: whole(inner(gpu, 'clocks'), 'sm_clock'),
    maximumSmClockMhz: whole(inner(gpu, 'max_clocks'), 'sm_clock'),
    throttled: reasons.filter((name) => isActive(clocks, name)),
    throttledMicroseconds: sumIn(counters, /<clocks_event_reasons_counters_hw_\w+>/gu),
    pcieReplays: whole(gpu, 'replay_counter'),
    freeBytes: mebibytes(memory, 'free'),
    totalBytes: mebibytes(memory, 'total'),
    processes: processesOf(inner(gpu, 'processes')),
  };
}

/** Of the first element with this name; empty: there is none. */
function inner(text: string, name: string): string {
  const from = text.indexOf(`<${name}>`);
  const to = text.indexOf(`</${name}>`, from);
  return from === -1 || to === -1 ? '' : text.slice(from + name.length + 2, to);
}

function word(text: string, name: string): string | null {
  const value = inner(text, name).trim();
  return value === '' || /^(N\/A|\[.*\]|Unknown Error|Not Supported|Requested functionality.*)$/iu.test(value)
    ? null
    : value.slice(0, 200);
}

function number(text: string, name: string): number | null {
  return numberOf(word(text, name) ?? undefined);
}

function signed(text: string, name: string): number | null {
  const found = /^-?\d+/u.exec(word(text, name) ?? '');
  return found === null ? null : Number(found[0]);
}

function whole(text: string, name: string): number | null {
  const value = number(text, name);
  return value === null ? null : Math.round(value);
}

function mebibytes(text: string, name: string): number | null {
  const value = number(text, name);
  return value === null ? null : value * MEBIBYTE;
}

/** Null: it says neither. */
function flag(text: string, name: string): boolean | null {
  const value = word(text, name) ?? '';
  if (/^(enabled|yes|active)$/iu.test(value)) return true;
  return /^(disabled|no|not active)$/iu.test(value) ? false : null;
}

/** Of all elements whose opening tag matches; null: none has a number. */
function sumIn(text: string, tag: RegExp): number | null {
  const values = Array.from(text.matchAll(tag), ({ index, 0: found }) => numberOf(text.slice(index + found.length)));
  const known = values.filter((value) => value !== null);
  return known.length === 0 ? null : known.reduce((sum, value) => sum + value, 0);
}

/** GPUs before A100 count by the bits that were wrong. */
function totalOf(text: string, bits: string): number | null {
  return whole(inner(text, bits), 'total');
}

function isActive(clocks: string, reason: string): boolean {
  return ['event', 'throttle'].some((kind) => flag(clocks, `clocks_${kind}_reason_${reason}`) === true);
}

/** `Completed`, `In Progress`, `Completed: Not Supported`; null: no fabric. */
function fabricOf(fabric: string): string | null {
  const [state, status] = [word(fabric, 'state'), word(fabric, 'status')];
  if (state === null) return null;
  return status === null || /^success$/iu.test(status) ? state : `${state}: ${status}`;
}

/** A fabric within one host has an identifier of zeros. */
function domainOf(fabric: string): GpuReading['domain'] {
  const cluster = word(fabric, 'clusterUuid') ?? '';
  if (/^[0-]*$/u.test(cluster)) return null;
  return { cluster, clique: word(fabric, 'cliqueId') ?? '' };
}

function processesOf(text: string): GpuReading['processes'] {
  return Array.from(text.matchAll(/<process_info>(.*?)<\/process_info>/gsu), ([, one = '']) => ({
    pid: whole(one, 'pid') ?? 0,
    command: (word(one, 'process_name') ?? 'unknown').slice(0, 64),
    bytes: mebibytes(one, 'used_memory') ?? 0,
  })).slice(0, 64);
}
