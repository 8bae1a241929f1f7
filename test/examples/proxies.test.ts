// Every snippet of docs/proxies.md is type-checked and run as it stands there.
import type { AddressInfo } from 'node:net';
import { DocPage } from '../support/pages.js';
import { Reader, statuses, times } from '../support/recipe.js';

jest.setTimeout(120_000);

const page = new DocPage('docs/proxies.md');
const reader = new Reader();

beforeEach(() => {
  reader.begin();
});
afterEach(() => reader.end());
afterAll(() => {
  page.expectAllRun();
});

test('every snippet type-checks', () => {
  const readersOwn = `
import type { Express } from 'express';
declare global {
  const app: Express;
  const cloudflareNetworks: string[];
}
`;
  expect(page.typeMistakes(readersOwn)).toEqual([]);
});

test('Behind a proxy', async () => {
  await reader.recipe(page.snippet('Behind a proxy'));
  expect(reader.app.get('trust proxy')).toBe(1);
});

/** An IPv6 client of a server of its own, as `serve` has IPv4 alone. */
async function overIPv6(path: string): Promise<number> {
  const server = reader.app.listen(0, '::1');
  await new Promise(resolve => server.once('listening', resolve));
  const { port } = server.address() as AddressInfo;
  try {
    return (await fetch(`http://[::1]:${String(port)}${path}`)).status;
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

// The tests come from 127.0.0.1: where that is Cloudflare, they came through it, and where it is not, past it.
const THROUGH = ['127.0.0.0/8', '2400:cb00::/32'];
const PAST = ['173.245.48.0/20', '2400:cb00::/32'];

describe('Cloudflare', () => {
  describe('trusted networks', () => {
    const seen = async (networks: string[]): Promise<unknown> => {
      await reader.run(page.snippet('Cloudflare'), { cloudflareNetworks: networks });
      reader.app.get('/', (req, res) => void res.json(req.ip));
      await reader.serve();
      const headers = { 'x-forwarded-for': '192.0.2.66, 203.0.113.7' };
      return JSON.parse((await reader.ask('/', { headers })).text);
    };

    test('the client is the one whom Cloudflare saw, not the one whom it claims to be', async () => {
      expect(await seen(THROUGH)).toBe('203.0.113.7');
    });

    test('past Cloudflare, nobody is believed', async () => {
      expect(await seen(PAST)).toBe('127.0.0.1');
    });
  });

  describe('CF-Connecting-IP', () => {
    const ask = (i: number): Promise<{ status: number }> =>
      reader.ask('/', { headers: { 'cf-connecting-ip': `203.0.113.${String(i)}` } });

    test('from Cloudflare it tells clients apart', async () => {
      await reader.recipe(page.snippet('Cloudflare', 1), { cloudflareNetworks: THROUGH });
      expect(await statuses(121, i => ask(i % 100))).toEqual(times(121, 200));
      expect(await statuses(121, () => ask(101))).toEqual([...times(120, 200), 429]);
    });

    test('past Cloudflare an invented one is no fresh quota', async () => {
      await reader.recipe(page.snippet('Cloudflare', 1), { cloudflareNetworks: PAST });
      expect(await statuses(121, i => ask(i))).toEqual([...times(120, 200), 429]);
    });

    test('an IPv6 connection is no error', async () => {
      await reader.recipe(page.snippet('Cloudflare', 1), { cloudflareNetworks: THROUGH });
      expect(await overIPv6('/')).toBe(200);
    });
  });
});
