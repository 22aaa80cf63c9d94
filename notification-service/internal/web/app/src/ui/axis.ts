/** Where the marks of a chart's axes stand: at round values and at round times. */

export type Scale = 'linear' | 'log';

/** The marks of a value axis from 0 up to the first that is not below most; there are three to six. */
export function valueTicks(most: number, scale: Scale): number[] {
  if (!(most > 0)) return [0, 1];
  if (scale === 'log') {
    const ticks = [0];
    let power = Math.min(1, 10 ** Math.floor(Math.log10(most)));
    for (; power < most; power *= 10) ticks.push(power);
    return [...ticks, power];
  }
  const rough = most / 4;
  const magnitude = 10 ** Math.floor(Math.log10(rough));
  const step = magnitude * ([1, 2, 2.5, 5].find((factor) => factor * magnitude >= rough) ?? 10);
  const count = Math.ceil(most / step - 1e-9);
  // Sums of tenths are not exact.
  return Array.from({ length: count + 1 }, (_, i) => Number((i * step).toPrecision(12)));
}

/** Which part of the axis a value takes: 0 is at the bottom, 1 at its last mark. */
export function share(value: number, top: number, scale: Scale): number {
  return scale === 'log' ? Math.log1p(value) / Math.log1p(top) : value / top;
}

const MINUTE = 60_000;
const STEPS = [1, 5, 15, 30, 60, 120, 180, 360, 720].map((minutes) => minutes * MINUTE);
const MOST_TIMES = 6;

/** Round times of the reader's clock between two, so few that their names have room. */
export function timeTicks(from: number, to: number): number[] {
  const step = STEPS.find((each) => (to - from) / each <= MOST_TIMES) ?? 24 * 60 * MINUTE;
  const offset = new Date(from).getTimezoneOffset() * MINUTE;
  const ticks: number[] = [];
  for (let at = Math.ceil((from - offset) / step) * step + offset; at <= to; at += step) ticks.push(at);
  return ticks;
}
