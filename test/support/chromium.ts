import { execFile } from 'node:child_process';
import { accessSync, constants, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { chromium } from 'playwright-core';
import type { BrowserContext, BrowserContextOptions } from 'playwright-core';

const run = promisify(execFile);
const HOW_TO =
  'The browser tests need Chromium: install it (Debian: apt-get install chromium), or name it in LIMITKEEPER_CHROMIUM.';

/** The browser that LIMITKEEPER_CHROMIUM names, or the one on PATH, or, as root where apt-get is, Debian's, installed now. */
async function findChromium(): Promise<string> {
  const named = process.env['LIMITKEEPER_CHROMIUM'];
  if (named !== undefined && named !== '') {
    if (runnable(named)) return named;
    throw new Error(`LIMITKEEPER_CHROMIUM names ${named}, which is no program that can be run.`);
  }
  const found = onPath('chromium');
  if (found !== undefined) return found;
  if (process.getuid?.() !== 0 || onPath('apt-get') === undefined) throw new Error(HOW_TO);
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  const patience = ['-o', 'DPkg::Lock::Timeout=180', '-qq'];
  try {
    await run('apt-get', [...patience, 'update'], { env });
    await run('apt-get', [...patience, 'install', '-y', '--no-install-recommends', 'chromium'], { env });
  } catch (error) {
    throw new Error(`${HOW_TO} (apt-get failed: ${String(error)})`, { cause: error });
  }
  const installed = onPath('chromium');
  if (installed === undefined) throw new Error(HOW_TO);
  return installed;
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

export interface Browser {
  readonly context: BrowserContext;
  /** Where it keeps what it stores. */
  readonly folder: string;
  close(): Promise<void>;
}

/** A Chromium that nobody has used before. */
export async function openBrowser(options: BrowserContextOptions = {}): Promise<Browser> {
  const executablePath = await findChromium();
  const folder = mkdtempSync(join(tmpdir(), 'limitkeeper-chromium-'));
  const context = await chromium.launchPersistentContext(folder, {
    ...options,
    executablePath,
    headless: true,
    args: [
      '--headless',
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  });
  return {
    context,
    folder,
    close: async () => {
      await context.close();
      rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}
