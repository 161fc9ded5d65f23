/** What wears out or breaks in GPUs and the links between them: their memory, what the driver has logged, NVLink. */
import type { GpuReading, HostReadings } from '../../../control/readings.ts';
import { xidMeaning } from '../../report/xid-meanings.ts';
import { fail, note, warn, type Check, type Complaint } from '../finding.ts';
import { each } from './each-gpu.ts';

type Xid = HostReadings['kernelLog']['xids'][number];

/** An error before that may be mended. */
const RECENT_HOURS = 24;
/** Of on-chip memory in a GPU's life: with more it is worth replacing. */
const MAX_SRAM_ERRORS = 4;
/** NVIDIA replaces GPUs with so many (Dynamic Page Retirement). */
const MAX_RETIRED_PAGES = 63;
const MANY_RETIRED_PAGES = 15;
/** Programs cause these; 45 and 63 follow from others, or harm nobody. */
const OF_PROGRAMS = new Set([13, 31, 43, 45, 63, 69, 92]);
const MAX_NAMED = 4;

const reset = 'reset it: nvidia-smi --gpu-reset -i N (as root); if it comes back, replace it';

export const gpuHealthChecks: readonly Check[] = [
  {
    id: 'gpu.xid',
    about: 'errors of GPUs and NVSwitches in the kernel’s log of the last day',
    ofHost: ({ kernelLog: { readable, xids }, gpus }) => {
      if (gpus.onBus === 0) return null;
      if (!readable)
        return [
          note(
            'this user may not read the kernel’s log, so errors of GPUs (Xid) are not looked at',
            'run doctor as root, or sysctl -w kernel.dmesg_restrict=0 (as root)',
          ),
        ];
      const recent = xids.filter(({ hoursAgo }) => hoursAgo === null || hoursAgo <= RECENT_HOURS);
      return [...Map.groupBy(recent, ({ code, address, nvswitch }) => `${nvswitch} ${code} ${address}`).values()].map(
        (equal) => xidComplaint(equal, gpus),
      );
    },
  },
  {
    id: 'gpu.sram',
    about: 'errors of the GPUs’ on-chip memory',
    ofHost: ({ gpus }) =>
      each(gpus, ({ sramWornOut, sramErrors }) => {
        if (sramWornOut === true)
          return [fail('its on-chip memory has had more errors than it may have', 'replace the GPU')];
        return (sramErrors ?? 0) > MAX_SRAM_ERRORS
          ? [warn(`its on-chip memory has had ${sramErrors} uncorrected errors in its life`, 'have the GPU replaced')]
          : [];
      }),
  },
  {
    id: 'gpu.repairs',
    about: 'repairs of GPUs that wait for a reset',
    ofHost: ({ gpus }) =>
      each(gpus, ({ repairsPending }) =>
        repairsPending.map((name) =>
          name === 'unrepairable_memory'
            ? fail('its memory cannot be repaired', 'replace the GPU')
            : fail(`a repair waits for a reset (${name.replaceAll('_', ' ')})`, reset),
        ),
      ),
  },
  {
    id: 'gpu.retired-pages',
    about: 'pages of memory that GPUs before A100 do not use any more',
    ofHost: ({ gpus }) =>
      each(gpus, ({ retiredPages }) => {
        const pages = retiredPages ?? 0;
        if (pages >= MAX_RETIRED_PAGES) return [fail(`${pages} pages of its memory are retired`, 'replace the GPU')];
        return pages > MANY_RETIRED_PAGES
          ? [warn(`${pages} pages of its memory are retired`, 'watch it with --since; replace it if they grow')]
          : [];
      }),
  },
  {
    id: 'gpu.mig',
    about: 'GPUs that are divided (MIG), which have no peers',
    ofHost: ({ gpus }) =>
      each(gpus, ({ migEnabled }, all) => {
        if (migEnabled !== true) return [];
        const mixed = all.some((gpu) => gpu.migEnabled === false);
        const message = 'it is divided (MIG), so no other GPU reaches its memory';
        return [(mixed ? fail : note)(message, 'nvidia-smi -mig 0 -i N (as root)')];
      }),
  },
  {
    id: 'nvlink.speed',
    about: 'NVLinks that run slower than others',
    ofHost: ({ gpus }) =>
      each(gpus, ({ nvlinkSpeeds }, all) => {
        const best = Math.max(0, ...all.flatMap((gpu) => gpu.nvlinkSpeeds));
        const [slowest] = nvlinkSpeeds;
        if (slowest === undefined || slowest >= best) return [];
        const remedy = 'reset all GPUs of the host, or restart it; if it stays so, reseat the GPU or replace its board';
        return [fail(`an NVLink runs at ${slowest} GB/s, others here at ${best}`, remedy)];
      }),
    alike: {
      what: 'NVLinks at most',
      value: ({ gpus: { devices } }) => {
        const speeds = (devices ?? []).flatMap((gpu) => gpu.nvlinkSpeeds);
        return speeds.length === 0 ? null : `${Math.max(...speeds)} GB/s`;
      },
      answer: 'fail',
      remedy: 'see nvidia-smi nvlink --status there, and the driver',
    },
  },
  {
    id: 'nvlink.fabric',
    about: 'whether the GPUs have joined the fabric of NVSwitches',
    ofHost: ({ gpus }) =>
      each(gpus, ({ fabric }) =>
        fabric === null || /^completed$|not supported/iu.test(fabric)
          ? []
          : [
              fail(
                `it has not joined the fabric of NVSwitches (${fabric}): programs cannot start on it`,
                'start nvidia-fabricmanager, of the driver’s version, and see its log (as root)',
              ),
            ],
      ),
    alike: {
      what: 'state of the fabric of NVSwitches',
      value: ({ gpus: { devices } }) => devices?.find(({ fabric }) => fabric !== null)?.fabric ?? null,
      answer: 'fail',
      remedy: 'see nvidia-smi -q | grep -A2 Fabric there, and nvidia-fabricmanager',
    },
  },
];

function xidComplaint(equal: readonly Xid[], gpus: HostReadings['gpus']): Complaint {
  const last = equal.at(-1);
  if (last === undefined) return note('');
  const { code, nvswitch, address, message, hoursAgo } = last;
  const times = equal.length === 1 ? '' : `${equal.length} times, `;
  const when = hoursAgo === null ? '' : `, ${hoursAgo < 1 ? 'within the last hour' : `${Math.round(hoursAgo)} h ago`}`;
  if (nvswitch) {
    const isFatal = /^fatal/iu.test(message);
    const text = `${times}SXid ${code}: ${message}${when}`;
    return (isFatal ? fail : warn)(text, 'restart the host; if it comes back, replace the NVSwitch’s board', address);
  }
  const meaning = xidMeaning(code);
  const text = `${times}Xid ${code}: ${message === '' ? (meaning?.what ?? 'an error') : message}${when}`;
  const gpu = gpus.devices?.find(({ busId }) => sameDevice(busId, address));
  const subject = gpu === undefined ? address : `GPU ${gpu.index} (${address})`;
  if (OF_PROGRAMS.has(code)) return note(text, meaning?.next ?? null, subject);
  return fail(text, meaning?.next ?? 'see NVIDIA’s catalogue of Xid errors', subject);
}

/** `00000000:1B:00.0` and `0000:1b:00`. */
function sameDevice(busId: string, address: string): boolean {
  const short = busId.toLowerCase().replace(/\.[0-9a-f]$/u, '');
  return short.endsWith(address.replace(/^0+/u, ''));
}

/** `python3 (process 12, 40 GiB)`; empty: nobody is seen. */
export function processesText({ processes }: GpuReading, sizeText: (bytes: number) => string): string {
  return processes
    .toSorted((one, other) => other.bytes - one.bytes)
    .slice(0, MAX_NAMED)
    .map(({ pid, command, bytes }) => `${command} (process ${pid}, ${sizeText(bytes)})`)
    .join(', ');
}
