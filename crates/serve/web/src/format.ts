// Numbers, times and states as the reports show them.

const METRIC: ReadonlyArray<readonly [number, string]> = [
  [1e12, 'T'],
  [1e9, 'G'],
  [1e6, 'M'],
  [1e3, 'k'],
  [1, ''],
];
const TIMES: ReadonlyArray<readonly [number, string]> = [
  [1e9, 's'],
  [1e6, 'ms'],
  [1e3, 'µs'],
  [1, 'ns'],
];

export type Unit = 'frames/s' | 'bit/s' | 'ns' | '%' | '/s' | 'bytes' | '';

/** Returns the divisor and the unit that suit values up to `largest`. */
export function unitFor(unit: Unit, largest: number): { divisor: number; name: string } {
  const size = Math.abs(largest);
  if (unit === '%') return { divisor: 1, name: '%' };
  if (unit === '' && size < 1e4) return { divisor: 1, name: '' };
  const steps = unit === 'ns' ? TIMES : METRIC;
  // 999.96 is shown with four digits, as 1,000: that is the next unit.
  const step = steps.find(([value]) => size >= value * 0.99995) ?? steps[steps.length - 1]!;
  if (unit === 'ns') return { divisor: step[0], name: step[1] };
  const name = unit === 'frames/s' ? `${step[1]}pps` : step[1] + unit;
  return { divisor: step[0], name };
}

/** Formats a number without needless digits. */
export function plain(value: number): string {
  if (value === 0) return '0';
  const size = Math.abs(value);
  if (size >= 1e5 || size < 1e-4)
    return value.toExponential(size < 1e-4 ? 0 : 2).replace('e+', 'e');
  const digits = Math.max(0, Math.min(6, 3 - Math.floor(Math.log10(size))));
  return Number(value.toFixed(digits)).toLocaleString('en', { maximumFractionDigits: 6 });
}

/** Formats a value with its unit; a dash if there is none. */
export function withUnit(value: number | null | undefined, unit: Unit): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return '–';
  const { divisor, name } = unitFor(unit, value);
  const number = plain(value / divisor);
  return name ? `${number} ${name}` : number;
}

/** Formats a counter with digit groups. */
export function count(value: number | null | undefined): string {
  return value === null || value === undefined ? '–' : value.toLocaleString('en');
}

/** Formats a number of things. */
export function many(value: number, one: string, several = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : several}`;
}

/** Formats a length of a file. */
export function bytes(value: number): string {
  return value < 1000 ? `${value} bytes` : withUnit(value, 'bytes').replace('bytes', 'B');
}

/** Formats a share in percent. */
export function percent(part: number, whole: number): string {
  if (whole <= 0) return '–';
  const value = (100 * part) / whole;
  const isTiny = value !== 0 && Math.abs(value) < 0.001;
  return `${isTiny ? value.toExponential(1) : Number(value.toFixed(3))} %`;
}

/** Formats seconds as a duration. */
export function duration(seconds: number): string {
  if (seconds < 60) return `${Number(seconds.toFixed(seconds < 10 ? 1 : 0))} s`;
  const whole = Math.round(seconds);
  const parts: Array<readonly [number, string]> = [
    [Math.floor(whole / 86400), 'd'],
    [Math.floor(whole / 3600) % 24, 'h'],
    [Math.floor(whole / 60) % 60, 'min'],
    [whole % 60, 's'],
  ];
  const first = parts.findIndex(([value]) => value > 0);
  return parts
    .slice(first, first + 2)
    .filter(([value]) => value > 0)
    .map(([value, unit]) => `${value} ${unit}`)
    .join(' ');
}

/** Formats a time in nanoseconds since the Unix epoch; without the date if it is today. */
export function time(unixNs: number): string {
  const date = new Date(unixNs / 1e6);
  const two = (value: number): string => String(value).padStart(2, '0');
  const clock = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  if (date.toDateString() === new Date().toDateString()) return clock;
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${clock}`;
}

/** Formats a speed of a link. */
export function speed(bps: number | null | undefined): string {
  return bps ? withUnit(bps, 'bit/s') : '–';
}

/** Formats an owner: a user and its session. */
export function owner(user: string, session: string): string {
  return session ? `${user} (session ${session})` : user;
}
