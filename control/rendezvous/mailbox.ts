/** Stores messages between two ranks under a key, before there is a data path, until the receiver fetches them. Keeps their order per sender, receiver and tag. */
import type { MailboxMessage } from '../messages/bootstrap-codec.ts';

/** Maximum bytes of unfetched messages over all keys, including the overhead of messages and of pending fetches. */
const MAILBOX_BYTES = 64 * 1024 * 1024;
const MESSAGE_BYTES = 2048;

interface Box<Waiter> {
  readonly stored: Uint8Array[];
  readonly waiters: Waiter[];
}

export class Mailbox<Waiter> {
  /** Boxes by id and epoch, then by sender, receiver and tag; an empty box does not exist. */
  readonly #boxes = new Map<string, Map<string, Box<Waiter>>>();
  #bytes = 0;

  /** Returns the waiter that receives the bytes; 'stored' if none waits yet; 'full' if the mailbox is full. */
  post(message: MailboxMessage, bytes: Uint8Array): { readonly waiter: Waiter } | 'stored' | 'full' {
    const box = this.#find(message);
    const waiter = box?.waiters.shift();
    if (waiter !== undefined) {
      this.#bytes -= MESSAGE_BYTES;
      this.#tidy(message);
      return { waiter };
    }
    if (this.#bytes + costOf(bytes) > MAILBOX_BYTES) return 'full';
    this.#bytes += costOf(bytes);
    this.#make(message).stored.push(new Uint8Array(bytes)); // a view would keep the whole received chunk alive
    return 'stored';
  }

  /** Returns the oldest message; 'waiting' if there is none and the waiter is stored; 'full' if the mailbox is full. */
  fetch(message: MailboxMessage, waiter: Waiter): Uint8Array | 'waiting' | 'full' {
    const bytes = this.#find(message)?.stored.shift();
    if (bytes === undefined) {
      if (this.#bytes + MESSAGE_BYTES > MAILBOX_BYTES) return 'full';
      this.#bytes += MESSAGE_BYTES;
      this.#make(message).waiters.push(waiter);
      return 'waiting';
    }
    this.#bytes -= costOf(bytes);
    this.#tidy(message);
    return bytes;
  }

  /** Drops everything under an id when it ends; returns the remaining waiters. */
  end(id: string, epoch: number): Waiter[] {
    const boxes = this.#boxes.get(groupName(id, epoch));
    this.#boxes.delete(groupName(id, epoch));
    return [...(boxes?.values() ?? [])].flatMap((box) => {
      for (const bytes of box.stored) this.#bytes -= costOf(bytes);
      this.#bytes -= MESSAGE_BYTES * box.waiters.length;
      return box.waiters;
    });
  }

  /** Drops waiters whose ranks are gone. */
  dropWaiters(gone: (waiter: Waiter) => boolean): void {
    for (const [group, boxes] of this.#boxes) {
      for (const [name, box] of boxes) {
        for (let index = box.waiters.length - 1; index >= 0; index--) {
          const waiter = box.waiters[index];
          if (waiter === undefined || !gone(waiter)) continue;
          box.waiters.splice(index, 1);
          this.#bytes -= MESSAGE_BYTES;
        }
        if (box.waiters.length === 0 && box.stored.length === 0) boxes.delete(name);
      }
      if (boxes.size === 0) this.#boxes.delete(group);
    }
  }

  #find(message: MailboxMessage): Box<Waiter> | undefined {
    return this.#boxes.get(groupName(message.key.id, message.key.epoch))?.get(boxName(message));
  }

  #make(message: MailboxMessage): Box<Waiter> {
    const group = groupName(message.key.id, message.key.epoch);
    const boxes = this.#boxes.get(group) ?? new Map<string, Box<Waiter>>();
    this.#boxes.set(group, boxes);
    const box = boxes.get(boxName(message)) ?? { stored: [], waiters: [] };
    boxes.set(boxName(message), box);
    return box;
  }

  #tidy(message: MailboxMessage): void {
    const group = groupName(message.key.id, message.key.epoch);
    const boxes = this.#boxes.get(group);
    const box = boxes?.get(boxName(message));
    if (boxes === undefined || box === undefined || box.waiters.length + box.stored.length > 0) return;
    boxes.delete(boxName(message));
    if (boxes.size === 0) this.#boxes.delete(group);
  }
}

function costOf(bytes: Uint8Array): number {
  return bytes.length + MESSAGE_BYTES;
}

function groupName(id: string, epoch: number): string {
  return `${id}${epoch}`;
}

function boxName({ from, to, tag }: MailboxMessage): string {
  return `${from}>${to}:${tag}`;
}
