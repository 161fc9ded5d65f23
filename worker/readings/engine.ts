/** Whether ncclrun's engine can be loaded here: in a process of its own, since libraries of others may be in its way. */
import { perfPath } from '../agent/installation.ts';
import { runTool } from './run-tool.ts';

const LIMIT_MS = 5000;

/** The word is no collective: the program is loaded with the engine, refuses it and ends with status 2. Null: it can be. */
export async function engineProblem(program = perfPath): Promise<string | null> {
  const answer = await runTool(program, ['loads'], LIMIT_MS);
  return 'problem' in answer && !answer.problem.endsWith('status 2') ? answer.problem : null;
}
