import { readdirSync, readFileSync } from 'node:fs';
import { availableParallelism, cpus } from 'node:os';

/** Linux counts CPU time in hundredths of a second (USER_HZ), on every architecture that Node runs on. */
const MS_PER_TICK = 10;

/** Describes the environment of a measurement: the version of Node and the machine's processors. */
export function machineName(): string {
  return `Node ${process.version}, ${availableParallelism()} × ${cpus()[0]?.model}`;
}

/** Returns the CPU time that a process has used so far, user and system; NaN without /proc. */
export function cpuMs(pid: number): number {
  const stat = readStat(pid);
  return stat ? stat.ownMs : Number.NaN;
}

/** Returns the CPU time of a process and its children, including those that have exited; NaN without /proc. */
export function cpuOfTreeMs(pid: number): number {
  const root = readStat(pid);
  if (!root) return Number.NaN;
  let totalMs = root.ownMs + root.endedChildrenMs;
  for (const name of readdirSync('/proc')) {
    const stat = /^\d+$/.test(name) ? readStat(Number(name)) : undefined;
    if (stat?.parent === pid) totalMs += stat.ownMs + stat.endedChildrenMs;
  }
  return totalMs;
}

/** Returns the total CPU time of all processes on the machine; NaN without /proc. */
export function cpuOfMachineMs(): number {
  // proc_stat(5): user, nice, system, idle, iowait, irq, softirq.
  const [user = Number.NaN, nice = 0, system = 0, , , irq = 0, softirq = 0] = (readProc('stat') ?? '')
    .slice('cpu '.length, 200)
    .trim()
    .split(/\s+/)
    .map(Number);
  return (user + nice + system + irq + softirq) * MS_PER_TICK;
}

/** Returns the peak resident memory of a process, in megabytes of 10^6 bytes; NaN without /proc. */
export function peakResidentMb(pid: number): number {
  return memoryMb(pid, 'VmHWM');
}

/** Returns the resident memory of a process now, likewise. */
export function residentMb(pid: number): number {
  return memoryMb(pid, 'VmRSS');
}

function memoryMb(pid: number, name: string): number {
  const match = new RegExp(`${name}:\\s+(\\d+) kB`).exec(readProc(`${pid}/status`) ?? '');
  return (Number(match?.[1] ?? Number.NaN) * 1024) / 1e6;
}

type Stat = { readonly parent: number; readonly ownMs: number; readonly endedChildrenMs: number };

/** proc_pid_stat(5): the name may contain spaces and parentheses, so fields are counted from its end. */
function readStat(pid: number): Stat | undefined {
  const text = readProc(`${pid}/stat`);
  if (text === undefined) return undefined;
  const fields = text
    .slice(text.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number);
  const [, parent = 0] = fields;
  const [user = 0, system = 0, childrenUser = 0, childrenSystem = 0] = fields.slice(11);
  return {
    parent,
    ownMs: (user + system) * MS_PER_TICK,
    endedChildrenMs: (childrenUser + childrenSystem) * MS_PER_TICK,
  };
}

function readProc(path: string): string | undefined {
  try {
    return readFileSync(`/proc/${path}`, 'utf8');
  } catch {
    return undefined;
  }
}
