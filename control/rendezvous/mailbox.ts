/** Messages between two ranks under a key, before there is a data path: stored until fetched, in order per sender, receiver and tag. */
import type { Letter } from '../messages/bootstrap-codec.ts';

/** Bytes that may lie unfetched, over all keys. */
export const MAILBOX_BYTES = 256 * 1024 * 1024;

interface Box<Waiter> {
  readonly stored: Uint8Array[];
  readonly waiters: Waiter[];
}

export class Mailbox<Waiter> {
  /** By id and epoch, then by sender, receiver and tag; a box exists only while it holds something. */
  readonly #boxes = new Map<string, Map<string, Box<Waiter>>>();
  #bytes = 0;

  /** The waiter to hand the bytes to; 'stored' if nobody waits yet; 'full' if there is no room. */
  post(letter: Letter, bytes: Uint8Array): { readonly waiter: Waiter } | 'stored' | 'full' {
    const box = this.#find(letter);
    const waiter = box?.waiters.shift();
    if (waiter !== undefined) {
      this.#tidy(letter);
      return { waiter };
    }
    if (this.#bytes + bytes.length > MAILBOX_BYTES) return 'full';
    this.#bytes += bytes.length;
    this.#make(letter).stored.push(bytes.slice()); // a view would keep the whole chunk it came in
    return 'stored';
  }

  /** The oldest message, or undefined: the waiter is kept then. */
  fetch(letter: Letter, waiter: Waiter): Uint8Array | undefined {
    const bytes = this.#find(letter)?.stored.shift();
    if (bytes === undefined) {
      this.#make(letter).waiters.push(waiter);
      return undefined;
    }
    this.#bytes -= bytes.length;
    this.#tidy(letter);
    return bytes;
  }

  /** Forgets everything under an id, as it ends; returns who still waited. */
  end(id: string, epoch: number): Waiter[] {
    const boxes = this.#boxes.get(groupName(id, epoch));
    this.#boxes.delete(groupName(id, epoch));
    return [...(boxes?.values() ?? [])].flatMap((box) => {
      for (const bytes of box.stored) this.#bytes -= bytes.length;
      return box.waiters;
    });
  }

  /** Forgets waiters, because whoever waited is gone. */
  dropWaiters(gone: (waiter: Waiter) => boolean): void {
    for (const [group, boxes] of this.#boxes) {
      for (const [name, box] of boxes) {
        for (let index = box.waiters.length - 1; index >= 0; index--) {
          const waiter = box.waiters[index];
          if (waiter !== undefined && gone(waiter)) box.waiters.splice(index, 1);
        }
        if (box.waiters.length === 0 && box.stored.length === 0) boxes.delete(name);
      }
      if (boxes.size === 0) this.#boxes.delete(group);
    }
  }

  #find(letter: Letter): Box<Waiter> | undefined {
    return this.#boxes.get(groupName(letter.key.id, letter.key.epoch))?.get(boxName(letter));
  }

  #make(letter: Letter): Box<Waiter> {
    const group = groupName(letter.key.id, letter.key.epoch);
    const boxes = this.#boxes.get(group) ?? new Map<string, Box<Waiter>>();
    this.#boxes.set(group, boxes);
    const box = boxes.get(boxName(letter)) ?? { stored: [], waiters: [] };
    boxes.set(boxName(letter), box);
    return box;
  }

  #tidy(letter: Letter): void {
    const group = groupName(letter.key.id, letter.key.epoch);
    const boxes = this.#boxes.get(group);
    const box = boxes?.get(boxName(letter));
    if (boxes === undefined || box === undefined || box.waiters.length + box.stored.length > 0) return;
    boxes.delete(boxName(letter));
    if (boxes.size === 0) this.#boxes.delete(group);
  }
}

function groupName(id: string, epoch: number): string {
  return `${id}${epoch}`;
}

function boxName({ from, to, tag }: Letter): string {
  return `${from}>${to}:${tag}`;
}
