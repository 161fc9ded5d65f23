/** `ncclrun plan` and `ncclrun topo` of machines from files, in this process: their texts, pictures and documents. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { planFromJson } from '../../control/plan/json.ts';
import { writeXml } from '../../control/topology/write-xml.ts';
import { plan } from '../../launcher/cli/commands/plan.ts';
import { topo } from '../../launcher/cli/commands/topo.ts';
import { bridgedGpus } from '../rig/bridged-gpus.ts';
import { captured, refusal } from '../rig/captured.ts';
import { repository } from '../rig/cluster.ts';
import { crossedGpus } from '../rig/crossed-gpus.ts';
import { eightGpus } from '../rig/eight-gpus.ts';
import { expectText } from '../rig/expected.ts';
import { loneNics } from '../rig/lone-nics.ts';

const directory = mkdtempSync(join(tmpdir(), 'ncclrun-plan-command-'));
afterAll(() => rmSync(directory, { recursive: true }));
beforeEach(() => void vi.stubEnv('XDG_CONFIG_HOME', join(directory, 'none')));
afterEach(() => void vi.unstubAllEnvs());

const switches = join(repository, 'test/unit/fixtures/switches.xml');
const superchips = join(repository, 'test/unit/fixtures/superchips.xml');

/** Two hosts of one kind and one of another. */
const unlike = ['--topo', `${switches}:2`, '--topo', `${superchips}:1`];

function file(name: string, text: string): string {
  const path = join(directory, name);
  writeFileSync(path, text);
  return path;
}

async function printed(argv: readonly string[], status = 0): Promise<string> {
  const ended = await captured(() => plan(argv));
  expect({ ...ended, stdout: '' }).toEqual({ status, stdout: '', stderr: '' });
  return ended.stdout;
}

/** Predicted times follow the planner's constants; here they are dashes. */
function withoutTimes(text: string): string {
  return text.replaceAll(/(?<=^(?:all|reduce|broadcast).*) +[0-9.e-]+(?=,| |$)/gmu, ' -');
}

const eight = file('eight-gpus.xml', writeXml(eightGpus()));
const crossed = file('crossed-gpus.xml', writeXml(crossedGpus(true)));
const lone = file('lone-nics.xml', writeXml(loneNics()));
const bridged = file(
  'bridged-gpus.xml',
  writeXml(
    bridgedGpus({
      modelid: 106,
      sm: 86,
      sockets: 2,
      gpusPerSocket: 3,
      count: 4,
      bridges: [
        [0, 1],
        [3, 5],
      ],
    }),
  ),
);

/** A host with a GPU and a NIC of 1 Gb/s, and one with a NIC of 100 Gb/s alone. */
const SLOW_HOST = hostXml(
  1000,
  '<pci busid="0000:01:00.0" class="0x030200"><gpu dev="0" sm="90" rank="0" gdr="0"/></pci>',
);
const NIC = hostXml(100_000, '');
function hostXml(speed: number, gpu: string): string {
  const net = `<nic><net name="eth0" dev="0" speed="${speed}" port="1" guid="0x1" gdr="0"/></nic>`;
  return `<system version="1"><cpu numaid="0" arch="x86_64" vendor="AuthenticAMD">${gpu}${net}</cpu></system>`;
}
const anyTimes = [expect.stringMatching(/^[0-9]+$/u), expect.stringMatching(/^[a-zA-Z]+ [0-9]+$/u)];

describe('ncclrun plan', () => {
  it.each([
    ['two-hosts', ['--topo', switches, '--nodes', '2', '--bytes', '8..32']],
    ['one-host-explained', ['--topo', `${switches}:1`, '--ranks', '2', '--explain', '--bytes', '1M']],
    ['eight-gpus', ['--topo', eight, '--nodes', '4', '--explain', '--bytes', '1M', '--collective', 'all']],
    ['crossed-gpus', ['--topo', crossed, '--nodes', '3', '--explain', '--bytes', '1M']],
    ['bridged-gpus', ['--topo', bridged, '--explain', '--bytes', '1M']],
    ['lone-nics', ['--topo', lone, '--nodes', '3', '--explain', '--bytes', '1M']],
    ['unlike-hosts-explained', [...unlike, '--explain', '--bytes', '1M', '--collective', 'all_reduce,all_gather']],
  ])('the text of %s is the expected one', async (name, argv) => {
    await expectText(`plan/${name}.txt`, withoutTimes(await printed(argv)));
  });

  it.each([
    ['two-hosts', [switches, '--nodes', '2']],
    ['one-host', [superchips]],
    ['eight-gpus', [eight, '--nodes', '2']],
    ['bridged-gpus', [bridged]],
  ])('the picture of %s is the expected one', async (name, [topology = '', ...rest]) => {
    await expectText(`plan/${name}.svg`, await printed(['--topo', topology, ...rest, '--format', 'svg']));
  });

  it.each([
    ['two-hosts', ['--topo', switches, '--nodes', '2']],
    ['unlike-hosts', unlike],
    ['eight-gpus', ['--topo', eight, '--nodes', '2']],
    ['bridged-gpus', ['--topo', bridged]],
    ['lone-nics', ['--topo', lone, '--nodes', '3']],
  ])('the document of %s is the expected one', async (name, argv) => {
    const text = await printed([...argv, '--json', '--full', '--bytes', '8']);
    const document: unknown = JSON.parse(text, (key, value: unknown) =>
      /predicted|^(bw|total|hardware|latency)?Microseconds/u.test(key) ? 0 : value,
    );
    await expectText(`plan/${name}.json`, `${JSON.stringify(document, null, 1)}\n`);
  });

  it('--verify prints the fullest links of each kind of host', async () => {
    await expectText('plan/verify.txt', await printed([...unlike, '--verify']));
  });

  it('--diff prints what differs, and exits with 1 only then', async () => {
    const one = file('one.json', await printed(['--topo', switches, '--nodes', '2', '--bytes', '8', '--json']));
    const other = file('other.json', await printed(['--topo', switches, '--nodes', '3', '--bytes', '8', '--json']));
    expect(await printed(['--diff', one, one])).toBe('The plans are equal.\n');
    const lines = (await printed(['--diff', one, other], 1)).split('\n');
    expect(lines.slice(0, 3).map((line) => line.trim().split(/ +/u))).toEqual([
      [one, other],
      ['hosts', '2', '3'],
      ['ranks', '6', '9'],
    ]);
    expect(lines.some((line) => line.startsWith('channels '))).toBe(false);
  });

  it.each([
    [['x'], '"x" is no option; a topology is given with --topo FILE'],
    [['--diff', 'a'], '--diff takes two files; write: ncclrun plan --diff A.json B.json'],
    [['--diff', 'a', 'b', 'c'], '--diff takes two files; write: ncclrun plan --diff A.json B.json'],
    [['--diff', '/none', 'b'], 'the plan /none cannot be read: ENOENT'],
    [['--diff', switches, switches], ' is no JSON: '],
    [['--diff', file('other', '{"version": 1}'), switches], 'other is no plan: '],
    [['--topo', switches, '--bytes', 'x'], 'x'],
    [['--topo', '/none.xml'], '/none.xml'],
  ])('the command line %j is refused', async (argv, message) => {
    expect(await refusal(() => plan(argv))).toContain(message);
  });

  it.each([
    [['--topo', `${switches}:2`], 'allreduce:collnet', 'collnet', 4],
    [unlike, 'allreduce:collnet', 'collnetChain', 4],
    [['--topo', `${switches}:2`], 'CollnetChain', 'collnetChain', 4],
    [['--topo', `${switches}:2`], '^collnet', null, null],
    [['--topo', switches], '', null, null],
  ])('%j with NCCL_ALGO=%s has %s where the network reduces, on up to %s channels', async (argv, names, form, max) => {
    vi.stubEnv('NCCL_COLLNET_ENABLE', '1');
    vi.stubEnv('NCCL_ALGO', names);
    const { tuning } = planFromJson(await printed([...argv, '--format', 'engine']), 'printed');
    const firsts = tuning.filter(({ collective }) => collective === 'allReduce').map(({ variants }) => variants[0]);
    expect(firsts.map((first) => first?.algorithm === form)).toEqual(firsts.map(() => form !== null));
    const channels = tuning.flatMap(({ variants }) =>
      variants.filter(({ requires }) => requires.includes('networkReduction')),
    );
    expect(channels.length === 0 ? null : Math.max(...channels.map((variant) => variant.channels))).toBe(max);
  });

  it('variables that cannot be meant are refused with their names', async () => {
    vi.stubEnv('NCCL_ALGO', 'magic');
    expect(await refusal(() => plan(['--topo', switches]))).toMatch(/NCCL_ALGO.*; correct the variable, or unset it/u);
  });

  it('aggregators count with the NICs of the topologies', async () => {
    vi.stubEnv('NCCLRUN_DEVICE', 'host');
    const nic = file('nic.xml', NIC);
    const cluster = ['--topo', file('slow.xml', SLOW_HOST), '--nodes', '4', '--bytes', '1K..64M'];
    const rows = async (...words: string[]): Promise<readonly string[][]> => {
      const lines = (await printed([...cluster, ...words, '--explain'])).split('\n');
      const from = lines.findIndex((line) => line.startsWith('all_reduce by the network: '));
      const to = lines.indexOf('', from);
      return lines.slice(from, to).map((line) => line.split(/ {2,}/u));
    };
    const slow = await rows('--collnet-hosts', 'h5');
    expect(slow[0]).toEqual(['all_reduce by the network: an aggregator on h5']);
    expect(slow.slice(2)).toEqual([
      ['all', 'no', '67108864', ...anyTimes, 'the aggregator on h5: 4 hosts send it 64 MiB each over 1 Gb/s'],
    ]);
    const fast = await rows('--collnet-hosts', nic);
    expect(fast[0]).toEqual([`all_reduce by the network: an aggregator on ${nic} (100 Gb/s)`]);
    expect(fast.slice(2).map(([, isTaken]) => isTaken)).toEqual(['no', 'yes']);
    expect(fast.at(-1)?.at(-1)).toBe('the link of each host: 64 MiB each way over 1 Gb/s');
    expect((await rows('--collnet'))[0]).toEqual(['all_reduce by the network: aggregators on host[0-3] (1 Gb/s)']);
    expect(await printed([...cluster, '--explain'])).not.toContain('by the network');
    const document: unknown = JSON.parse(await printed([...cluster, '--collnet=1', '--json']));
    expect(document).toMatchObject({
      byNetwork: { by: 'aggregators', aggregators: [{ host: 'host0', speedMbps: 1000 }], ranges: [{ isTaken: false }] },
    });
  });

  it.each(['text', 'json', 'engine'])('processors have a plan as %s', async (format) => {
    vi.stubEnv('NCCLRUN_DEVICE', 'host');
    vi.stubEnv('NCCLRUN_TUNE', '0');
    const text = await printed(['--ranks', '3', '--format', format]);
    if (format === 'text') {
      expect(text.split('\n').slice(0, 4)).toEqual([
        '3 ranks on processors, 1 channel',
        '',
        expect.stringMatching(/^collective +up to bytes +algorithm +protocol +channels +predicted µs +and per MiB$/u),
        expect.stringMatching(/^allReduce +[0-9]+ +directOneShot +ll +1 +[0-9]+\.[0-9]{2} +[0-9]+\.[0-9]$/u),
      ]);
      expect(text).toMatch(/^allReduce +all /mu);
    } else {
      const document: unknown = JSON.parse(text);
      expect(document).toMatchObject(
        format === 'json'
          ? { version: 1, device: 'host', ranks: 3, nChannels: 1, table: null }
          : { formatVersion: 1, device: 'host', hosts: [{ name: 'host0', address: '127.0.0.1' }] },
      );
    }
  });

  it('a picture of processors is refused', async () => {
    vi.stubEnv('NCCLRUN_DEVICE', 'host');
    expect(await refusal(() => plan(['--ranks', '3', '--format', 'svg']))).toBe(
      '--format svg shows a topology; give one: --topo FILE',
    );
  });
});

describe('ncclrun topo', () => {
  it.each(['text', 'json', 'xml', 'svg'])('a topology from a file is shown as %s', async (format) => {
    for (const [name, path] of [
      ['switches', switches],
      ['superchips', superchips],
      ['eight-gpus', eight],
      ['crossed-gpus', crossed],
      ['bridged-gpus', bridged],
      ['lone-nics', lone],
    ] as const) {
      const { status, stdout, stderr } = await captured(() => topo(['--from', path, '--format', format]));
      expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
      const isSmall = ['switches', 'superchips', 'lone-nics'].includes(name);
      if (isSmall || format === 'text' || format === 'svg') await expectText(`topo/${name}.${format}`, stdout);
    }
  });

  it.each([
    [['--from', 'a', '--host', 'b'], '--from and --host both name the machine to show; leave one of them out'],
    [['x'], '"x" after topo has no meaning; write: ncclrun topo '],
    [['--from', '/none.xml'], '/none.xml'],
    [['--from', file('plan.xml', '<graphs version="1"/>')], 'plan.xml'],
  ])('the command line %j is refused', async (argv, message) => {
    expect(await refusal(() => topo(argv))).toContain(message);
  });
});
