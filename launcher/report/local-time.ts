/** Times for people. */

let cachedSecond = Number.NaN;
let cachedText = '';

/** `2026-11-22 14:03:07.042`: local time of this machine. `time` in milliseconds since 1970. */
export function localTime(time: number): string {
  const second = Math.floor(time / 1000);
  if (second !== cachedSecond) {
    const date = new Date(time);
    const day = [date.getFullYear(), two(date.getMonth() + 1), two(date.getDate())].join('-');
    cachedText = `${day} ${[date.getHours(), date.getMinutes(), date.getSeconds()].map(two).join(':')}`;
    cachedSecond = second;
  }
  return `${cachedText}.${String(time - second * 1000).padStart(3, '0')}`;
}

function two(value: number): string {
  return String(value).padStart(2, '0');
}
