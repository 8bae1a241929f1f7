import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import axe from 'axe-core';
import express from 'express';
import type { Page } from 'playwright-core';
import { adminRouter } from '../../../src/admin/index.js';
import type { AdminOptions } from '../../../src/admin/index.js';
import { ADMIN_KEY, READ_KEY } from '../../support/admin.js';

export interface ServedDesk {
  /** Of the page. */
  readonly url: string;
  /** Cuts every connection, as a proxy that restarts does; new ones are taken. */
  hangUp(): void;
  stop(): Promise<void>;
}

/** A server with the operators' page of these limiters at /ops/limits, and nothing else. */
export async function serveDesk(options: AdminOptions): Promise<ServedDesk> {
  const router = adminRouter({ adminKey: ADMIN_KEY, readKey: READ_KEY, ...options });
  const app = express();
  app.use('/ops/limits', router);
  const server = http.createServer(app);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    url: `http://127.0.0.1:${String((server.address() as AddressInfo).port)}/ops/limits/`,
    hangUp: () => {
      server.closeAllConnections();
    },
    stop: async () => {
      router.close();
      server.closeAllConnections();
      await new Promise(done => server.close(done));
    },
  };
}

/** Types a key, and waits until the desk is there and alive. */
export async function enterDesk(page: Page, key = ADMIN_KEY): Promise<void> {
  await page.fill('#key', key);
  await page.click('#key-form button');
  await page.waitForSelector('#desk:not([hidden])');
  await page.waitForFunction(
    () => document.getElementById('connection')?.textContent.startsWith('Live') === true,
  );
}

/** Presses a button of the question that is asked. */
export async function answerQuestion(page: Page, button: string): Promise<void> {
  await page.waitForSelector('dialog[open]');
  await page.click(`dialog button:text-is("${button}")`);
}

/** Serious and critical ones of axe-core, as `rule: elements`. */
export async function barriersOf(page: Page): Promise<string[]> {
  await page.evaluate(axe.source);
  const violations = await page.evaluate(async () => {
    const { axe: inPage } = globalThis as unknown as { axe: typeof axe };
    return (await inPage.run(document)).violations;
  });
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${id}: ${nodes.map(({ target }) => target.join(' ')).join(', ')}`);
}
