/** GPUDirect as a plan has it: which cards may read and write the memory of which GPUs. */

/** Whether the plan lets a card read or write a GPU's memory, else why not. The numbers on the wire are the indices. */
export const GPU_DIRECT_VERDICTS = ['allowed', 'tooFar', 'gpuRefuses', 'noReads'] as const;
export type GpuDirectVerdict = (typeof GPU_DIRECT_VERDICTS)[number];

/** A card as a local rank's GPU has it. */
export interface GpuNic {
  /** Local index of the rank. */
  readonly local: number;
  /** PCI address of the card, which is that of its first function: "0000:1b:00.0". null: every card that is not listed. */
  readonly card: string | null;
  /** Type of the path between them, NCCL's word: PIX, PXB, PHB, SYS. */
  readonly path: string;
  /** Of what the rank receives: the card writes the GPU's memory. */
  readonly receives: GpuDirectVerdict;
  /** Of what it sends: the card reads the GPU's memory. */
  readonly sends: GpuDirectVerdict;
}

/** Number of the card of a PCI address: its hexadecimal digits without the function's. */
export function cardNumber(address: string): number {
  return Number.parseInt(address.replaceAll(/[:.]/gu, '').slice(0, -1), 16);
}

export function cardAddress(number: number): string {
  const digits = number.toString(16).padStart(8, '0');
  return `${digits.slice(0, -4)}:${digits.slice(-4, -2)}:${digits.slice(-2)}.0`;
}
