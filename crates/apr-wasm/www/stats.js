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

/** Minimum, maximum, mean, standard deviation, counts and histogram of `parts`, a list of arrays of numbers. */
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
  const bins = new Array(min === max ? 1 : BINS).fill(0);
  const scale = min === max ? 0 : bins.length / (max - min);
  let squares = 0;
  for (const part of parts) {
    for (const value of part) {
      if (!Number.isFinite(value)) continue;
      squares += (value - mean) ** 2;
      bins[Math.min(bins.length - 1, Math.floor((value - min) * scale))] += 1;
    }
  }
  return { ...counts, min, max, mean, std: Math.sqrt(squares / counts.finite), bins };
}
