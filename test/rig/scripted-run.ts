/** A whole job as `ncclrun WORDS` would run it, on hosts whose agents the test plays. */
import { FrameKind } from '../../control/messages/frame.ts';
import type { Frame } from '../../control/messages/frame.ts';
import type { AgentHello } from '../../control/messages/link.ts';
import type { RankPositionsQuery } from '../../control/messages/hang.ts';
import { parseOrder, parseRankPositionsQuery, parseStart } from '../../control/link/validate.ts';
import { jobRequest } from '../../launcher/cli/job-request.ts';
import { type JobOptionName, runCommandLine } from '../../launcher/cli/options.ts';
import { readCommandLine } from '../../launcher/cli/read-command-line.ts';
import { runJob } from '../../launcher/job/run.ts';
import type { JobEvent } from '../../launcher/model/event.ts';
import type { JobResult, RankMap } from '../../launcher/model/types.ts';
import { AGENT_START } from '../../launcher/remote/shell/shell.ts';
import { ScriptedHost } from './scripted-host.ts';

interface RunOptions {
  /** What the agent of a host says of itself; null: it never says hello. */
  readonly hello?: (host: string) => Partial<AgentHello> | null;
  /** The rank has started. */
  readonly started?: (agent: ScriptedHost, rank: number) => void;
  /** The launcher asks where the ranks are. */
  readonly whereIs?: (agent: ScriptedHost, query: RankPositionsQuery) => void;
}

interface ScriptedRun {
  readonly result: Promise<JobResult>;
  /** In the order in which they were connected to. */
  readonly agents: readonly ScriptedHost[];
  readonly events: readonly JobEvent[];
  /** What the reporter was to prepare for. */
  readonly prepared: readonly RankMap[];
  readonly ofType: <Type extends JobEvent['type']>(type: Type) => readonly Extract<JobEvent, { type: Type }>[];
  readonly notices: () => readonly string[];
}

/** Every rank exits with 0 as soon as it has started, unless `started` does something else. Agents end when they are asked to. */
export function scriptedRun(words: string, { hello = () => ({}), started, whereIs }: RunOptions = {}): ScriptedRun {
  const {
    settings,
    words: program,
    further,
  } = readCommandLine<JobOptionName>(['--stdin', 'none', ...words.split(' ')], runCommandLine, {
    XDG_CONFIG_HOME: '/nonexistent',
  });
  const agents: ScriptedHost[] = [];
  const events: JobEvent[] = [];
  const prepared: RankMap[] = [];
  const reporter = {
    prepare: async (map: RankMap) => void prepared.push(map),
    event: (event: JobEvent) => void events.push(event),
    output: () => Promise.resolve(),
    result: () => Promise.resolve(),
  };
  const begin = (agent: ScriptedHost, frame: Frame): void => {
    const start: { placement: { ranks: { rank: number }[] } | null } = JSON.parse(
      Buffer.from(frame.payload).toString(),
    );
    for (const { rank } of (start.placement ?? agent.order.placement)?.ranks ?? []) {
      agent.spawned(rank);
      if (started === undefined) agent.exited(rank, 0);
      else started(agent, rank);
    }
  };
  const result = runJob({
    request: jobRequest(settings, program, further),
    reporter,
    startAgent(host, order, handler) {
      const agent = new ScriptedHost(host.name);
      agents.push(agent);
      agent.connect(order, handler);
      const facts = hello(host.name);
      if (facts !== null)
        setImmediate(() => {
          agent.step(AGENT_START);
          agent.hello(facts);
        });
      return {
        send(frame) {
          agent.sent.push(frame);
          if (frame.kind === FrameKind.order) {
            agent.again(parseOrder(frame.payload));
            setImmediate(() => agent.hello(facts ?? {}));
          }
          if (frame.kind === FrameKind.start) setImmediate(() => begin(agent, frame));
          if (frame.kind === FrameKind.rankPositions)
            setImmediate(() => whereIs?.(agent, parseRankPositionsQuery(frame.payload)));
          if (frame.kind === FrameKind.end) setImmediate(() => agent.ended());
        },
        close: async () => void (agent.closed = true),
      };
    },
  });
  const ofType = <Type extends JobEvent['type']>(type: Type) =>
    events.filter((event): event is Extract<JobEvent, { type: Type }> => event.type === type);
  const notices = () => ofType('notice').map(({ message }) => message);
  return { result, agents, events, prepared, ofType, notices };
}

/** The environment that a host's ranks get beside the program's. */
export function startOf({ sent }: ScriptedHost): Readonly<Record<string, string>> {
  const frame = sent.find(({ kind }) => kind === FrameKind.start);
  if (frame === undefined) throw new Error('the ranks were not started');
  return parseStart(frame.payload).environment;
}
