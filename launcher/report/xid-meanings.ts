/**
 * What NVIDIA's Xids mean and what to do next, in our words (NVIDIA, "Xid Errors", its catalogue and "GPU Debug Guidelines"). The most frequent
 * ones: what the driver says of the others has to do.
 */
interface XidMeaning {
  /** Told where the driver's line says nothing. */
  readonly what: string;
  /** null: it follows from another error, or harms nobody. */
  readonly next: string | null;
}

const program =
  'most likely the program did it: compute-sanitizer and cuda-gdb show where; if it runs elsewhere, suspect the GPU';
const again = 'start the job again; if it comes back on that GPU, have it reset (nvidia-smi -r) and look at its driver';
const reset =
  'the GPU must be reset before anybody uses it again (nvidia-smi -r, or restart the host); if it comes back, have it replaced';
const links =
  'look at that host’s NVLinks (nvidia-smi nvlink -e) and its fabric manager; reset its GPUs; if it comes back, a link or a GPU is broken';
const firmware = 'reset the GPU or restart the host; if it comes back, try another driver';

const meanings: Readonly<Record<number, XidMeaning>> = {
  13: { what: 'an exception in a kernel', next: program },
  31: { what: 'a kernel used an address that it may not use (MMU fault)', next: program },
  32: { what: 'a stream of commands to the GPU was damaged', next: again },
  38: { what: 'the GPU’s firmware failed', next: firmware },
  43: { what: 'the GPU has given up the work of a process', next: program },
  45: { what: 'the driver has cleaned up after a process that failed or was ended', next: null },
  48: { what: 'memory has lost two bits at once (uncorrectable ECC error)', next: reset },
  61: { what: 'a controller inside the GPU has stopped', next: reset },
  62: { what: 'a controller inside the GPU has stopped', next: reset },
  63: { what: 'a bad row of memory is to be replaced by a spare one', next: null },
  64: { what: 'a bad row of memory could not be replaced', next: reset },
  69: { what: 'the GPU got a command that makes no sense', next: program },
  74: { what: 'an NVLink has failed', next: links },
  79: {
    what: 'the GPU has fallen off the bus',
    next: 'take that host out of use: the GPU is gone until the host is restarted; look at its power, temperature, seat and PCIe link',
  },
  92: { what: 'memory has lost many single bits, which were corrected', next: null },
  94: {
    what: 'uncorrectable ECC error, of which only the work of one process suffered',
    next: 'start the job again; the GPU should be reset once it is idle',
  },
  95: { what: 'uncorrectable ECC error that may have harmed every process of the GPU', next: reset },
  109: { what: 'the GPU did not get from one process to the next in time', next: again },
  119: { what: 'the GPU’s own processor (GSP) does not answer', next: firmware },
  120: { what: 'the GPU’s own processor (GSP) has failed', next: firmware },
  140: { what: 'uncorrectable ECC error', next: reset },
  143: { what: 'the GPU could not be started', next: reset },
  ...Object.fromEntries(
    [144, 145, 146, 147, 148, 149, 150].map((code) => [code, { what: 'an NVLink has failed', next: links }]),
  ),
};

export function xidMeaning(code: number): XidMeaning | null {
  return meanings[code] ?? null;
}
