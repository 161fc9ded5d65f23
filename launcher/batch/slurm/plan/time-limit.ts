/** A time limit in Slurm's minutes, and the one that ncclrun keeps by itself, which ends first: only ncclrun can say why a job ended. */

interface Limits {
  readonly minutes: number;
  readonly timeoutSeconds: number;
}

const MARGIN_SECONDS = 30;
/** From here on half a minute is nothing to a job, and a minute more may be beyond a partition's limit. */
const LONG_SECONDS = 3600;

export function limitsOf(seconds: number): Limits {
  const minutes = Math.ceil((seconds < LONG_SECONDS ? seconds + MARGIN_SECONDS : seconds) / 60);
  return { minutes, timeoutSeconds: Math.min(seconds, minutes * 60 - MARGIN_SECONDS) };
}
