/** Questions that go to agents at once, each under way until all of its hosts have answered or its time is over. */

interface HostQuestion {
  readonly hosts: readonly { readonly name: string }[];
  /** Hosts that have answered. */
  readonly done: Set<string>;
}

export class HostQuestions<Question extends HostQuestion> {
  readonly #settled: (question: Question) => void;
  readonly #open = new Map<number, { readonly question: Question; readonly timeout: NodeJS.Timeout }>();
  #last = 0;

  /** `settled` is called once for every question, with what has come. */
  constructor(settled: (question: Question) => void) {
    this.#settled = settled;
  }

  /** The number of the question, of 32 bits. */
  begin(question: Question, limitMs: number): number {
    const request = (this.#last = (this.#last + 1) >>> 0);
    this.#open.set(request, { question, timeout: setTimeout(() => this.#settle(request), limitMs) });
    return request;
  }

  get(request: number): Question | undefined {
    return this.#open.get(request)?.question;
  }

  settleIfAll(request: number): void {
    const question = this.get(request);
    if (question?.hosts.every(({ name }) => question.done.has(name)) === true) this.#settle(request);
  }

  /** No host answers any more. */
  close(): void {
    for (const request of this.#open.keys()) this.#settle(request);
  }

  #settle(request: number): void {
    const open = this.#open.get(request);
    if (open === undefined) return;
    this.#open.delete(request);
    clearTimeout(open.timeout);
    this.#settled(open.question);
  }
}
