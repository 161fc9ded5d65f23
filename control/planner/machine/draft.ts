/** A machine being put together: nodes and links can still change. */
import type { LinkKind, Machine, MachineLink, MachineNode } from './node.ts';

/** A node before its index and links are known. */
type Facts<Node> = Node extends MachineNode ? Omit<Node, 'index' | 'links'> : never;
type NodeFacts = Facts<MachineNode>;

export interface DraftNode {
  readonly facts: NodeFacts;
  links: DraftLink[];
}

interface DraftLink {
  readonly kind: LinkKind;
  to: DraftNode;
  bandwidth: number;
}

export class Draft {
  nodes: DraftNode[] = [];

  add(facts: NodeFacts): DraftNode {
    const node: DraftNode = { facts, links: [] };
    this.nodes.push(node);
    return node;
  }

  /** Adds a link in both directions. */
  join(one: DraftNode, other: DraftNode, kind: LinkKind, bandwidth: number): void {
    this.connect(one, other, kind, bandwidth);
    this.connect(other, one, kind, bandwidth);
  }

  /** Adds a link in one direction. Links of one kind between the same nodes become one; the fastest come first. */
  connect(from: DraftNode, to: DraftNode, kind: LinkKind, bandwidth: number): void {
    const known = from.links.find((link) => link.to === to && link.kind === kind);
    const others = from.links.filter((link) => link !== known);
    const sum = { kind, to, bandwidth: bandwidth + (known?.bandwidth ?? 0) };
    const index = others.findIndex((link) => link.bandwidth < sum.bandwidth);
    from.links = others.toSpliced(index === -1 ? others.length : index, 0, sum);
  }

  remove(node: DraftNode): void {
    this.nodes = this.nodes.filter((other) => other !== node);
  }

  finish(): Machine {
    const cpus = this.nodes.filter(({ facts }) => facts.kind === 'cpu');
    for (const cpu of cpus) putUpLinksLast(cpu, null);
    const finished = new Map<DraftNode, MachineNode>();
    const nodes = this.nodes.map((node, index): MachineNode => {
      const one: MachineNode = { ...node.facts, index, links: [] };
      finished.set(node, one);
      return one;
    });
    const links: MachineLink[] = [];
    for (const draft of this.nodes) {
      const from = finished.get(draft);
      for (const { kind, to, bandwidth } of draft.links) {
        const end = finished.get(to);
        if (from === undefined || end === undefined) continue;
        const link: MachineLink = { index: links.length, kind, from, to: end, bandwidth };
        from.links.push(link);
        links.push(link);
      }
    }
    return {
      nodes,
      links,
      gpus: nodes.filter((node) => node.kind === 'gpu'),
      nets: nodes.filter((node) => node.kind === 'net'),
      cpus: nodes.filter((node) => node.kind === 'cpu'),
      nvswitch: nodes.find((node) => node.kind === 'nvswitch') ?? null,
    };
  }
}

/** Paths are looked for in the order of links: down the PCI tree first. */
function putUpLinksLast(node: DraftNode, above: DraftNode | null): void {
  if (above !== null) {
    node.links = [...node.links.filter(({ to }) => to !== above), ...node.links.filter(({ to }) => to === above)];
  }
  for (const { kind, to } of node.links) {
    if (kind === 'pci' && to !== above) putUpLinksLast(to, node);
  }
}
