import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import type { BrowserContext, BrowserContextOptions } from 'playwright-core';
import { findProgram } from './redis/binaries.js';

const findChromium = (): Promise<string> =>
  findProgram({
    name: 'chromium',
    variable: 'LIMITKEEPER_CHROMIUM',
    need: 'The browser tests need Chromium',
  });

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
