/** A program of a mesh of ranks (rows, columns, all), played until nobody can go on because one rank has stopped at some step. */
import { ended } from './positions.ts';
import type { Change, PlantedComm, PlantedJob } from './positions.ts';
import type { Random } from './random.ts';

interface Call {
  readonly comm: number;
  /** Number of the operation in its communicator, from 1. */
  readonly operation: number;
}

interface MeshFault {
  readonly rank: number;
  /** Number of calls that it makes before. */
  readonly step: number;
  /** It stops inside of the next call, and not before. */
  readonly isInside: boolean;
}

interface Mesh {
  readonly rows: number;
  readonly columns: number;
  readonly steps: number;
  readonly random: Random;
}

export function stoppedMesh({ rows, columns, steps, random }: Mesh, fault: MeshFault): PlantedJob {
  const size = rows * columns;
  const all = Array.from({ length: size }, (_, rank) => rank);
  const members = [
    all,
    ...Array.from({ length: rows }, (_, row) => all.filter((rank) => Math.floor(rank / columns) === row)),
    ...Array.from({ length: columns }, (_, column) => all.filter((rank) => rank % columns === column)),
  ];
  const families = Array.from({ length: steps }, () => random(3));
  const programs = all.map((rank) => programOf(rank, families, rows, columns));
  const begun = play(programs, members, fault);
  const comms = members.map((ranks, comm): PlantedComm => {
    const changes = ranks.map((rank): [number, Change] => {
      const calls = (programs[rank] ?? []).slice(0, begun[rank]?.calls ?? 0).filter((call) => call.comm === comm);
      const operation = calls.at(-1)?.operation ?? 0;
      const inside = begun[rank]?.inside === true && programs[rank]?.[begun[rank].calls - 1]?.comm === comm;
      const before = (ranks.indexOf(rank) + ranks.length - 1) % ranks.length;
      return [rank, inside ? { operation, waitsFor: random(2) === 0 ? null : before } : ended(operation)];
    });
    return { id: comm.toString(16).padStart(16, '0'), ranks, changes: Object.fromEntries(changes) };
  });
  const processes = fault.isInside ? { [fault.rank]: { state: 'stopped' as const } } : {};
  return { comms, processes, ranksPerHost: columns };
}

function programOf(rank: number, families: readonly number[], rows: number, columns: number): Call[] {
  const own = [0, 1 + Math.floor(rank / columns), 1 + rows + (rank % columns)];
  const counts = [0, 0, 0];
  return families.map((family) => {
    const operation = (counts[family] ?? 0) + 1;
    counts[family] = operation;
    return { comm: own[family] ?? 0, operation };
  });
}

interface Begun {
  calls: number;
  inside: boolean;
}

/** A call ends once all members of its communicator have begun it; the rank at fault begins none after its step, and never ends the last. */
function play(programs: readonly Call[][], members: readonly (readonly number[])[], fault: MeshFault): Begun[] {
  const begun = programs.map((): Begun => ({ calls: 0, inside: false }));
  const arrived = new Map<string, number>();
  const last = fault.step + (fault.isInside ? 1 : 0);
  for (let moved = true; moved; ) {
    moved = false;
    for (const [rank, state] of begun.entries()) {
      const current = programs[rank]?.[state.calls - 1];
      const isStopped = rank === fault.rank && fault.isInside && state.calls === last;
      if (state.inside && current !== undefined && !isStopped) {
        const isWhole = arrived.get(nameOf(current)) === members[current.comm]?.length;
        const lacksFault = fault.isInside && isSame(current, programs[fault.rank]?.[last - 1]);
        if (!isWhole || lacksFault) continue;
        state.inside = false;
        moved = true;
      }
      const next = programs[rank]?.[state.calls];
      if (state.inside || next === undefined || (rank === fault.rank && state.calls >= last)) continue;
      arrived.set(nameOf(next), (arrived.get(nameOf(next)) ?? 0) + 1);
      state.calls++;
      state.inside = true;
      moved = true;
    }
  }
  return begun;
}

function nameOf({ comm, operation }: Call): string {
  return `${comm}:${operation}`;
}

function isSame(one: Call, other: Call | undefined): boolean {
  return other !== undefined && nameOf(one) === nameOf(other);
}
