/** What an agent is given, and the states it goes through. */
import type { Link } from '../../control/link/link.ts';
import type { AgentOrder } from '../../control/messages/link.ts';
import type { Native } from '../engine/native.ts';
import type { OpenBootstrap } from './bootstrap-service.ts';

export interface AgentOptions {
  readonly link: Link;
  readonly order: AgentOrder;
  /** Runs in the launcher. */
  readonly local: boolean;
  readonly native: Native;
  readonly guardianPath: string;
  readonly openBootstrap: OpenBootstrap;
  /** Nothing of the job is left on this host and the last frame has been sent; the link is the caller's to close. */
  readonly onEnded: () => void;
}

export type AgentState =
  | { readonly name: 'ready' }
  | { readonly name: 'running' }
  | { readonly name: 'ending' }
  | { readonly name: 'sweeping' }
  /** The topology file is being written. No rank is left; `alone`: nor is the guardian. */
  | { readonly name: 'writing'; readonly alone: boolean }
  /** `goodbye`: kills a guardian that has ended its ranks and does not leave. */
  | { readonly name: 'ended'; readonly goodbye: NodeJS.Timeout };
