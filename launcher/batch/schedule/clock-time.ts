/** `14:05`; on another day than that of `now` with its date, `2026-11-30 14:05`. Local time; both in milliseconds. */
export function clockTime(time: number, now: number): string {
  const date = new Date(time);
  const text = `${two(date.getHours())}:${two(date.getMinutes())}`;
  const day = dayOf(date);
  return day === dayOf(new Date(now)) ? text : `${day} ${text}`;
}

function dayOf(date: Date): string {
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

function two(value: number): string {
  return String(value).padStart(2, '0');
}
