import { play } from './play.ts';
import type { Case, Device, Played } from './play.ts';

/** So many jobs at a time. */
export async function playAll(
  program: string,
  cases: readonly Case[],
  device: Device,
  jobs: number,
  each: (played: Played) => void,
): Promise<Played[]> {
  const open = cases.values();
  const played: Played[] = [];
  const worker = async (): Promise<void> => {
    for (const one of open) {
      const result = await play(program, one, device);
      played.push(result);
      each(result);
    }
  };
  await Promise.all(Array.from({ length: jobs }, worker));
  return played;
}
