/** Machines that nobody has built: any number of processors, switches, GPUs, NVLinks and NICs. */
import { element } from '../../control/topology/element.ts';
import type { Element } from '../../control/topology/element.ts';
import type { Random } from './random.ts';

const PROCESSORS = [
  { arch: 'x86_64', vendor: 'GenuineIntel', familyid: 6, modelid: 79 },
  { arch: 'x86_64', vendor: 'GenuineIntel', familyid: 6, modelid: 143 },
  { arch: 'x86_64', vendor: 'AuthenticAMD', familyid: 25, modelid: 1 },
  { arch: 'arm64' },
  { arch: 'ppc64' },
];
const SPEEDS = ['2.5 GT/s', '8.0 GT/s PCIe', '16.0 GT/s PCIe', '32.0 GT/s PCIe', ''];
const WIDTHS = [0, 1, 4, 8, 16];
const CAPABILITIES = [60, 70, 75, 80, 86, 90, 100];
const MEGABITS = [-1, 1000, 10_000, 25_000, 100_000, 200_000, 400_000];

/** 1 to 8 GPUs, each used by a rank with some likelihood, at least one of them; ranks are numbered in the order of the file. */
export function randomTopology(random: Random): Element {
  const pick = <Item>(items: readonly [Item, ...Item[]] | readonly Item[]): Item => {
    const item = items[random(items.length)];
    if (item === undefined) throw new RangeError('nothing to pick from');
    return item;
  };
  const processor = pick(PROCESSORS);
  const cpus = Array.from({ length: 1 + random(4) }, (_, numaid) => element('cpu', { numaid, ...processor }));
  let address = 0;
  const nextAddress = (): string => `0000:${(++address).toString(16).padStart(2, '0')}:00.0`;
  const link = (): Record<string, string | number> => ({ link_speed: pick(SPEEDS), link_width: pick(WIDTHS) });
  /** A processor, or a switch below it, or one below that. */
  const place = (): Element => {
    let parent = pick(cpus);
    while (random(2) === 0) {
      const switches = parent.children.filter((child) => child.kind === 'element' && child.name === 'pci');
      const known = switches.length > 0 ? pick(switches) : null;
      const next =
        known?.kind === 'element' && known.attributes.get('class') === '0x060400' && random(2) === 0
          ? known
          : element('pci', { busid: nextAddress(), class: '0x060400', ...link() });
      if (next !== known) parent.children.push(next);
      parent = next;
    }
    return parent;
  };

  const count = 1 + random(8);
  const sm = pick(CAPABILITIES);
  const unused = random(3) === 0;
  let rank = 0;
  const gpus = Array.from({ length: count }, (_, dev) => {
    const isUsed = !unused || random(2) === 0 || (dev === count - 1 && rank === 0);
    const gpu = element('gpu', { dev, sm, gdr: random(2) });
    if (isUsed) gpu.attributes.set('rank', String(rank++));
    const busid = nextAddress();
    place().children.push(element('pci', { busid, class: '0x030200', ...link() }, [gpu]));
    return { gpu, busid };
  });
  connect(gpus, random);

  for (let dev = random(6); dev > 0; dev--) {
    const attributes = {
      name: `mlx5_${dev}`,
      dev,
      speed: pick(MEGABITS),
      port: 1 + random(2),
      gdr: random(2),
      coll: random(2),
    };
    const net = element('net', { ...attributes, guid: `0x${(1 + random(4)).toString(16)}${dev}` });
    const nic = element('nic', {}, [net]);
    if (random(4) === 0) pick(cpus).children.push(nic);
    else place().children.push(element('pci', { busid: nextAddress(), class: '0x020000', ...link() }, [nic]));
  }
  return element('system', { version: 1 }, cpus);
}

/** By NVLinks: not at all, through switches, in a mesh of any kind. */
function connect(gpus: readonly { gpu: Element; busid: string }[], random: Random): void {
  const kind = random(3);
  gpus.forEach(({ gpu, busid }, i) => {
    if (kind === 1)
      gpu.children.push(element('nvlink', { target: 'fffffff:ffff:ff', count: 1 + random(18), tclass: '0x068000' }));
    if (kind !== 2) return;
    for (const other of gpus.slice(i + 1)) {
      const count = random(4);
      if (count === 0) continue;
      gpu.children.push(element('nvlink', { target: other.busid, count, tclass: '0x030200' }));
      other.gpu.children.push(element('nvlink', { target: busid, count, tclass: '0x030200' }));
    }
  });
}
