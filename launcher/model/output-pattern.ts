/** Names of the files that ranks' output goes to, as patterns: %r rank, %h host, %n number of ranks, %t stream, %% a percent sign. */

type Field = 'rank' | 'padded-rank' | 'host' | 'ranks' | 'stream';

export type PatternPart = { readonly text: string } | { readonly field: Field };

export interface OutputPattern {
  /** As the user gave it, with the option: `--output dir=logs`. */
  readonly given: string;
  readonly parts: readonly PatternPart[];
}

/** Who wrote something. */
interface OutputSource {
  readonly rank: number;
  readonly host: string;
  readonly stream: 'stdout' | 'stderr';
  /** Ranks in the job. */
  readonly ranks: number;
}

export function outputPath(pattern: OutputPattern, source: OutputSource): string {
  return pattern.parts.map((part) => ('text' in part ? part.text : valueOf(part.field, source))).join('');
}

function valueOf(field: Field, { rank, host, stream, ranks }: OutputSource): string {
  switch (field) {
    case 'rank':
      return String(rank);
    case 'padded-rank':
      return String(rank).padStart(String(ranks).length, '0');
    case 'host':
      return host;
    case 'ranks':
      return String(ranks);
    case 'stream':
      return stream;
    default:
      return field satisfies never;
  }
}
