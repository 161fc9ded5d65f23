/** Speed of a network for people: "400 Gb/s", "300 Mb/s"; null: unknown. */
export function networkSpeed(megabits: number | null): string {
  if (megabits === null) return '? Gb/s';
  return megabits < 1000 ? `${megabits} Mb/s` : `${Number((megabits / 1000).toFixed(1))} Gb/s`;
}
