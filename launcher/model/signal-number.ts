/** Signals by number and name. */
import { constants } from 'node:os';

const byNumber = new Map<number, NodeJS.Signals>();
for (const name of signalNames()) {
  if (!byNumber.has(constants.signals[name])) byNumber.set(constants.signals[name], name);
}

export function signalNames(): NodeJS.Signals[] {
  return Object.keys(constants.signals).filter((name): name is NodeJS.Signals => name in constants.signals);
}

/** Null for real-time signals, which have no name. */
export function signalName(number: number): NodeJS.Signals | null {
  return byNumber.get(number) ?? null;
}

export function signalNumber(name: NodeJS.Signals): number {
  return constants.signals[name];
}
