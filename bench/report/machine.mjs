import { arch, availableParallelism, cpus, loadavg, platform, totalmem } from 'node:os';

/** What the figures depend on, and nothing by which the machine could be known. */
export const machine = () => ({
  processor: cpus()[0]?.model.trim() ?? 'unknown',
  cores: availableParallelism(),
  memoryGb: Math.round(totalmem() / 2 ** 30),
  system: `${platform()} ${arch()}`,
  node: process.version,
  /** Of the minute before: how much else was going on. */
  load: Number(loadavg()[0].toFixed(1)),
});
