/**
 * A GPU error that NVIDIA's driver writes to the kernel's log (NVIDIA, "Xid Errors"). Formats of several drivers:
 *
 *     NVRM: Xid (PCI:0000:1b:00): 79, pid=1234, name=python, GPU has fallen off the bus.
 *     NVRM: Xid (PCI:0000:1b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.
 *     NVRM: Xid (PCI:0000:1b:00 GPU-I:05): 94, pid=7194, Contained: CE User Channel (0x9). RST: No, D-RST: No
 *     NVRM: Xid (0000:03:00): 14, Channel 00000001
 */
export interface XidLine {
  readonly code: number;
  /** Domain, bus and device in sysfs' form, without the function: `0000:1b:00`. */
  readonly address: string;
  readonly pid: number | null;
  /** Without a final full stop. */
  readonly message: string;
}

const MAX_CHARACTERS = 200;
const LINE = /^NVRM: Xid \((?:PCI:)?0*([0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2})[^)]{0,60}\): (\d{1,4})(?:,(.*))?$/iu;
const PROCESS = /^\s*pid=('?<unknown>'?|\d{1,10}),(?:\s*name=[^,]{0,100},)?/u;

/** Null if the line is no Xid. */
export function parseXid(line: string): XidLine | null {
  const [, address, code, rest = ''] = LINE.exec(line) ?? [];
  if (address === undefined) return null;
  const [named = '', pid = ''] = PROCESS.exec(rest) ?? [];
  const message = rest
    .slice(named.length)
    .replaceAll(/\p{Cc}/gu, ' ')
    .trim()
    .replace(/\.$/u, '');
  return {
    code: Number(code),
    address: address.toLowerCase(),
    pid: /^[1-9]\d*$/u.test(pid) ? Number(pid) : null,
    message: message.slice(0, MAX_CHARACTERS),
  };
}
