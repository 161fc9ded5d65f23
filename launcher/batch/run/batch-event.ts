/** What a batch tells of itself while it runs. */
import type { Placement } from '../model/capacity.ts';
import type { EndedState } from '../model/states.ts';

export type BatchEvent =
  | { readonly type: 'started'; readonly task: number; readonly attempt: number; readonly placement: Placement }
  | { readonly type: 'ended'; readonly task: number; readonly state: EndedState; readonly message: string }
  | {
      readonly type: 'retry';
      readonly task: number;
      readonly message: string;
      /** Milliseconds since 1970. */
      readonly notBefore: number;
    }
  | { readonly type: 'adopted'; readonly task: number; readonly attempt: number }
  | { readonly type: 'quarantined'; readonly host: string; readonly until: number; readonly reason: string }
  | { readonly type: 'stopping'; readonly how: 'finish' | 'cancel' };
