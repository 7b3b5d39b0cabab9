// Numbers with units on axes and in the readout.

const METRIC = [[1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e3, 'k'], [1, '']];
const TIMES = [[1e9, 's'], [1e6, 'ms'], [1e3, 'µs'], [1, 'ns']];
const NAMES = {
  frames_per_second: 'pps',
  per_second: '/s',
  bits_per_second: 'bit/s',
  percent: '%',
  frames: 'frames',
  bytes: 'bytes',
  none: '',
};

/** Returns the divisor and the unit that suit values up to `largest`. */
export function unitFor(unit, largest) {
  const isTime = unit === 'nanoseconds' || unit === 'seconds';
  const factor = unit === 'seconds' ? 1e9 : 1;
  const steps = isTime ? TIMES : METRIC;
  const size = Math.abs(largest) * factor;
  const step = steps.find(([value]) => size >= value) ?? steps[steps.length - 1];
  if (isTime) return { divisor: step[0] / factor, name: step[1] };
  if (unit === 'percent') return { divisor: 1, name: '%' };
  // Counts have no unit that a prefix could belong to: thousands are the limit.
  if (unit === 'none' && size < 1e4) return { divisor: 1, name: '' };
  return { divisor: step[0], name: step[1] + NAMES[unit] };
}

/** Formats a number without needless digits. */
export function plain(value) {
  if (value === 0) return '0';
  const size = Math.abs(value);
  if (size >= 1e5 || size < 1e-4) return value.toExponential(size < 1e-4 ? 0 : 2).replace('e+', 'e');
  const digits = Math.max(0, Math.min(6, 3 - Math.floor(Math.log10(size))));
  return Number(value.toFixed(digits)).toLocaleString('en', { maximumFractionDigits: 6 });
}

/** Formats a value with its unit. */
export function withUnit(value, unit) {
  const { divisor, name } = unitFor(unit, value);
  const number = plain(value / divisor);
  return name ? `${number} ${name}` : number;
}

/** Formats `1 / (1 - quantile)` as a percentile. */
export function percentile(value) {
  const text = (100 - 100 / Math.max(value, 1)).toFixed(6).replace(/\.?0+$/, '');
  return `${text} %`;
}
