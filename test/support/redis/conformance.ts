import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { RedisStore } from '../../../src/stores/redis/index.js';
import { replayVectors, storeConformance } from '../../../src/testing/index.js';
import type { ConformanceStoreOptions, VectorCase } from '../../../src/testing/index.js';
import type { OpenClient } from './clients.js';
import { startServers, TARGETS } from './targets.js';
import type { Servers, Target } from './targets.js';

const cases = JSON.parse(
  readFileSync(join(import.meta.dirname, '..', '..', 'fixtures', 'decisions.json'), 'utf8'),
) as VectorCase[];

/** The conformance suite with every client that speaks to this kind of server. A file each: much of it is waiting. */
export function testConformance(kind: Target['kind']): void {
  jest.setTimeout(180_000);

  let servers: Servers;
  let stores = 0;

  beforeAll(async () => {
    servers = await startServers([kind]);
  });

  afterAll(async () => {
    await servers.stop();
  });

  describe.each(TARGETS.filter(target => target.kind === kind))('$name', ({ open }) => {
    let opened: OpenClient;

    beforeAll(async () => {
      opened = await open(servers);
    });

    afterAll(() => {
      opened.close();
    });

    // Several targets share a server.
    const prefix = () => `conformance.${String(stores++)}`;

    const storeOf = ({ clock, name }: ConformanceStoreOptions) =>
      new RedisStore({ client: opened.client, prefix: name, ...(clock === undefined ? {} : { clock }) });

    storeConformance(it, storeOf, { shared: true });
    // On the server's own clock.
    storeConformance(it, storeOf, { clock: false, shared: true });

    it('reproduces every value of the vectors', async () => {
      expect(cases.length).toBeGreaterThan(100);
      const mismatches = await replayVectors({
        createStore: ({ clock }) => new RedisStore({ client: opened.client, prefix: prefix(), clock }),
        cases,
      });
      expect(mismatches).toEqual([]);
    });
  });
}
