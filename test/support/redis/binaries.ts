import { execFile } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { promisify } from 'node:util';

// Jest also loads this file by itself, as the `redis` project's globalSetup, and resolves no `.js` suffix then: it imports
// node: modules only, and what other tests need of it they import from here.

const run = promisify(execFile);

export interface Program {
  /** What it is called on PATH, and Debian's package as well. */
  readonly name: string;
  /** The environment variable that may name another place. */
  readonly variable: string;
  /** Who needs it, e.g. `The browser tests need Chromium`. */
  readonly need: string;
}

const howTo = ({ name, variable, need }: Program): string =>
  `${need}: install it (Debian: apt-get install ${name}), or name it in ${variable}.`;

/**
 * The path of a program: the one that its variable names, or the first on PATH, or, as root where apt-get is, Debian's
 * package, installed on the spot. Throws one sentence that says what to install.
 */
export async function findProgram(program: Program): Promise<string> {
  const { name, variable } = program;
  const named = process.env[variable];
  if (named !== undefined && named !== '') {
    if (runnable(named)) return named;
    throw new Error(`${variable} names ${named}, which is no program that can be run.`);
  }
  const found = onPath(name);
  if (found !== undefined) return found;
  if (process.getuid?.() !== 0 || onPath('apt-get') === undefined) throw new Error(howTo(program));
  await alone(`limitkeeper-install-${name}.lock`, async () => {
    if (onPath(name) === undefined) await installDebianPackage(program);
  });
  const installed = onPath(name);
  if (installed === undefined) throw new Error(howTo(program));
  return installed;
}

export const findRedisServer = (): Promise<string> =>
  findProgram({
    name: 'redis-server',
    variable: 'LIMITKEEPER_REDIS_SERVER',
    need: 'The Redis tests need a real redis-server ≥ 6.2',
  });

export default async function globalSetup(): Promise<void> {
  await findRedisServer();
}

function runnable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function onPath(program: string): string | undefined {
  const folders = (process.env['PATH'] ?? '').split(delimiter).filter(folder => folder !== '');
  return folders.map(folder => join(folder, program)).find(runnable);
}

async function installDebianPackage(program: Program): Promise<void> {
  // Debian starts a service as soon as it is installed, unless this script says no (101 is its word for "forbidden").
  const policy = '/usr/sbin/policy-rc.d';
  const ours = await writeFile(policy, '#!/bin/sh\nexit 101\n', { mode: 0o755, flag: 'wx' }).then(
    () => true,
    () => false,
  );
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  const patience = ['-o', 'DPkg::Lock::Timeout=180', '-qq'];
  try {
    await run('apt-get', [...patience, 'update'], { env });
    await run('apt-get', [...patience, 'install', '-y', '--no-install-recommends', program.name], { env });
  } catch (error) {
    throw new Error(`${howTo(program)} (apt-get failed: ${String(error)})`, { cause: error });
  } finally {
    if (ours) await rm(policy);
  }
}

/** Runs `work` while no other process on this machine does; a lock whose owner has died is taken over. */
async function alone(name: string, work: () => Promise<void>): Promise<void> {
  const lock = join(tmpdir(), name);
  const owner = join(lock, 'pid');
  for (let tries = 0; ; tries++) {
    const taken = await mkdir(lock).then(
      () => true,
      () => false,
    );
    if (taken) break;
    if (tries > 600) throw new Error(`Another process has held ${lock} for five minutes; remove it.`);
    const pid = Number(await readFile(owner, 'utf8').catch(() => '0'));
    // Without a pid the owner may be between its two steps: only a lock that stays like that is stale.
    if ((pid > 0 && !alive(pid)) || (pid === 0 && tries > 20))
      await rm(lock, { recursive: true, force: true });
    else await wait(500);
  }
  try {
    await writeFile(owner, String(process.pid));
    await work();
  } finally {
    await rm(lock, { recursive: true, force: true });
  }
}

function alive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
