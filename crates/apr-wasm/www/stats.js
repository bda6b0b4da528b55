// Figures about the values of a tensor. Small tensors are looked at whole, large ones in runs spread evenly.

/** Tensors of up to so many values are read whole, from a file of this machine and from a URL. */
export const WHOLE = 1 << 22;
export const WHOLE_BY_URL = 1 << 18;
const RUNS = 64;
const BINS = 48;

/** The ranges of elements to read. */
export function plan(elements, whole) {
  if (elements <= whole) return [{ start: 0, end: elements }];
  const length = Math.floor(whole / 4 / RUNS);
  const step = (elements - length) / (RUNS - 1);
  return Array.from({ length: RUNS }, (_, run) => {
    const start = Math.floor(run * step);
    return { start, end: start + length };
  });
}

/** A histogram leaves out what is further from the mean, in standard deviations, as long as there is such a value. */
const FAR = 6;
/** So often, at most, each time without what was left out before. */
const PASSES = 16;
/** It does so if the rest would be in less than so much of its width. */
const NARROW = 1 / 4;

/** From where to where a histogram shows values: all of them, or without the few far ones that would leave the others in a few bins. */
function range(parts, min, max) {
  let [low, high] = [min, max];
  for (let pass = 0; pass < PASSES; pass += 1) {
    let [count, sum, squares, least, most] = [0, 0, 0, Infinity, -Infinity];
    const each = (then) => {
      for (const part of parts) for (const value of part) if (value >= low && value <= high) then(value);
    };
    each((value) => {
      count += 1;
      sum += value;
      if (value < least) least = value;
      if (value > most) most = value;
    });
    const mean = sum / count;
    each((value) => {
      squares += (value - mean) ** 2;
    });
    [low, high] = [least, most];
    const far = FAR * Math.sqrt(squares / count);
    if (mean - far <= low && mean + far >= high) break;
    [low, high] = [Math.max(low, mean - far), Math.min(high, mean + far)];
  }
  return high > low && high - low < NARROW * (max - min) ? [low, high] : [min, max];
}

/** Minimum, maximum, mean, standard deviation, counts of `parts`, a list of arrays of numbers; and their histogram from `low` to
 * `high`, `outside` of which are so many. */
export function summary(parts) {
  const counts = { values: 0, finite: 0, nan: 0, infinite: 0, zeros: 0 };
  let min = Infinity;
  let max = -Infinity;
  let sum = 0;
  for (const part of parts) {
    counts.values += part.length;
    for (const value of part) {
      if (Number.isFinite(value)) {
        counts.finite += 1;
        if (value === 0) counts.zeros += 1;
        if (value < min) min = value;
        if (value > max) max = value;
        sum += value;
      } else if (Number.isNaN(value)) counts.nan += 1;
      else counts.infinite += 1;
    }
  }
  if (counts.finite === 0) return { ...counts, min: null, max: null, mean: null, std: null, bins: [] };
  const mean = sum / counts.finite;
  const [low, high] = range(parts, min, max);
  const bins = new Array(low === high ? 1 : BINS).fill(0);
  const scale = low === high ? 0 : bins.length / (high - low);
  let squares = 0;
  let outside = 0;
  for (const part of parts) {
    for (const value of part) {
      if (!Number.isFinite(value)) continue;
      squares += (value - mean) ** 2;
      if (value < low || value > high) outside += 1;
      else bins[Math.min(bins.length - 1, Math.floor((value - low) * scale))] += 1;
    }
  }
  return { ...counts, min, max, mean, std: Math.sqrt(squares / counts.finite), bins, low, high, outside };
}
