/** What a batch script hands to `ncclrun slurm-attempt` as one word of JSON. */
import * as v from 'valibot';

const whole = v.pipe(v.number(), v.safeInteger(), v.minValue(0));

export const attemptPolicy = v.object({
  /** Directory of the records of attempts. */
  results: v.string(),
  /** Attempts that the task had before Slurm got it; each of Slurm's starts is one more. */
  before: whole,
  retry: v.object({
    errors: whole,
    interruptions: whole,
    unlessExit: v.array(whole),
    onOutOfMemory: v.boolean(),
  }),
});
export type AttemptPolicy = v.InferOutput<typeof attemptPolicy>;
