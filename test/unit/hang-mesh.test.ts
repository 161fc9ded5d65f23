/** Whose fault a hang is in a mesh of communicators: one rank stops anywhere, and most of the others wait somewhere else. */
import { expect, it } from 'vitest';
import { judgeHangs } from '../../launcher/hang/judge.ts';
import { stoppedMesh } from '../rig/mesh-program.ts';
import { readings } from '../rig/positions.ts';
import { seededRandom } from '../rig/random.ts';

const [rows, columns, steps] = [4, 8, 12];

it.each([false, true])('the rank that stops is blamed alone, wherever it stops (inside of a call: %s)', (isInside) => {
  for (let seed = 1; seed <= 200; seed++) {
    const random = seededRandom(seed);
    const fault = { rank: random(rows * columns), step: random(steps - 1), isInside };
    const verdicts = judgeHangs(...readings(stoppedMesh({ rows, columns, steps, random }, fault)));
    const blamed = verdicts.map(({ verdict }) => [verdict.kind, verdict.blamed.map(({ ranks }) => ranks).join()]);
    expect({ seed, blamed }).toEqual({ seed, blamed: [[isInside ? 'stopped' : 'stuck-outside', `${fault.rank}`]] });
  }
});
