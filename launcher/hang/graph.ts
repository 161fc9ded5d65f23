/**
 * The wait-for graph of a job. Its nodes are ranks of the job, groups ("all that have not begun operation 7 of this communicator", so that many
 * who wait for many need few edges), one node per communicator for its ranks that no answer has, and one per operation for waits of which nobody
 * knows for whom, though all have begun it.
 */
import { missingFrom } from './table.ts';
import type { CommTable, JobTable, Member, Place } from './table.ts';

/** Ranks from which the shortest cycle is looked for. */
const CYCLE_STARTS = 16;

type WaitNode =
  | { readonly kind: 'rank'; readonly member: Member }
  | { readonly kind: 'group' | 'inside'; readonly comm: CommTable; readonly operation: number }
  | { readonly kind: 'missing'; readonly comm: CommTable };

interface Edge {
  readonly to: number;
  /** Who waits; of edges out of a group, null. */
  readonly place: Place | null;
}

export interface WaitGraph {
  readonly nodes: readonly WaitNode[];
  readonly edges: readonly (readonly Edge[])[];
  readonly nodeOf: ReadonlyMap<number, number>;
}

class Builder {
  readonly nodes: WaitNode[] = [];
  readonly edges: Edge[][] = [];
  readonly nodeOf = new Map<number, number>();
  readonly #others = new Map<string, number>();

  constructor({ members }: JobTable) {
    for (const member of members) this.nodeOf.set(member.jobRank, this.#add({ kind: 'rank', member }));
    for (const member of members) if (!member.isFrozen) this.#connect(member);
  }

  #connect({ jobRank, places }: Member): void {
    const from = this.edges[this.nodeOf.get(jobRank) ?? -1];
    for (const place of places) {
      if (place.waits) from?.push({ to: this.#target(place), place });
    }
  }

  #target({ comm, operation, collective, waitsFor }: Place): number {
    if (waitsFor === null)
      return collective === 'sendRecv' ? this.#inside(comm, operation) : this.#group(comm, operation);
    const peer = comm.byRank.get(waitsFor.rank);
    return this.nodeOf.get(peer?.jobRank ?? -1) ?? this.#missing(comm);
  }

  /** Those that have not begun it, or cannot go on inside. */
  #group(comm: CommTable, operation: number): number {
    const name = `${comm.id}:${comm.epoch}:${operation}`;
    const known = this.#others.get(name);
    if (known !== undefined) return known;
    const late = comm.places.filter((place) => place.operation < operation || (place.inside && place.member.isFrozen));
    if (late.length === 0 && missingFrom(comm) === 0) return this.#inside(comm, operation);
    const group = this.#add({ kind: 'group', comm, operation });
    this.#others.set(name, group);
    for (const { jobRank } of late) {
      const to = this.nodeOf.get(jobRank);
      if (to !== undefined) this.edges[group]?.push({ to, place: null });
    }
    if (missingFrom(comm) > 0) this.edges[group]?.push({ to: this.#missing(comm), place: null });
    return group;
  }

  #inside(comm: CommTable, operation: number): number {
    const name = `inside:${comm.id}:${comm.epoch}:${operation}`;
    const node = this.#others.get(name) ?? this.#add({ kind: 'inside', comm, operation });
    this.#others.set(name, node);
    return node;
  }

  #missing(comm: CommTable): number {
    const name = `${comm.id}:${comm.epoch}`;
    const node = this.#others.get(name) ?? this.#add({ kind: 'missing', comm });
    this.#others.set(name, node);
    return node;
  }

  #add(node: WaitNode): number {
    this.edges.push([]);
    return this.nodes.push(node) - 1;
  }
}

export function waitGraph(table: JobTable): WaitGraph {
  const { nodes, edges, nodeOf } = new Builder(table);
  return { nodes, edges, nodeOf };
}

/** Nodes that `starts` wait for, directly or by way of others, with themselves. */
export function reachableFrom(
  edges: readonly (readonly { readonly to: number }[])[],
  starts: Iterable<number>,
): Set<number> {
  const seen = new Set<number>(starts);
  const open = [...seen];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    for (const { to } of edges[node] ?? []) {
      if (seen.has(to)) continue;
      seen.add(to);
      open.push(to);
    }
  }
  return seen;
}

/** The same edges, turned round. */
export function turned({ edges }: WaitGraph): { readonly to: number }[][] {
  const back: { to: number }[][] = edges.map(() => []);
  for (const [from, out] of edges.entries()) for (const { to } of out) back[to]?.push({ to: from });
  return back;
}

/** The ends of all waits: groups of nodes that reach each other (mostly single ones) and wait for no other. */
export function endsOf({ edges }: WaitGraph, within: ReadonlySet<number>): number[][] {
  const component = components(edges, within);
  const leaves = new Set(component.values());
  const members = new Map<number, number[]>();
  for (const [node, own] of component) {
    const known = members.get(own);
    if (known === undefined) members.set(own, [node]);
    else known.push(node);
    if ((edges[node] ?? []).some(({ to }) => component.get(to) !== own)) leaves.delete(own);
  }
  return [...leaves].map((one) => members.get(one) ?? []);
}

/** Tarjan's strongly connected components, without recursion: chains of waits are as long as the job is wide. */
function components(edges: readonly (readonly Edge[])[], within: ReadonlySet<number>): Map<number, number> {
  const component = new Map<number, number>();
  const index = new Map<number, number>();
  const low = new Map<number, number>();
  const path: number[] = [];
  for (const start of within) {
    if (index.has(start)) continue;
    const calls = [{ node: start, next: 0 }];
    for (let call = calls.at(-1); call !== undefined; call = calls.at(-1)) {
      const { node } = call;
      if (call.next === 0) {
        index.set(node, index.size);
        low.set(node, index.size - 1);
        path.push(node);
      }
      const edge = edges[node]?.[call.next++];
      if (edge !== undefined) {
        if (!index.has(edge.to)) calls.push({ node: edge.to, next: 0 });
        else if (!component.has(edge.to)) lower(low, node, index.get(edge.to));
        continue;
      }
      calls.pop();
      const parent = calls.at(-1);
      if (parent !== undefined) lower(low, parent.node, low.get(node));
      if (low.get(node) !== index.get(node)) continue;
      for (let member = path.pop(); member !== undefined; member = member === node ? undefined : path.pop())
        component.set(member, node);
    }
  }
  return component;
}

function lower(low: Map<number, number>, node: number, to: number | undefined): void {
  low.set(node, Math.min(low.get(node) ?? Infinity, to ?? Infinity));
}

/** True if some ranks of `nodes` wait for each other by edges of this communicator alone. */
export function hasCycleIn({ nodes, edges }: WaitGraph, within: ReadonlySet<number>, comm: CommTable): boolean {
  const own = edges.map((out, from) => {
    const node = nodes[from];
    return out.filter(({ to, place }) => within.has(to) && (place?.comm ?? commOf(node)) === comm);
  });
  const sizes = new Map<number, number>();
  for (const [node, component] of components(own, within)) {
    if (nodes[node]?.kind === 'rank') sizes.set(component, (sizes.get(component) ?? 0) + 1);
  }
  return [...sizes.values()].some((size) => size > 1);
}

function commOf(node: WaitNode | undefined): CommTable | null {
  return node === undefined || node.kind === 'rank' ? null : node.comm;
}

/** The shortest way from one of `starts` to `end` inside `within`, as nodes; empty if there is none. */
export function pathTo(
  { edges }: WaitGraph,
  starts: readonly number[],
  end: number,
  within: ReadonlySet<number>,
): number[] {
  const cameFrom = new Map<number, number | null>(starts.map((node) => [node, null]));
  const open = [...starts];
  for (const node of open) {
    if (node === end) break;
    for (const { to } of edges[node] ?? []) {
      if (cameFrom.has(to) || !within.has(to)) continue;
      cameFrom.set(to, node);
      open.push(to);
    }
  }
  const path: number[] = [];
  for (let node = cameFrom.has(end) ? end : null; node !== null; node = cameFrom.get(node) ?? null) path.unshift(node);
  return path;
}

/** The shortest cycle in a group of nodes that reach each other: nodes, each waiting for the next and the last for the first. */
export function cycleIn(graph: WaitGraph, nodes: readonly number[]): number[] {
  const within = new Set(nodes);
  let best: number[] = [];
  const starts = nodes.filter((node) => graph.nodes[node]?.kind === 'rank').toSorted((one, other) => one - other);
  for (const start of starts.slice(0, CYCLE_STARTS)) {
    const next = (graph.edges[start] ?? []).map(({ to }) => to).filter((to) => within.has(to) && to !== start);
    const way = pathTo(graph, next, start, within);
    if (way.length > 0 && (best.length === 0 || way.length < best.length)) best = [start, ...way.slice(0, -1)];
  }
  return best;
}
