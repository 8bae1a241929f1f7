import { backendStore } from '../../src/stores/backend-store.js';
import { MemoryStore } from '../../src/stores/memory/memory-store.js';
import { systemClock } from '../../src/core/clock.js';
import { storeConformance } from '../../src/testing/index.js';
import { JsonBackend } from '../support/json-backend.js';

describe('MemoryStore keeps the promises of a store', () => {
  storeConformance(test, ({ clock }) => new MemoryStore({ clock }));
});

describe('MemoryStore on the clock of the machine keeps them', () => {
  storeConformance(test, () => new MemoryStore(), { clock: false });
});

describe('a store made of a backend keeps the promises of a store', () => {
  const servers = new Map<string, Map<string, never>>();
  const rowsOf = (name: string) => {
    const rows = servers.get(name) ?? new Map<string, never>();
    servers.set(name, rows);
    return rows;
  };

  storeConformance(
    test,
    ({ clock, name }) => backendStore(new JsonBackend(clock ?? systemClock, rowsOf(name))),
    { shared: true },
  );
});
