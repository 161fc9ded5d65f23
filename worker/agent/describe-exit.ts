import { constants } from 'node:os';
import type { Exit } from '../../control/messages/payload.ts';

const names = new Map(Object.entries(constants.signals).map(([name, number]) => [number, name]));

/** A phrase that follows a rank's name: "exited with status 3", "was killed by SIGKILL". */
export function describeExit({ exitCode, signalNumber }: Exit): string {
  if (signalNumber === null) return `exited with status ${exitCode}`;
  return `was killed by ${names.get(signalNumber) ?? `signal ${signalNumber}`}`;
}
