/** GPUs, as their driver and the PCI bus tell of them. */
import { binarySize } from '../../../control/size-text.ts';
import type { GpuReading } from '../../../control/readings.ts';
import { fail, note, unknown, warn, type Check } from '../finding.ts';
import { each } from './each-gpu.ts';
import { processesText } from './gpu-health.ts';

const MAX_REMAPPED_ROWS = 512;
const MIN_FREE_PART = 0.9;
const NEAR_SLOWDOWN_C = 85;
const HOTTER_C = 15;
const MIN_MARGIN_C = 5;

/** In the middle of a host's GPUs; null: fewer than three tell. */
function middle(gpus: readonly GpuReading[], of: (gpu: GpuReading) => number | null): number | null {
  const values = gpus.map(of).filter((value) => value !== null);
  return values.length < 3 ? null : (values.toSorted((one, other) => one - other)[values.length >> 1] ?? null);
}

export const gpuChecks: readonly Check[] = [
  {
    id: 'gpu.count',
    about: 'GPUs that are missing',
    ofHost: ({ gpus: { driver, onBus, devices }, unread }) => {
      if (onBus === 0) return null;
      if (driver === null)
        return [
          unknown(
            `${onBus} NVIDIA GPUs are on the PCI bus, and no driver is loaded`,
            'modprobe nvidia (as root), if programs are to use them',
          ),
        ];
      if (devices === null)
        return [
          fail(
            `the driver cannot be asked: ${unread['gpus'] ?? 'no reason given'}`,
            'see nvidia-smi, and dmesg for an Xid; a restart of the host may be due',
          ),
        ];
      if (devices.length >= onBus) return [];
      return [
        fail(
          `the driver has ${devices.length} GPUs of ${onBus} on the PCI bus: one has fallen off (Xid 79)`,
          'restart the host; if it happens again, replace the GPU',
        ),
      ];
    },
    alike: {
      what: 'GPUs',
      value: ({ gpus: { devices } }) => (devices === null ? null : String(devices.length)),
      answer: 'fail',
      remedy: 'see nvidia-smi there, and dmesg for an Xid',
    },
  },
  {
    id: 'gpu.driver',
    about: "the driver's version",
    alike: {
      what: 'NVIDIA driver',
      value: ({ gpus: { driver } }) => driver,
      answer: 'fail',
      remedy: 'install one version on all hosts',
    },
  },
  {
    id: 'gpu.firmware',
    about: 'models and firmware of the GPUs',
    ofHost: ({ gpus }) =>
      each(gpus, (gpu, all) => {
        const usual = all.filter(({ vbios }) => vbios === gpu.vbios).length * 2 > all.length || all.length < 3;
        return usual
          ? []
          : [warn(`its VBIOS is ${gpu.vbios}, that of the others another`, 'bring all GPUs to one VBIOS')];
      }),
    alike: {
      what: 'GPU model',
      value: ({ gpus: { devices } }) =>
        devices === null || devices.length === 0
          ? null
          : [...new Set(devices.map(({ name }) => name))].toSorted().join(', '),
      answer: 'warn',
      remedy: 'ranks on slower GPUs hold up all others',
    },
  },
  {
    id: 'gpu.ecc',
    about: "errors of the GPUs' memory",
    ofHost: ({ gpus }) =>
      each(gpus, ({ uncorrectedErrors, eccEnabled, eccPending }, all) => {
        if ((uncorrectedErrors ?? 0) > 0)
          return [
            fail(
              `its memory had ${uncorrectedErrors} errors that could not be corrected`,
              'reset it: nvidia-smi --gpu-reset -i N (as root); if they come again, replace it',
            ),
          ];
        if (eccPending === true)
          return [warn('a change of its error correction waits for a restart', 'restart the host')];
        const others = all.some((other) => other.eccEnabled === true);
        return eccEnabled === false && others
          ? [
              warn(
                'its error correction is off, that of others here is on',
                'nvidia-smi -e 1 -i N, and restart (as root)',
              ),
            ]
          : [];
      }),
  },
  {
    id: 'gpu.remapped-rows',
    about: 'rows of memory that were replaced',
    ofHost: ({ gpus }) =>
      each(gpus, ({ remapFailed, remapPending, remappedRows }) => {
        if (remapFailed === true) return [fail('a row of its memory could not be replaced', 'replace the GPU')];
        if (remapPending === true)
          return [fail('a row of its memory waits to be replaced', 'reset it: nvidia-smi --gpu-reset -i N (as root)')];
        return (remappedRows ?? 0) > MAX_REMAPPED_ROWS
          ? [fail(`${remappedRows} rows of its memory were replaced`, 'replace the GPU')]
          : [];
      }),
  },
  {
    id: 'gpu.recovery',
    about: 'what the driver wants done',
    ofHost: ({ gpus }) =>
      each(gpus, ({ recoveryAction }) =>
        recoveryAction === null || /^none$/iu.test(recoveryAction)
          ? []
          : [
              fail(
                `the driver asks for: ${recoveryAction}`,
                'do that: reset the GPU, restart the host, or take it out of use',
              ),
            ],
      ),
  },
  {
    id: 'gpu.persistence',
    about: 'whether the driver stays loaded',
    ofHost: ({ gpus }) => {
      const off = gpus.devices?.filter(({ persistence }) => persistence === false).length ?? 0;
      if (gpus.devices === null || gpus.devices.length === 0) return null;
      return off === 0
        ? []
        : [
            warn(
              `persistence is off on ${off} GPUs: each start wakes the driver`,
              'start nvidia-persistenced, or nvidia-smi -pm 1 (as root)',
            ),
          ];
    },
  },
  {
    id: 'gpu.compute-mode',
    about: 'whether processes may share a GPU',
    ofHost: ({ gpus }) =>
      each(gpus, ({ computeMode }) => {
        if (computeMode === null || /^default$/iu.test(computeMode)) return [];
        return /^prohibited$/iu.test(computeMode)
          ? [fail('programs may not use it (compute mode Prohibited)', 'nvidia-smi -c 0 -i N (as root)')]
          : [note(`only one process may use it (compute mode ${computeMode})`)];
      }),
  },
  {
    id: 'gpu.throttled',
    about: 'clocks that are lower than they could be',
    ofHost: ({ gpus }) =>
      each(gpus, ({ throttled }) => {
        const hard = throttled.filter((reason) => /^hw_|thermal/u.test(reason));
        if (hard.length > 0)
          return [fail(`its clocks are throttled: ${hard.join(', ')}`, 'see its cooling and its power supply')];
        return throttled.length > 0 ? [note(`its clocks are limited: ${throttled.join(', ')}`)] : [];
      }),
  },
  {
    id: 'gpu.clocks',
    about: 'clocks that somebody has locked',
    ofHost: ({ gpus }) =>
      each(gpus, ({ maximumSmClockMhz }, all) => {
        const usual = middle(all, (gpu) => gpu.maximumSmClockMhz);
        if (usual === null || maximumSmClockMhz === null || maximumSmClockMhz >= usual) return [];
        return [
          warn(
            `its clock goes to ${maximumSmClockMhz} MHz, that of others here to ${usual}`,
            'nvidia-smi -rgc -i N (as root)',
          ),
        ];
      }),
  },
  {
    id: 'gpu.temperature',
    about: 'GPUs that are too hot',
    ofHost: ({ gpus }) =>
      each(gpus, ({ temperature, temperatureMargin }, all) => {
        const usual = middle(all, (gpu) => gpu.temperature);
        if (temperature === null) return [];
        if (temperatureMargin === null ? temperature >= NEAR_SLOWDOWN_C : temperatureMargin <= 0)
          return [fail(`it is ${temperature} °C hot, and slows down near that`, 'see fans, airflow and coolant')];
        if (temperatureMargin !== null && temperatureMargin < MIN_MARGIN_C)
          return [
            warn(
              `it is ${temperature} °C hot, and slows down at ${temperatureMargin} more`,
              'see fans, airflow and coolant',
            ),
          ];
        if (usual === null || temperature <= usual + HOTTER_C) return [];
        return [warn(`it is ${temperature} °C hot, others here ${usual}`, 'see its fan, paste and airflow')];
      }),
  },
  {
    id: 'gpu.power',
    about: 'power limits',
    ofHost: ({ gpus }) =>
      each(gpus, ({ powerLimitWatts, defaultPowerLimitWatts }) =>
        powerLimitWatts === null || defaultPowerLimitWatts === null || powerLimitWatts >= defaultPowerLimitWatts - 1
          ? []
          : [
              warn(
                `its power is limited to ${powerLimitWatts} W, the default is ${defaultPowerLimitWatts}`,
                `nvidia-smi -pl ${defaultPowerLimitWatts} -i N (as root)`,
              ),
            ],
      ),
  },
  {
    id: 'gpu.memory',
    about: 'memory and programs of others',
    ofHost: ({ gpus }) =>
      each(gpus, (gpu) => {
        const { freeBytes, totalBytes } = gpu;
        if (freeBytes === null || totalBytes === null) return [];
        const users = processesText(gpu, binarySize);
        if (freeBytes >= MIN_FREE_PART * totalBytes && users === '') return [];
        const by = users === '' ? '' : `; used by ${users}`;
        return [
          warn(
            `${binarySize(freeBytes)} of ${binarySize(totalBytes)} are free${by}`,
            users === '' ? 'see who uses it: nvidia-smi' : 'end them, or wait for them: they slow down every rank here',
          ),
        ];
      }),
  },
  {
    id: 'nvlink.count',
    about: 'NVLinks that are down',
    ofHost: ({ gpus }) =>
      each(gpus, ({ activeNvlinks }, all) => {
        const most = Math.max(...all.map((gpu) => gpu.activeNvlinks ?? 0));
        if (activeNvlinks === null || activeNvlinks >= most) return [];
        return [
          fail(
            `${activeNvlinks} of its NVLinks are up, ${most} of others here`,
            'reset all GPUs of the host, or restart it; if it stays so, reseat the GPU or replace its board',
          ),
        ];
      }),
    alike: {
      what: 'NVLinks per GPU',
      value: ({ gpus: { devices } }) => {
        const counts = (devices ?? []).map(({ activeNvlinks }) => activeNvlinks).filter((count) => count !== null);
        return counts.length === 0 ? null : String(Math.max(...counts));
      },
      answer: 'fail',
      remedy: 'see nvidia-smi nvlink --status there, and whether the fabric manager runs',
    },
  },
  {
    id: 'nvlink.errors',
    about: 'errors that NVLinks have counted',
    ofHost: ({ gpus }) =>
      each(gpus, ({ nvlinkErrors }) =>
        (nvlinkErrors ?? 0) < 5
          ? []
          : [
              note(
                `its NVLinks have counted ${nvlinkErrors} errors; what grows under load counts`,
                'see nvidia-smi nvlink --errorcounters',
              ),
            ],
      ),
  },
];
